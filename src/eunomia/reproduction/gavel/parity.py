"""Parity with Gavel's simulator: each of its runs again, and each of its logs round by round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.core.mechanisms.gavel import GavelScheduler
from eunomia.model.problems import InvalidInput
from eunomia.reproduction.gavel.objectives import VALUES, Objective
from eunomia.reproduction.gavel.playing import Played, play, set_up_run
from eunomia.reproduction.gavel.reference import LOGS, RESULTS, Reference, Run, read_reference
from eunomia.reproduction.gavel.replaying import Diverged, FromLog, Rounds
from eunomia.reproduction.table import Request, Row, Table

SAME_S = 0.01  # a JCT is the same up to this
EXACT = ("isolated", "fifo", "fifo_perf", "allox", "gandiva")  # have one answer, ties as the published code breaks them
AWARE = ("max_min_fairness_perf", "finish_time_fairness_perf")
AGNOSTIC = ("max_min_fairness", "finish_time_fairness")
MAKESPAN = ("min_total_duration_perf", "min_total_duration")
EACH, MEDIAN, LAST, WORSE = 0.05, 0.03, 0.03, 1e-4  # largest relative error: of a run, median, makespan, objective
MANY_JOBS = 96  # a smaller trace says little about averages
QUANTITIES = ("average_jct", "makespan", "utilization", "total_cost_usd")
UNITS = {"average_jct": "s", "makespan": "s", "utilization": "", "total_cost_usd": "US$"}


def reproduce(request: Request) -> Table:
    """Return a row for each run and quantity and for each log. Raises InvalidInput for a folder that is not one."""
    reference = read_reference(request.folder("data/gavel"))
    rows: list[Row] = []
    notes: list[str] = []
    for at, one in enumerate(reference.runs, start=1):
        request.tell(f"{at}/{len(reference.runs)} {one.id}")
        try:
            rows += of_run(one, reference)
            if one.id in reference.logs:
                rows += of_log(one, reference)
        except InvalidInput as error:
            notes.append(f"{one.id} was not run: {error}")
    rows += _medians(rows, reference)
    return Table(rows=tuple(rows), notes=tuple(notes))


# ---- runs ------------------------------------------------------------------------------------------------------------


def of_run(one: Run, reference: Reference) -> list[Row]:
    """Return the rows of one run: as near as we come, and for level policies the steady answer beside it."""
    if (one.said.get("generated") or {}).get("ideal"):
        return [Row(series=one.id, quantity="jobs", unit="", source=RESULTS, note="fluid shares have no rounds")]
    levels = one.policy in AWARE + AGNOSTIC
    played = play(set_up_run(one, reference, {"point": "interior"} if levels else None))
    rows = [_equal_jobs(one, played), _equal_drops(one, played), *_quantities(one, played)]
    if levels and one.said.get("trace"):
        steady = play(set_up_run(one, reference, {"point": "closest"}))
        told = "the optimum with the fewest moves"
        rows += [
            replace(row, series=f"{row.series} point=closest", tolerance=None, note=told)
            for row in _quantities(one, steady)
        ]
    return rows


def _equal_jobs(one: Run, played: Played) -> Row:
    """Return how many jobs have the same JCT."""
    different = [name for name, jct in one.jct.items() if not _same(jct, played.jct.get(name, np.nan))]
    note = ""
    if different and one.policy in EXACT:
        name = min(different, key=int)
        note = f"first to differ: job {name}, {one.jct[name]} s there, {played.jct.get(name)} s here"
    return Row(
        series=one.id, quantity="jobs with the same JCT", unit="jobs", published=len(one.jct),
        measured=len(one.jct) - len(different), tolerance=0.0 if one.policy in EXACT else None, source=RESULTS,
        note=note,
    )  # fmt: skip


def _same(there: float | None, here: float | None) -> bool:
    if there is None or here is None:
        return there is here
    return abs(there - here) <= SAME_S


def _equal_drops(one: Run, played: Played) -> Row:
    """Return whether the same jobs were dropped."""
    there = {name for name, jct in one.jct.items() if jct is None}
    here = {name for name, jct in played.jct.items() if jct is None}
    return Row(
        series=one.id, quantity="jobs dropped by one only", unit="jobs", published=0, measured=len(there ^ here),
        tolerance=0.0 if one.policy in EXACT else None, source=RESULTS,
        note=", ".join(sorted(there ^ here, key=int)[:10]),
    )  # fmt: skip


def _quantities(one: Run, played: Played) -> list[Row]:
    measured = (played.average_jct, played.makespan, played.utilization, played.cost_usd)
    return [
        Row(
            series=one.id, quantity=name, unit=UNITS[name], published=one.said.get(name), measured=value,
            tolerance=_tolerance(one, name), source=RESULTS,
        )
        for name, value in zip(QUANTITIES, measured, strict=True)
    ]  # fmt: skip


def _tolerance(one: Run, quantity: str) -> float | None:
    """Return how near a quantity has to come; None where the optimum is not unique and the run short."""
    jobs = one.said.get("num_jobs_in_trace") or len(one.jct)
    if one.policy in EXACT:
        return None if quantity == "total_cost_usd" and jobs < MANY_JOBS else 1e-4  # small sums are printed short
    if jobs < MANY_JOBS:
        return None
    if one.policy in MAKESPAN:
        return LAST if quantity == "makespan" else None
    return EACH if one.policy in AWARE + AGNOSTIC else None


def _medians(rows: list[Row], reference: Reference) -> list[Row]:
    """Return the median error of each quantity over the runs of policies that know the types."""
    aware = {one.id for one in reference.runs if one.policy in AWARE}
    found = []
    for name in QUANTITIES:
        errors = [
            abs(row.ratio - 1)
            for row in rows
            if row.series in aware and row.quantity == name and row.tolerance is not None and row.ratio is not None
        ]
        if errors:
            found.append(
                Row(
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


# ---- logs ------------------------------------------------------------------------------------------------------------


def of_log(one: Run, reference: Reference) -> list[Row]:
    """Return the rows of one log: rounds with the same assignment, jobs with the same JCT, and objectives."""
    setup = set_up_run(one, reference)
    events = reference.logs[one.id]
    adviser = FromLog(events, Objective.of(one.policy, setup.policy))
    heard: list[Rounds] = []

    def watch(scheduler: GavelScheduler) -> Rounds:
        heard.append(Rounds(scheduler, events))
        return heard[0]

    series, stopped, equal = f"{one.id} log", "", 0
    try:
        played = play(setup, adviser, watch)
        equal = sum(_same(jct, played.jct.get(name, np.nan)) for name, jct in one.jct.items())
    except Diverged as error:
        stopped = str(error)
    rounds = heard[0]
    first = rounds.first
    note = f"first to differ: round {first.round} at {first.at:.3f} s: {first.text}" if first else stopped
    rows = [
        Row(
            series=series, quantity="rounds with the same assignment", unit="rounds", published=rounds.logged,
            measured=rounds.equal, tolerance=0.0, source=LOGS, note=note,
        ),
        Row(
            series=series, quantity="jobs with the same JCT", unit="jobs", published=len(one.jct), measured=equal,
            tolerance=0.0, source=LOGS, note=stopped,
        ),
    ]  # fmt: skip
    if one.policy in VALUES:
        rows.append(
            Row(
                series=series,
                quantity="how much worse our answer to a logged question is, at most",
                unit="",
                published=0.0,
                measured=adviser.shortfall,
                tolerance=WORSE,
                source=LOGS,
            )
        )
    return rows
