"""Tiresias' event simulator: list scheduling on a counter of accelerators (`count`), or on machines (`yarn`).

Nothing costs time, times are whole seconds, and who is next is decided anew at every arrival and end.

| there | here |
| --- | --- |
| fifo | `fifo`, nobody overtakes |
| fjf (first job that fits) | `fifo?backfill=skip` |
| sjf (smallest job first) | `smallest_first` |
| shortest | `srtf?ties=last` |
| shortest-gpu | `srtf?measure=service&ties=last` |
| dlas, dlas-gpu, dlas-gpu-2, gittins | to the letter, `tiresias_lists.py`; and beside it our `tiresias`, reported |
| fifo and fjf with yarn | to the letter, `tiresias_yarn.py` |

Oddities: it keeps one sorted list of jobs and sorts it again and again, so equals stay as they stood (`ties=last`).
gittins learns from a file of its own, yarn-gput1000.csv; where that is not in the folder it is told what the jobs of
the trace come to, and only reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from eunomia.core.mechanisms.leases import Leases
from eunomia.model.policy import Policy
from eunomia.reproduction.peers.cases import cases, jobs, machines, published, submissions, trace, untouched
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.running import lives
from eunomia.reproduction.peers.sheet import Sheet, read
from eunomia.reproduction.peers.tiresias_lists import LeastIndexFirst, Lists
from eunomia.reproduction.peers.tiresias_yarn import FirstMachines
from eunomia.reproduction.table import Request

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
RESULTS, GITTINS, SAMPLES = "jobs_", "count_gittins_patched", "yarn-gput1000.csv"


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/tiresias."""
    return any((case / "cluster_spec.csv").is_file() for case in cases(folder))


def reproduce(folder: Path, request: Request) -> Found:
    """Compare every schedule that has results there to the letter, and our policy with those that it comes from."""
    found = Found()
    for case in cases(folder):
        sheet = trace(case, "duration")
        known = {**POLICY, GITTINS: (LeastIndexFirst(_samples(folder, sheet)), Leases())}
        for schedule, (policy, mechanism) in known.items():
            checked = schedule != GITTINS or (folder / SAMPLES).is_file()
            _compare(case, sheet, schedule, policy, mechanism, request, found, checked=checked)
        for schedule, policy in OURS.items():
            _compare(case, sheet, schedule, policy, RECALL, request, found, checked=False)
        found.notes += [f"tiresias {note}" for note in untouched(case, RESULTS, known)]
    if not (folder / SAMPLES).is_file():
        found.notes.append(f"tiresias gittins: {SAMPLES} is not in {folder}; it learnt from the trace instead")
    return found


def _compare(
    case: Path,
    sheet: Sheet,
    schedule: str,
    policy: str | Policy,
    mechanism: Leases,
    request: Request,
    found: Found,
    *,
    checked: bool,
) -> None:
    """Add the rows of one schedule, if it has results; those that are not checked are reported."""
    path = case / f"{RESULTS}{schedule}.csv"
    if not path.is_file():
        return
    placement, _, name = schedule.partition("_")
    series = f"tiresias {case.name} {name}" + (f" ({placement})" if placement != "count" else "")
    if schedule in OURS and policy == OURS[schedule]:
        series += f", our {policy}"
    request.tell(f"{series}: {policy if isinstance(policy, str) else policy.info.name}")
    nodes = machines(case / "cluster_spec.csv", ("num_switch", "num_node_p_switch"), "num_gpu_p_node")
    measured = lives(jobs(sheet, nodes, float), nodes, policy, mechanism)
    source = f"tiresias/{case.name}/{path.name}"
    rows = compared(series, published(path, stops="preempt"), measured, submissions(sheet), source)
    found.rows += rows if checked else [replace(row, tolerance=None) for row in rows]


def _samples(folder: Path, sheet: Sheet) -> tuple[float, ...]:
    """Return the accelerator-seconds of past jobs, in rising order."""
    if (folder / SAMPLES).is_file():
        return tuple(sorted(read(folder / SAMPLES, numbers=("duration",)).numbers["duration"]))
    columns = sheet.numbers["num_gpu"], sheet.numbers["duration"]
    return tuple(sorted(size * seconds for size, seconds in zip(*columns, strict=True)))
