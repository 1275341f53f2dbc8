"""Each run of the artifact whose results are there, job by job: ends, stops, waits, and fairness to its last digit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.model.problems import InvalidInput, Problem, Problems
from eunomia.reproduction.peers.astraea.inputs import Workload, options, workload
from eunomia.reproduction.peers.astraea.sizing import KNOWN, Setting, setting
from eunomia.reproduction.peers.astraea.ticks import Outcome, Ticks
from eunomia.reproduction.peers.cases import cases
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.running import Life
from eunomia.reproduction.peers.sheet import read
from eunomia.reproduction.table import Request, Row, Table

HALF_A_DIGIT = 5e-5 * (1 + 1e-6)  # fairness is told with four decimals
COUNTED = ("lease_expiry_cnt", "resume_cnt", "total_pending_time")
TOLD = "tenant_U_over_D_final"
DRAWN = "dynamic"  # the quota whose backfill is drawn, without a seed


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/astraea."""
    return any((case / "share.csv").is_file() and (case / "names.lst").is_file() for case in cases(folder))


def parity(request: Request) -> Table:
    """Compare with the runs in the reference folder, laid out like data/peers/astraea. Raises InvalidInput."""
    folder = request.folder("data/peers/astraea")
    if not is_here(folder):
        rule, mend = "there is no case of ASTRAEA's artifact", "give a folder laid out like data/peers/astraea"
        raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, mend=mend)])
    found = reproduce(folder, request)
    return Table(rows=tuple(found.rows), notes=tuple(found.notes))


def reproduce(folder: Path, request: Request) -> Found:
    """Run every case with the options that the names of its results say, and compare."""
    found = Found()
    for case in cases(folder):
        paths = sorted(case.glob("jobs_*.csv"))
        drawn = [path for path in paths if options(path, upstream=False).quota == DRAWN]
        found.notes += [f"{_series(path)}: not compared: it draws, without a seed, whom it lends to" for path in drawn]
        runs = [path for path in paths if path not in drawn]
        if not runs:
            found.notes.append(f"astraea {case.name}: not compared: it has no result")
            continue
        jobs = workload(case)
        how = setting(case, jobs, runs)
        if case.name not in KNOWN:
            found.notes.append(_guessed(case, runs[0], how))
        jobs = replace(jobs, accelerators=how.accelerators)
        for path in runs:
            series = _series(path)
            request.tell(series)
            outcome = Ticks(jobs, options(path, upstream=how.upstream)).run()
            found.rows += _beside(series, f"astraea/{case.name}/{path.name}", jobs, outcome, path)
            found.rows += _tenants(series, case, path.stem.split(".")[1:], outcome.by_tenant(jobs.tenants))
        found.notes += _dropped(case.name, jobs)
    return found


def _series(path: Path) -> str:
    return f"astraea {path.parent.name} {path.stem.partition('.')[2]}"


def _guessed(case: Path, path: Path, how: Setting) -> str:
    """Say how the cluster's size was found, which no file tells."""
    options = "no options" if how.upstream else "the options of a400"
    found = "every job" if how.fits else f"{how.equal} of {how.of} jobs"
    return (
        f"astraea {case.name}: no file tells how large its cluster is: with {how.accelerators} accelerators and "
        f"{options} {found} of {path.name} end as there"
    )


def _beside(series: str, source: str, jobs: Workload, outcome: Outcome, path: Path) -> list[Row]:
    """Return rows for lives, counts and fairness of the jobs that the artifact did not drop."""
    sheet = read(path, numbers=("end_time", "preempt_cnt", "fairness", *COUNTED), texts=("job_id",))
    theirs = {
        name: Life(math.nan, end, stops)
        for name, end, stops in zip(
            sheet.texts["job_id"], sheet.numbers["end_time"], sheet.numbers["preempt_cnt"], strict=True
        )
    }
    ours = {
        name: Life(math.nan, end, stops)
        for name, end, stops in zip(jobs.names, outcome.end.tolist(), outcome.preemptions.tolist(), strict=True)
        if not math.isnan(end)
    }
    rows = compared(series, theirs, ours, dict(zip(jobs.names, jobs.submitted.tolist(), strict=True)), source)
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


def _all_of(
    series: str, quantity: str, published: int, measured: int, source: str, note: str, unit: str = "jobs"
) -> Row:
    return Row(
        series=series,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=measured,
        tolerance=0.0,
        source=source,
        note=note,
    )


def _tenants(series: str, case: Path, run: list[str], measured: Mapping[str, float]) -> list[Row]:
    """Return a row for the tenants' fairness at the end, which a summary tells by name or as the least and the most."""
    path = case / "summary.csv"
    if not path.is_file():
        return []
    said = read(path, texts=("job_selection", "user_quota", "lease_s", "variant", TOLD)).texts
    lines = list(zip(said["job_selection"], said["user_quota"], said["lease_s"], said["variant"], strict=True))
    wanted = (*run, "")[:4]
    if wanted not in lines:
        return []
    ours = {**measured, "min": min(measured.values()), "max": max(measured.values())}
    theirs = _told(path, said[TOLD][lines.index(wanted)], lines.index(wanted) + 2, ours)
    near = sum(abs(ours[name] - value) <= HALF_A_DIGIT for name, value in theirs.items())
    note = "the least and the most" if "min" in theirs else "to four decimals"
    return [_all_of(series, "tenants_equal", len(theirs), near, f"astraea/{case.name}/{path.name}", note, "tenants")]


def _told(path: Path, told: str, row: int, known: Mapping[str, float]) -> dict[str, float]:
    """Return the tenants' fairness as `NAME=NUMBER NAME=NUMBER …` tells it. Raises InvalidInput for anything else."""
    problems, found = Problems(str(path)), {}
    for word in told.split():
        name, _, value = word.rpartition("=")
        if name not in known:
            rule, mend = "it names a tenant that the case has not", f"it has {', '.join(known)}"
        else:
            try:
                found[name] = float(value)
                continue
            except ValueError:
                rule, mend = "a tenant's fairness is a number", "write it as NAME=1.2345"
        problems.add(rule, mend, row=row, column=TOLD, value=word)
    problems.raise_if_any()
    return found


def _vanished(outcome: Outcome) -> int:
    return int(np.isnan(outcome.end).sum())


def _dropped(case: str, jobs: Workload) -> list[str]:
    """Say aloud whom the artifact drops without a word."""
    nobodys = int((jobs.tenant < 0).sum())
    wide = int((~jobs.admitted()).sum()) - nobodys
    if not wide + nobodys:
        return []
    total = len(jobs.names)
    return [
        f"astraea {case}: {wide + nobodys} of {total} jobs are dropped there without a word: {wide} ask for more than "
        f"their tenant's quota, {nobodys} are of tenants without a share; averages are over the others"
    ]
