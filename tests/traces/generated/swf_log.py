"""Logs in the Standard Workload Format, with values that are not known, cancelled jobs, and runs in parts."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.traces.generated.truth import HOUR_S, TYPES, Truth, chance

from eunomia.traces import swf
from eunomia.traces.import_findings import History


def generate(rng: Random, folder: Path) -> tuple[History, Truth]:
    """Return the history that is read of a log, and what it holds."""
    truth, lines, kind = Truth(), [], rng.choice(TYPES)
    submit = 0
    for job in range(1, rng.randrange(3, 40)):
        submit += rng.randrange(2000)
        wait, run, width = rng.randrange(5000), rng.choice((0, 1, rng.randrange(2, 90_000))), rng.choice((1, 2, 8, 64))
        user, status, what = rng.randrange(-1, 3), rng.choice((0, 1, 1, -1)), rng.randrange(9)
        held = asked = width
        later = []
        if what == 0:
            wait, run, held, status = -1, -1, rng.choice((-1, width)), 5  # cancelled before it ran
        elif what == 1:
            held = -1
        elif what == 2:
            held = asked = rng.choice((0, -1))
        elif what == 3:
            wait = -1
        elif what == 4 and run > 1:  # swapped out once
            later = [(-1 if part else submit, wait, run // 2, 2 + part) for part in (0, 1)]
            run = 2 * (run // 2)
        lines.append([job, submit, wait, run, held, -1, -1, asked, -1, -1, status, user, 1, -1, 1, -1, -1, -1])
        lines += [[job, at, w, r, held, -1, -1, asked, -1, -1, s, user, 1, -1, 1, -1, -1, -1] for at, w, r, s in later]
        if run >= 0 and width and what not in (0, 2):
            tenant = "" if user == -1 else str(user)
            truth.add(kind, tenant, width * run / HOUR_S, written=width * max(run, 1) / HOUR_S)
            if wait >= 0:
                truth.wait_s[str(job)] = wait
    lines.append([9999, submit, 0, 60, 1, *[-1] * 5, 1, 0, 1, *[-1] * 5])
    truth.add(kind, "0", 60 / HOUR_S)
    path = folder / "log.swf"
    header = ["; UnixStartTime: 1704067200", "; MaxProcs: 64", ""] if chance(rng, 0.7) else []
    path.write_text("\n".join([*header, *("   ".join(map(str, line)) for line in lines), ""]))
    return swf.read_history(path, type=kind), truth
