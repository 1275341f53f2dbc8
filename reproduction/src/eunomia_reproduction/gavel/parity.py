"""Parity with Gavel's simulator: each of its runs again, and each of its logs round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.answers import InvalidAnswer
from eunomia.solvers.program import NoOptimum
from eunomia_reproduction.gavel.ends import ends_of, no_jobs
from eunomia_reproduction.gavel.log_replay import of_log
from eunomia_reproduction.gavel.reference import RESULTS, Reference, Run, read_reference
from eunomia_reproduction.gavel.simulate import GavelRun, play, set_up_run
from eunomia_reproduction.rounding import half_a_digit
from eunomia_reproduction.run_cache import failures
from eunomia_reproduction.table import FigureRow, FigureTable, Request

__all__ = ["AGNOSTIC", "AWARE", "EXACT", "of_log", "of_run", "reproduce"]

EXACT = ("isolated", "fifo", "fifo_perf", "allox", "gandiva")  # have one answer, ties as the published code breaks them
AWARE = ("max_min_fairness_perf", "finish_time_fairness_perf")
AGNOSTIC = ("max_min_fairness", "finish_time_fairness")
MAKESPAN = ("min_total_duration_perf", "min_total_duration")
NEAR = 1e-4  # largest relative error of a run that has one answer, or half of the last printed digit
EACH, MEDIAN, LAST = 0.05, 0.03, 0.03  # largest relative error: of a run, median, makespan
MANY_JOBS = 96  # a smaller trace says little about averages
RENEWED = "leases renewed"
UNITS = {"average_jct": "s", "makespan": "s", "utilization": "", "total_cost_usd": "US$", RENEWED: "of those possible"}


def reproduce(request: Request) -> FigureTable:
    """Return a row for each run and quantity, for each log, and for each of them that could not be compared.

    Raises InvalidInput for a folder that holds no results.
    """
    reference = read_reference(request.folder("data/gavel"))
    rows = [row for name, error in reference.failed.items() for row in _failed(name, error)]
    for at, one in enumerate(reference.runs, start=1):
        request.tell(f"{at}/{len(reference.runs)} {one.id}")
        rows += _tried(one.id, of_run, one, reference)
        if one.id in reference.logs:
            rows += _tried(f"{one.id} log", of_log, one, reference)
    rows += _medians(rows, reference)
    return FigureTable(rows=tuple(rows), notes=reference.notes)


def _tried(
    name: str, of: Callable[[Run, Reference], list[FigureRow]], one: Run, reference: Reference
) -> list[FigureRow]:
    """Return the rows of a run or log; one that cannot be played has a row that says why."""
    try:
        return of(one, reference)
    except (InvalidInput, InvalidAnswer, NoOptimum) as error:
        return _failed(name, error)


def _failed(name: str, error: Exception) -> list[FigureRow]:
    return list(failures({name: " | ".join(str(error).splitlines())}))


# ---- runs ------------------------------------------------------------------------------------------------------------


def of_run(one: Run, reference: Reference) -> list[FigureRow]:
    """Return the rows of one run: as near as we come, and for level policies the steady answer beside it.

    Raises InvalidInput for a run that cannot be played.
    """
    if one.ideal:
        raise _no_rounds(one, reference)
    levels = one.family in AWARE + AGNOSTIC
    played = play(set_up_run(one, reference, {"point": "interior"} if levels else None))
    rows = [_equal_jobs(one, played), _equal_drops(one, played), *_quantities(one, played)]
    if levels and one.said.get("trace"):
        steady = play(set_up_run(one, reference, {"point": "closest"}))
        note = "the optimum with the fewest moves"
        rows += [
            replace(row, series=f"{row.series} point=closest", tolerance=None, note=note)
            for row in _quantities(one, steady)
        ]
    return rows


def _no_rounds(one: Run, reference: Reference) -> InvalidInput:
    rule = f"in run {one.id} shares are given out as a fluid; there are no rounds to compare"
    file = str(reference.folder / RESULTS)
    return InvalidInput([Problem(file=file, column="generated.ideal", value="true", rule=rule, fix="leave it out")])


def _equal_jobs(one: Run, played: GavelRun) -> FigureRow:
    """Return how many jobs have the same JCT, of all that ended there or here."""
    if not one.jct:
        return no_jobs(one.id, RESULTS)
    ended, equal, note = ends_of(one, played)
    exact = one.family in EXACT
    return FigureRow(
        series=one.id, quantity="jobs with the same JCT", unit="jobs", published=ended, measured=equal,
        tolerance=0.0 if exact else None, source=RESULTS, note=note if exact else "",
    )  # fmt: skip


def _equal_drops(one: Run, played: GavelRun) -> FigureRow:
    """Return whether the same jobs were dropped."""
    there = {name for name, jct in one.jct.items() if jct is None}
    here = {name for name, jct in played.jct.items() if jct is None}
    return FigureRow(
        series=one.id, quantity="jobs dropped by one only", unit="jobs", published=0 if one.jct else None,
        measured=len(there ^ here),
        tolerance=0.0 if one.family in EXACT else None, source=RESULTS,
        note=", ".join(sorted(there ^ here, key=int)[:10]),
    )  # fmt: skip


def _quantities(one: Run, played: GavelRun) -> list[FigureRow]:
    measured = (played.average_jct, played.makespan, played.utilization, played.cost_usd, played.leases_renewed)
    published = {**one.said, RENEWED: one.leases_renewed}
    return [
        FigureRow(
            series=one.id, quantity=name, unit=unit, published=published.get(name), measured=value,
            tolerance=_tolerance(one, name), source=RESULTS,
        )
        for (name, unit), value in zip(UNITS.items(), measured, strict=True)
        if name != RENEWED or one.leases_renewed is not None
    ]  # fmt: skip


def _tolerance(one: Run, quantity: str) -> float | None:
    """Return how near a quantity has to come; None where the optimum is not unique and the run short.

    Which gangs stay where they are hangs on the optimum, also in long runs, and on where a measured window ends.
    """
    if quantity == RENEWED:
        return NEAR if one.family in EXACT and one.window is None else None
    if one.family in EXACT:
        return max(NEAR, _rounding(one.said.get(quantity)))
    jobs = one.said.get("num_jobs_in_trace") or len(one.jct)
    if jobs < MANY_JOBS:
        return None
    if one.family in MAKESPAN:
        return LAST if quantity == "makespan" else None
    return EACH if one.family in AWARE + AGNOSTIC else None


def _rounding(published: float | None) -> float:
    """Return half of the last digit of what was published, as a part of it: sums of small runs are printed short."""
    half = half_a_digit(repr(published)) if published is not None else 0.0
    return half / abs(published) if published else half


def _medians(rows: list[FigureRow], reference: Reference) -> list[FigureRow]:
    """Return the median error of each quantity over the runs of policies that know the types."""
    aware = {one.id for one in reference.runs if one.family in AWARE}
    found = []
    for name in UNITS:
        errors = [
            abs(row.ratio - 1)
            for row in rows
            if row.series in aware and row.quantity == name and row.tolerance is not None and row.ratio is not None
        ]
        if errors:
            found.append(
                FigureRow(
                    series="policies that know the types",
                    quantity=f"median error of {name}",
                    unit="",
                    published=0.0,
                    measured=float(np.median(errors)),
                    tolerance=MEDIAN,
                    source=RESULTS,
                    note=f"{len(errors)} runs",
                )
            )
    return found
