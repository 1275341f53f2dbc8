"""Tiresias' event simulator with the placement `count`: list scheduling on a counter of accelerators.

Nothing costs time, times are whole seconds, and who is next is decided anew at every arrival and end.

| there | here |
| --- | --- |
| fifo | `fifo`, nobody overtakes |
| fjf (first job that fits) | `fifo?backfill=skip` |
| sjf (smallest job first) | `smallest_first` |
| shortest | `srtf?ties=last` |
| shortest-gpu | `srtf?measure=service&ties=last` |

Oddity: it keeps one sorted list of jobs and sorts it again and again, so equals stay as they stood (`ties=last`).
"""

from __future__ import annotations

from pathlib import Path

from eunomia.core.mechanisms.leases import Leases
from eunomia.reproduction.peers.cases import cases, jobs, machines, published, submissions, trace, untouched
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.running import lives
from eunomia.reproduction.table import Request

POLICY = {
    "fifo": ("fifo", Leases()),
    "fjf": ("fifo?backfill=skip", Leases()),
    "sjf": ("smallest_first", Leases(recall=True)),
    "shortest": ("srtf?ties=last", Leases(recall=True)),
    "shortest-gpu": ("srtf?measure=service&ties=last", Leases(recall=True)),
}
RESULTS = "jobs_count_"


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/tiresias."""
    return any((case / "cluster_spec.csv").is_file() for case in cases(folder))


def reproduce(folder: Path, request: Request) -> Found:
    """Compare every schedule that has both results there and a policy here."""
    found = Found()
    for case in cases(folder):
        sheet = trace(case, "duration")
        nodes = machines(case / "cluster_spec.csv", ("num_switch", "num_node_p_switch"), "num_gpu_p_node")
        for schedule, (policy, mechanism) in POLICY.items():
            path = case / f"{RESULTS}{schedule}.csv"
            if path.is_file():
                series, source = f"tiresias {case.name} {schedule}", f"tiresias/{case.name}/{path.name}"
                request.tell(f"{series}: {policy}")
                measured = lives(jobs(sheet, float), nodes, policy, mechanism)
                found.rows += compared(series, published(path, stops="preempt"), measured, submissions(sheet), source)
        found.notes += [f"tiresias {note}" for note in untouched(case, RESULTS, POLICY)]
    return found
