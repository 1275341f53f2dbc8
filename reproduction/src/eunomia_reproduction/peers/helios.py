"""Helios' simulator of one virtual cluster, with the placement `consolidate`.

| there | here |
| --- | --- |
| fifo | `consolidated` |
| sjf | `consolidated?order=remaining` |
| srtf | `consolidated?order=remaining&preempt=true` |

A gang runs on as few machines as it needs or waits, and no job overtakes a job that waits for that; decided at every
arrival and end, which is what its steps of one second come to.

Oddities of srtf: a job holds its accelerators for one second more than it lasts (`LINGER_S`), and being stopped costs
it work by gang size (`STOP_COST_S`), which counts as remaining time at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import add
from pathlib import Path

from eunomia.mechanisms.leases import Leases
from eunomia_reproduction.peers.cases import cases, jobs, machines, submissions, trace
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.peer_sheet import PeerSheet
from eunomia_reproduction.peers.preemption_cost_sim import CostlyStops
from eunomia_reproduction.peers.results import PREFIX, Held, published, tell_others
from eunomia_reproduction.peers.running import Life, lives, mean
from eunomia_reproduction.peers.summary import Summary, totals
from eunomia_reproduction.table import Request

POLICY = {
    "fifo": "consolidated",
    "sjf": "consolidated?order=remaining",
    "srtf": "consolidated?order=remaining&preempt=true",
}
PLACEMENT = "consolidate"
LINGER_S = {"srtf": 1.0}
STOP_COST_S = ((8, 60.0), (1, 30.0), (0, 7.0))  # of gangs with more accelerators than that


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/helios."""
    return any((case / "cluster.csv").is_file() for case in cases(folder))


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Compare every policy that has both results there and a policy here.

    Raises InvalidInput where nothing can be compared.
    """
    found = JobComparison()
    for case in cases(folder):
        with found.trying(f"helios {case.name}"):
            _compare(case, request, found)
    return found.settled()


def _compare(case: Path, request: Request, found: JobComparison) -> None:
    """Add the rows of one case."""
    sheet, nodes = trace(case, "duration"), machines(case / "cluster.csv", ("nodes",), "gpus_per_node")
    summary, submitted = Summary.of(case / "summary.csv", ("policy", "placement")), submissions(sheet)
    for name, policy in POLICY.items():
        path = case / f"{PREFIX}{name}.csv"
        if not path.is_file():
            continue
        series, source, linger = f"helios {case.name} {name}", f"helios/{case.name}", LINGER_S.get(name, 0.0)
        with found.trying(series):
            held = partial(_held, linger=linger)
            theirs = published(path, sheet, stops="preemptions", waits="queue", held=held)
            request.tell(f"{series}: {policy}")
            lasting = jobs(sheet, nodes, partial(add, linger))
            ours = lives(lasting, nodes, policy, Leases(), world=CostlyStops(lasting, _stop_cost))
            found.rows += [
                *compared(series, theirs.lives, ours, submitted, f"{source}/{path.name}", odd=theirs.odd),
                *summary.beside(series, (name, PLACEMENT), _describe(ours, sheet, held), f"{source}/summary.csv"),
            ]
    tell_others(found, "helios", case, POLICY)
    found.notes += summary.notes(f"helios {case.name}")


def _describe(ours: Mapping[str, Life], sheet: PeerSheet, held: Held) -> dict[str, float]:
    """Return what a summary tells of a run."""
    names, size, work = sheet.texts["job_id"], sheet.numbers["num_gpu"], sheet.numbers["duration"]
    found = totals(ours, submissions(sheet), names)
    busy = [held(work[row], size[row], ours[name].stops) for row, name in enumerate(names)]
    return {**found, "avg_queue_s": found["avg_jct_s"] - mean(busy)}


def _held(work: float, accelerators: float, stops: float, *, linger: float) -> float:
    """Return the seconds in which a job holds its accelerators; what stops cost it is made up before it ends."""
    return work + linger + stops * _stop_cost(int(accelerators))


def _stop_cost(accelerators: int) -> float:
    return next(seconds for above, seconds in STOP_COST_S if accelerators > above)
