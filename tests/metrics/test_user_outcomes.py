"""Cancellations by user or tuner, and missed deadlines, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from eunomia.metrics import Figures, Metrics
from eunomia.model.decisions import Decision, Refuse, Start
from eunomia.model.events import Event, JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.testing.small_worlds import one_type


def figures_of(*story: tuple[float, Sequence[Event], Sequence[Decision]]) -> Figures:
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=9)]), one_type(), {})
    for at, events, decisions in story:
        metrics.observe(Moment.of(at, events), decisions)
    return metrics.figures()


def come(names: str, deadline: float = math.inf) -> list[Event]:
    return [JobSubmitted(Job(job_id=name, total_steps=10, deadline=deadline)) for name in names]


def sit(names: str) -> list[Decision]:
    return [Start(name, 1, (seat,), math.inf) for seat, name in enumerate(names)]


def test_a_job_that_finishes_at_its_deadline_meets_it_and_a_later_one_misses_it() -> None:
    """Due at 10: a finishes at 10, b at 11, c is cancelled at 9 and d at 11, e fails at 5, f is refused at 5, g still
    runs when the run ends at 11. h has no deadline, i's is at 12, after the end.
    """
    figures = figures_of(
        (0, [*come("abcdefg", 10), *come("h"), *come("i", 12)], sit("abcdegh")),
        (5, [JobFailed("e", 1, "")], [Refuse("f", "")]),
        (9, [JobCancelled("c")], []),
        (10, [JobFinished("a", 1)], []),
        (11, [JobFinished("b", 1), JobFinished("h", 1), JobCancelled("d")], []),
    )
    missed = dict(zip(figures.jobs["job_id"].tolist(), figures.jobs["deadline_missed"].tolist(), strict=True))
    assert math.isnan(missed.pop("h"))
    assert missed == {"a": 0, "b": 1, "c": 0, "d": 1, "e": 1, "f": 1, "g": 1, "i": 0}
    assert figures.summary["deadlines_missed"] == 5
    assert figures.jobs["deadline_s"].tolist()[:7] == [10] * 7


def test_without_deadlines_none_is_missed_and_none_is_counted() -> None:
    assert figures_of((0, come("a"), sit("a")), (9, [JobFinished("a", 1)], [])).summary["deadlines_missed"] is None


@pytest.mark.parametrize("late", [False, True])
def test_cancellations_by_a_tuner_and_by_a_user_are_distinguished(late: bool) -> None:
    """Of two cancellations of one job the first counts."""
    again = [(7.0, [JobCancelled("a", by_tuner=False)], [])] if late else []
    figures = figures_of(
        (0, come("abc"), sit("abc")),
        (5, [JobCancelled("a", by_tuner=True), JobCancelled("b")], []),
        *again,
        (9, [JobFinished("c", 1), JobCancelled("c", by_tuner=True)], []),
    )
    assert figures.jobs["cancelled_by"].tolist() == ["tuner", "user", ""]
    assert figures.summary["jobs_cancelled"] == 2
    assert figures.summary["jobs_cancelled_by_tuner"] == 1
