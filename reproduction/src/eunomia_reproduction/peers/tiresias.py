"""Tiresias' event simulator: list scheduling on a counter of accelerators (`count`), or on machines (`yarn`).

Nothing costs time, times are whole seconds, and the next job is decided anew at every arrival and end.

| there | here |
| --- | --- |
| fifo | `fifo`, no job overtakes |
| fjf (first job that fits) | `fifo?backfill=skip` |
| sjf (smallest job first) | `smallest_first` |
| shortest | `srtf?ties=last` |
| shortest-gpu | `srtf?measure=service&ties=last` |
| dlas, dlas-gpu, dlas-gpu-2, gittins | to the letter, `tiresias_lists.py`; and beside it our `tiresias`, reported |
| fifo and fjf with yarn | to the letter, `tiresias_yarn.py` |

Oddities: it keeps one sorted list of jobs and sorts it again and again, so equals stay as they stood (`ties=last`).
gittins learns from a file of its own, yarn-gput1000.csv; where that is not in the folder it receives the sizes of the
jobs of the trace, and only reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eunomia.mechanisms.leases import Leases
from eunomia.model.policy import Policy
from eunomia_reproduction.peers.cases import cases, jobs, machines, submissions, trace
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read
from eunomia_reproduction.peers.results import PREFIX, published, tell_others
from eunomia_reproduction.peers.running import Life, lives, mean
from eunomia_reproduction.peers.summary import Summary, totals
from eunomia_reproduction.peers.tiresias_lists import LeastIndexFirst, Lists
from eunomia_reproduction.peers.tiresias_yarn import FirstMachines
from eunomia_reproduction.table import Request

RECALL = Leases(recall=True)
POLICY: Mapping[str, tuple[str | Policy, Leases]] = {
    "count_fifo": ("fifo", Leases()),
    "count_fjf": ("fifo?backfill=skip", Leases()),
    "count_sjf": ("smallest_first", RECALL),
    "count_shortest": ("srtf?ties=last", RECALL),
    "count_shortest-gpu": ("srtf?measure=service&ties=last", RECALL),
    "count_dlas": (Lists(by_service=False), Leases()),
    "count_dlas-gpu": (Lists(), Leases()),
    "count_dlas-gpu-2": (Lists(knob=2.0), Leases()),
    "yarn_fifo": (FirstMachines(), Leases()),
    "yarn_fjf": (FirstMachines(skip=True), Leases()),
}
OURS: Mapping[str, str] = {
    "count_dlas-gpu": "tiresias?limits=3250,7200&placement=anywhere",
    "count_dlas-gpu-2": "tiresias?limits=3250,7200&placement=anywhere&promote=2",
    "count_gittins_patched": "tiresias?index=gittins&gittins=authors&limits=none&placement=anywhere",
}
NOT_PLAYED = ("gandiva_gandiva",)  # slices of time
GITTINS, SAMPLES = "count_gittins_patched", "yarn-gput1000.csv"
COUNTED = ("num_switch", "num_node_p_switch")


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/tiresias."""
    return any((case / "cluster_spec.csv").is_file() for case in cases(folder))


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Compare every schedule that has results there to the letter, and our policy with those that it comes from.

    Raises InvalidInput where nothing can be compared.
    """
    found = JobComparison()
    for case in cases(folder):
        with found.trying(f"tiresias {case.name}"):
            _compare(folder, case, request, found)
    if not (folder / SAMPLES).is_file():
        found.notes.append(f"tiresias gittins: {SAMPLES} is not in {folder}; it learnt from the trace instead")
    return found.settled()


def _compare(folder: Path, case: Path, request: Request, found: JobComparison) -> None:
    """Add the rows of one case."""
    sheet, nodes = trace(case, "duration"), machines(case / "cluster_spec.csv", COUNTED, "num_gpu_p_node")
    summary = Summary.of(case / "summary.csv", ("schedule", "placement"))
    held, submitted = jobs(sheet, nodes, float), submissions(sheet)
    known = {**POLICY, GITTINS: (LeastIndexFirst(_samples(folder, sheet)), Leases())}
    for schedule, (policy, mechanism) in known.items():
        path = case / f"{PREFIX}{schedule}.csv"
        if not path.is_file():
            continue
        placement, _, name = schedule.partition("_")
        series = f"tiresias {case.name} {name}" + (f" ({placement})" if placement != "count" else "")
        source = f"tiresias/{case.name}"
        with found.trying(series):
            theirs = published(path, sheet, stops="preempt", waits="pending_time")
            checked = schedule != GITTINS or (folder / SAMPLES).is_file()
            request.tell(f"{series}: {policy if isinstance(policy, str) else policy.info.name}")
            ours = lives(held, nodes, policy, mechanism)
            found.rows += [
                *compared(
                    series, theirs.lives, ours, submitted, f"{source}/{path.name}", checked=checked, odd=theirs.odd
                ),
                *summary.beside(
                    series, (name, placement), _describe(ours, sheet), f"{source}/summary.csv", checked=checked
                ),
            ]
            if schedule in OURS:
                series += f", our {OURS[schedule]}"
                request.tell(f"{series}: {OURS[schedule]}")
                ours = lives(held, nodes, OURS[schedule], RECALL)
                found.rows += compared(
                    series, theirs.lives, ours, submitted, f"{source}/{path.name}", checked=False, odd=theirs.odd
                )
    tell_others(found, "tiresias", case, known, NOT_PLAYED)
    found.notes += summary.notes(f"tiresias {case.name}")


def _describe(ours: Mapping[str, Life], sheet: PeerSheet) -> dict[str, float]:
    """Return what a summary tells of a run."""
    names = sheet.texts["job_id"]
    found = totals(ours, submissions(sheet), names)
    pending = found["avg_jct_s"] - mean(sheet.numbers["duration"])
    return {**found, "avg_pending_s": pending, "jobs_in_trace": len(names)}


def _samples(folder: Path, sheet: PeerSheet) -> tuple[float, ...]:
    """Return the accelerator-seconds of past jobs, in rising order."""
    if (folder / SAMPLES).is_file():
        return tuple(sorted(read(folder / SAMPLES, numbers=("duration",)).numbers["duration"]))
    columns = sheet.numbers["num_gpu"], sheet.numbers["duration"]
    return tuple(sorted(size * seconds for size, seconds in zip(*columns, strict=True)))
