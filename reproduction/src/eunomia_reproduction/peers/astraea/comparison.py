"""Each run of the artifact whose results are there, job by job: ends, stops, waits, and fairness to its last digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.peers.astraea.inputs import ArtifactWorkload, options, workload
from eunomia_reproduction.peers.astraea.sizing import KNOWN, ClusterSetting, setting
from eunomia_reproduction.peers.astraea.ticks import TickOutcome, Ticks
from eunomia_reproduction.peers.cases import cases, trace
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.peer_sheet import read
from eunomia_reproduction.peers.results import published
from eunomia_reproduction.peers.running import Life
from eunomia_reproduction.peers.summary import Summary, totals
from eunomia_reproduction.table import FigureRow, FigureTable, Request

HALF_A_DIGIT = 5e-5 * (1 + 1e-6)  # fairness is printed with four decimals
COUNTED = ("lease_expiry_cnt", "resume_cnt", "total_pending_time")
FAIRNESS_COLUMN = "tenant_U_over_D_final"
SUMMED = ("job_selection", "user_quota", "lease_s", "variant")


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/astraea."""
    return any((case / "share.csv").is_file() and (case / "names.lst").is_file() for case in cases(folder))


def parity(request: Request) -> FigureTable:
    """Compare with the runs in the reference folder, laid out like data/peers/astraea. Raises InvalidInput."""
    folder = request.folder("data/peers/astraea")
    if not is_here(folder):
        rule, fix = "there is no case of ASTRAEA's artifact", "give a folder laid out like data/peers/astraea"
        raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, fix=fix)])
    found = reproduce(folder, request)
    return FigureTable(rows=tuple(found.rows), notes=tuple(found.notes))


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Run every case with the options that the names of its results say, and compare.

    Raises InvalidInput where nothing can be compared.
    """
    found = JobComparison()
    for case in cases(folder):
        with found.trying(f"astraea {case.name}"):
            _compare(case, request, found)
    return found.settled()


def _compare(case: Path, request: Request, found: JobComparison) -> None:
    """Add the rows of one case."""
    runs: list[Path] = []
    results = sorted(case.glob("jobs_*.csv"))
    if not results:
        fix = "put its jobs_*.csv there, or take the folder away"
        raise InvalidInput([Problem(file=str(case), rule="it has no result", fix=fix)])
    for path in results:
        with found.trying(_series(path)):
            run = options(path, upstream=False)
            if run.quota == "dynamic" or run.selection == "random":
                what = "the tenants it lends to" if run.quota == "dynamic" else "the order of jobs"
                note = f"not compared: it draws, without a seed, {what}"
                found.notes.append(f"{_series(path)}: {note}")
            else:
                runs.append(path)
    if not runs:
        return
    jobs, summary = workload(case), Summary.of(case / "summary.csv", SUMMED)
    how, path = _setting(case, jobs, runs)
    if case.name not in KNOWN:
        found.notes.append(_guessed(case, path, how))
    jobs = replace(jobs, accelerators=how.accelerators)
    for path in runs:
        series = _series(path)
        with found.trying(series):
            request.tell(series)
            outcome = Ticks(jobs, options(path, upstream=how.upstream)).run()
            found.rows += [
                *_beside(series, f"astraea/{case.name}/{path.name}", jobs, outcome, path),
                *_summed(series, summary, path, jobs, outcome),
            ]
    found.notes += [*_dropped(case.name, jobs), *summary.notes(f"astraea {case.name}")]


def _setting(case: Path, jobs: ArtifactWorkload, runs: Sequence[Path]) -> tuple[ClusterSetting, Path]:
    """Return how the case was run, and the first of its results that tells. Raises InvalidInput if none does."""
    for path in runs[:-1]:
        with suppress(InvalidInput):
            return setting(case, jobs, [path]), path
    return setting(case, jobs, runs[-1:]), runs[-1]


def _series(path: Path) -> str:
    return f"astraea {path.parent.name} {path.stem.partition('.')[2] or path.stem}"


def _guessed(case: Path, path: Path, how: ClusterSetting) -> str:
    """Say how the cluster's size was found, which no file tells."""
    options = "no options" if how.upstream else "the options of a400"
    found = "every job" if how.fits else f"{how.equal} of {how.of} jobs"
    return (
        f"astraea {case.name}: no file tells how large its cluster is: with {how.accelerators} accelerators and "
        f"{options} {found} of {path.name} end as there"
    )


