"""Helios' simulator of one virtual cluster, with the placement `consolidate`.

| there | here |
| --- | --- |
| fifo | `consolidated` |
| sjf | `consolidated?order=remaining` |
| srtf | `consolidated?order=remaining&preempt=true` |

A gang sits on as few machines as it needs or waits, and nobody overtakes a job that waits for that; decided at every
arrival and end, which is what its steps of one second come to.

Oddities of srtf: a job holds its accelerators for one second more than it lasts (`LINGER_S`), and being stopped costs
it work by gang size (`STOP_COST_S`), which counts as remaining time at once.
"""

from __future__ import annotations

from functools import partial
from operator import add
from pathlib import Path

from eunomia.core.mechanisms.leases import Leases
from eunomia.reproduction.peers.cases import cases, jobs, machines, published, submissions, trace, untouched
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.costly import CostlyStops
from eunomia.reproduction.peers.running import lives
from eunomia.reproduction.table import Request

POLICY = {
    "fifo": "consolidated",
    "sjf": "consolidated?order=remaining",
    "srtf": "consolidated?order=remaining&preempt=true",
}
LINGER_S = {"srtf": 1.0}
STOP_COST_S = ((8, 60.0), (1, 30.0), (0, 7.0))  # of gangs with more accelerators than that


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/helios."""
    return any((case / "cluster.csv").is_file() for case in cases(folder))


def reproduce(folder: Path, request: Request) -> Found:
    """Compare every policy that has both results there and a policy here."""
    found = Found()
    for case in cases(folder):
        sheet, nodes = trace(case, "duration"), machines(case / "cluster.csv", ("nodes",), "gpus_per_node")
        for name, policy in POLICY.items():
            path = case / f"jobs_{name}.csv"
            if path.is_file():
                series, source = f"helios {case.name} {name}", f"helios/{case.name}/{path.name}"
                request.tell(f"{series}: {policy}")
                held = jobs(sheet, nodes, partial(add, LINGER_S.get(name, 0.0)))
                measured = lives(held, nodes, policy, Leases(), world=CostlyStops(held, _stop_cost))
                found.rows += compared(
                    series, published(path, stops="preemptions"), measured, submissions(sheet), source
                )
        found.notes += [f"helios {note}" for note in untouched(case, "jobs_", POLICY)]
    return found


def _stop_cost(accelerators: int) -> float:
    return next(seconds for above, seconds in STOP_COST_S if accelerators > above)
