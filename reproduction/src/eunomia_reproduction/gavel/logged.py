"""One of Gavel's logs beside our rounds, fed with the allocations of the log."""

from __future__ import annotations

from math import inf

from eunomia.mechanisms.gavel_rounds.mechanism import GavelMechanism
from eunomia_reproduction.gavel.ends import ends_of, no_jobs
from eunomia_reproduction.gavel.log_replay import Diverged, FromLog, LoggedRounds
from eunomia_reproduction.gavel.objectives import VALUES, Objective
from eunomia_reproduction.gavel.reference import LOGS, Reference, Run
from eunomia_reproduction.gavel.simulate import play, set_up_run
from eunomia_reproduction.table import FigureRow

WORSE = 1e-4  # largest relative shortfall of an objective


def of_log(one: Run, reference: Reference) -> list[FigureRow]:
    """Return the rows of one log: rounds with the same assignment, jobs with the same JCT, and objectives.

    Raises InvalidInput for a run that cannot be played.
    """
    setup, events = set_up_run(one, reference), reference.logs[one.id]
    adviser = FromLog(events, Objective.of(one.family, setup.policy))
    collectors: list[LoggedRounds] = []

    def watch(rounds: GavelMechanism) -> LoggedRounds:
        collectors.append(LoggedRounds(rounds, events))
        return collectors[0]

    stopped, ended, equal, first = "", len(one.jct), 0, ""
    try:
        ended, equal, first = ends_of(one, play(setup, adviser, watch))
        if adviser.left:
            stopped = f"the log holds {adviser.left} allocations more than are asked for"
    except Diverged as error:
        stopped = first = str(error)
    collectors[0].close(stopped)
    series = f"{one.id} log"
    rows = [_of_rounds(series, collectors[0]), no_jobs(series, LOGS)]
    if one.jct:
        rows[1] = FigureRow(
            series=series, quantity="jobs with the same JCT", unit="jobs", published=ended, measured=equal,
            tolerance=0.0, source=LOGS, note=first,
        )  # fmt: skip
    return rows + ([_of_objective(series, adviser.shortfall)] if one.family in VALUES else [])


def _of_rounds(series: str, rounds: LoggedRounds) -> FigureRow:
    first = rounds.first
    return FigureRow(
        series=series, quantity="rounds with the same assignment", unit="rounds", published=rounds.rounds,
        measured=rounds.equal, tolerance=0.0, source=LOGS,
        note=f"first to differ: round {first.round} at {first.at:.3f} s: {first.text}" if first else "",
    )  # fmt: skip


def _of_objective(series: str, shortfall: float) -> FigureRow:
    return FigureRow(
        series=series, quantity="how much worse our answer to a logged question is, at most", unit="", published=0.0,
        measured=shortfall if shortfall < inf else None, tolerance=WORSE, source=LOGS,
    )  # fmt: skip