def _beside(series: str, source: str, jobs: ArtifactWorkload, outcome: TickOutcome, path: Path) -> list[FigureRow]:
    """Return rows for lives, counts and fairness of the jobs that the artifact did not drop."""
    sheet = read(path, numbers=("fairness", *COUNTED), texts=("job_id",))
    theirs = published(path, trace(path.parent, "duration"), stops="preempt_cnt", begun=False)
    ours, submitted = _lives(jobs, outcome), dict(zip(jobs.names, jobs.submitted.tolist(), strict=True))
    rows = compared(series, theirs.lives, ours, submitted, source, odd=theirs.odd)
    row_of = {name: row for row, name in enumerate(jobs.names)}
    place = np.array([row_of[name] for name in sheet.texts["job_id"]])
    counts = (outcome.expiries, outcome.resumes, outcome.waited)
    same = np.all([column[place] == sheet.numbers[name] for name, column in zip(COUNTED, counts, strict=True)], axis=0)
    near = np.abs(outcome.fairness[place] - np.array(sheet.numbers["fairness"])) <= HALF_A_DIGIT
    rows += [
        _all_of(series, "counts_equal", len(place), int(same.sum()), source, ", ".join(COUNTED)),
        _all_of(series, "fairness_equal", len(place), int(near.sum()), source, "to four decimals"),
    ]
    return [*rows, _all_of(series, "jobs_dropped", len(jobs.names) - len(place), _vanished(outcome), source, "")]


def _all_of(series: str, quantity: str, there: int, measured: int, source: str, note: str) -> FigureRow:
    return FigureRow(
        series=series,
        quantity=quantity,
        unit="jobs",
        published=there,
        measured=measured,
        tolerance=0.0,
        source=source,
        note=note,
    )


def _lives(jobs: ArtifactWorkload, outcome: TickOutcome) -> dict[str, Life]:
    """Return when each job ended that did, and how often it was stopped."""
    return {
        name: Life(math.nan, end, stops)
        for name, end, stops in zip(jobs.names, outcome.end.tolist(), outcome.preemptions.tolist(), strict=True)
        if not math.isnan(end)
    }


def _summed(series: str, summary: Summary, path: Path, jobs: ArtifactWorkload, outcome: TickOutcome) -> list[FigureRow]:
    """Return a row for what a summary tells of a run, tenants' fairness by name or as the least and the most too."""
    ours, ended = _lives(jobs, outcome), ~np.isnan(outcome.end)
    fairness = np.round(outcome.fairness[ended], 4)
    numbers = {
        **totals(ours, dict(zip(jobs.names, jobs.submitted.tolist(), strict=True)), ours),
        "jobs_in_trace": len(jobs.names),
        "job_fairness_mean": float(fairness.mean()) if len(fairness) else math.nan,
        "jobs_fairness_lt_0.95": int((fairness < 0.95).sum()),
        "jobs_fairness_gt_1.05": int((fairness > 1.05).sum()),
        "avg_lease_expiries": float(outcome.expiries[ended].mean()) if len(fairness) else math.nan,
    }
    tenants = outcome.by_tenant(jobs.tenants)
    words = {FAIRNESS_COLUMN: {**tenants, "min": min(tenants.values()), "max": max(tenants.values())}}
    run = (*path.stem.split(".")[1:], "")[:4]
    return summary.beside(series, run, numbers, f"astraea/{path.parent.name}/{summary.path.name}", words=words)


def _vanished(outcome: TickOutcome) -> int:
    return int(np.isnan(outcome.end).sum())


def _dropped(case: str, jobs: ArtifactWorkload) -> list[str]:
    """Report the jobs that the artifact silently drops."""
    without_share = int((jobs.tenant < 0).sum())
    wide = int((~jobs.admitted()).sum()) - without_share
    if not wide + without_share:
        return []
    total = len(jobs.names)
    return [
        f"astraea {case}: {wide + without_share} of {total} jobs are dropped there silently: {wide} ask for more than "
        f"their tenant's quota, {without_share} are of tenants without a share; averages are over the others"
    ]
