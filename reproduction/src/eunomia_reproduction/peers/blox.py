"""Blox' simulator: rounds of 300 s on machines whose number its summary tells, every job on one accelerator or more.

| there | here |
| --- | --- |
| Fifo | `fifo?backfill=skip` |
| Las, Tiresias | `las` with levels of one accelerator-second |
| Srtf | `srtf` |

all with leases of 300 s that end together. Oddities, made of the trace before the run:

- a job is seen at the first beginning of a round that is not before its submission: submissions are rounded up;
- service is credited in whole rounds and an end is seen at the end of its round: work is rounded up to whole rounds.
  The scheduler still believes what is declared, which decides which job is shorter;
- its Tiresias fills queues and then returns the plain order of Las.

The JCT counts from the submission as it was. Only the tracked jobs have results, jobs that follow each other in the
trace, as many as the summary says; the others compete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.mechanisms.leases import Leases
from eunomia_reproduction.peers.cases import cases, jobs, machines, submissions, trace
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.results import PREFIX, Results, published, tell_others
from eunomia_reproduction.peers.running import Life, lives, mean
from eunomia_reproduction.peers.summary import Summary, totals
from eunomia_reproduction.table import Request

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


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Compare every policy that has both results there and a policy here.

    Raises InvalidInput where nothing can be compared.
    """
    found = JobComparison()
    for case in filter(_is_case, cases(folder)):
        with found.trying(f"blox {case.name}"):
            _compare(case, request, found)
    return found.settled()


def _compare(case: Path, request: Request, found: JobComparison) -> None:
    """Add the rows of one case."""
    sheet, nodes = trace(case, WORK), machines(case / "summary.csv", (MACHINES,), ACCELERATORS)
    summary, submitted = Summary.of(case / "summary.csv", ("policy",)), submissions(sheet)
    summary.columns |= {MACHINES, ACCELERATORS}
    declared = dict(zip(sheet.texts["job_id"], sheet.numbers[WORK], strict=True))
    theirs: dict[str, Results] = {}
    for name in POLICY:
        path = case / f"{PREFIX}{name}.csv"
        if path.is_file():
            with found.trying(_series(case, name)):
                theirs[name] = published(path, sheet)
    count = _count(summary)
    for name, results in theirs.items():
        series, source = _series(case, name), f"blox/{case.name}"
        with found.trying(series):
            names = tracked(sheet.texts["job_id"], [one.lives for one in theirs.values()], count)
            _check_tracked(case / f"{PREFIX}{name}.csv", results.lives, names, declared)
            request.tell(f"{series}: {POLICY[name]}")
            rounds = Leases(length=ROUND_S, aligned=True)
            ours = lives(jobs(sheet, nodes, _up, _up), nodes, POLICY[name], rounds, believed_steps=declared)
            ours = {job: ours[job] for job in names}
            found.rows += [
                *compared(series, results.lives, ours, submitted, f"{source}/{PREFIX}{name}.csv", odd=results.odd),
                *summary.beside(series, (name,), _describe(ours, submitted), f"{source}/summary.csv"),
            ]
    if count is None:
        note = "summary.csv does not say how many jobs are tracked: all from the first with a result to the last are"
        found.notes.append(f"blox {case.name}: {note}")
    tell_others(found, "blox", case, POLICY)
    found.notes += summary.notes(f"blox {case.name}")


def _series(case: Path, name: str) -> str:
    return f"blox {case.name} {name}"


def _count(summary: Summary) -> float | None:
    """Return how many jobs a case tracks, the same under all policies: the most that its summary says."""
    found = []
    for name in POLICY:
        with suppress(InvalidInput):  # of one run: reported where its numbers are compared
            found.append(summary.number((name,), "n"))
    return max((count for count in found if count is not None), default=None)


def tracked(names: Sequence[str], results: Iterable[Collection[str]], count: float | None) -> list[str]:
    """Return the tracked jobs: `count` that follow each other in the trace, those with most results of all runs.

    Without a count they are all from the first job with a result to the last. `names` are the jobs of the trace.
    """
    everybody = list(results)
    tracked_counts = np.array([sum(name in one for one in everybody) for name in names])
    if count is None:
        there = np.flatnonzero(tracked_counts)
        return list(names[there[0] : there[-1] + 1]) if len(there) else []
    size = min(max(int(count), 1), len(names))
    before = np.concatenate(([0], np.cumsum(tracked_counts)))
    first = int(np.argmax(before[size:] - before[: len(before) - size]))
    return list(names[first : first + size])


def _check_tracked(path: Path, lives: Collection[str], names: Sequence[str], trace: Collection[str]) -> None:
    """Raise InvalidInput for results of jobs of the trace that are not tracked."""
    others = [name for name in lives if name in trace and name not in names]
    if others:
        rule = f"it has results of {len(others)} jobs that are not tracked, such as {others[0]!r}"
        fix = f"leave them out, or fix n in summary.csv, by which {len(names)} jobs from {names[0]!r} on are tracked"
        raise InvalidInput([Problem(file=str(path), column="job_id", rule=rule, fix=fix)])


def _describe(ours: Mapping[str, Life], submitted: Mapping[str, float]) -> dict[str, float]:
    """Return what a summary tells of a run; that a job runs is seen at the end of its first round."""
    seen = [life.start + ROUND_S - submitted[name] for name, life in ours.items()]
    return {**totals(ours, submitted, ours), "avg_responsiveness_s": mean(seen)}


def _up(seconds: float) -> float:
    """Return the next end of a round."""
    return math.ceil(seconds / ROUND_S) * ROUND_S
