"""Blox' simulator: rounds of 300 s on machines whose number its summary tells, every job on one accelerator or more.

| there | here |
| --- | --- |
| Fifo | `fifo?backfill=skip` |
| Las, Tiresias | `las` with levels of one accelerator-second |
| Srtf | `srtf` |

all with leases of 300 s that end together. Oddities, made of the trace before the run:

- a job is seen at the first beginning of a round that is not before its submission: submissions are rounded up;
- service is credited in whole rounds and an end is seen at the end of its round: work is rounded up to whole rounds.
  The scheduler still believes what is declared, which decides who is shorter;
- its Tiresias fills queues and then returns the plain order of Las.

The JCT counts from the submission as it was. Only the tracked jobs are compared; the later ones compete.
"""

from __future__ import annotations

import math
from pathlib import Path

from eunomia.core.mechanisms.leases import Leases
from eunomia.reproduction.peers.cases import cases, jobs, machines, published, submissions, trace, untouched
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.running import lives
from eunomia.reproduction.table import Request

ROUND_S = 300.0
POLICY = {"fifo": "fifo?backfill=skip", "las": "las?quantum=1", "srtf": "srtf", "tiresias": "las?quantum=1"}
MACHINES, ACCELERATORS, WORK = "machines", "gpus_per_machine", "work_s"


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/blox."""
    return any(_is_case(case) for case in cases(folder))


def _is_case(case: Path) -> bool:
    summary = case / "summary.csv"
    if not summary.is_file():
        return False
    header = summary.read_text(encoding="utf-8-sig", errors="replace").partition("\n")[0]
    return MACHINES in header.strip().split(",")


def reproduce(folder: Path, request: Request) -> Found:
    """Compare every policy that has both results there and a policy here."""
    found = Found()
    for case in filter(_is_case, cases(folder)):
        sheet, nodes = trace(case, WORK), machines(case / "summary.csv", (MACHINES,), ACCELERATORS)
        declared = dict(zip(sheet.texts["job_id"], sheet.numbers[WORK], strict=True))
        rounds = Leases(length=ROUND_S, aligned=True)
        for name, policy in POLICY.items():
            path = case / f"jobs_{name}.csv"
            if path.is_file():
                series, source = f"blox {case.name} {name}", f"blox/{case.name}/{path.name}"
                request.tell(f"{series}: {policy}")
                measured = lives(jobs(sheet, nodes, _up, _up), nodes, policy, rounds, believed_steps=declared)
                found.rows += compared(series, published(path), measured, submissions(sheet), source)
        found.notes += [f"blox {note}" for note in untouched(case, "jobs_", POLICY)]
    return found


def _up(seconds: float) -> float:
    """Return the next end of a round."""
    return math.ceil(seconds / ROUND_S) * ROUND_S
