"""A policy of grants may put two jobs together that run already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import JobCancelled, JobSubmitted
from eunomia.model.job import Job
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia.testing.small_worlds import DrawnRates

from .conftest import Desk

Sit = Callable[..., Desk]


def seat(job: Ints, partner: Ints, device: Ints) -> Grants:
    """One accelerator a row."""
    rows = Rows(job, np.zeros_like(job), partner=partner)
    return Grants(rows, np.arange(len(job)), device, np.full(len(job), np.nan))


@dataclass(frozen=True)
class TogetherOn:
    """One job runs on accelerator 0; of three, the last two share accelerator `device`."""

    device: int
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="together", answer_type="grants", objective="", technique="", paper="", needs=frozenset()
    )

    def decide(self, view: View) -> Grants:
        if view.jobs < 3:
            return seat(np.arange(view.jobs), np.full(view.jobs, -1), np.arange(view.jobs))
        return seat(np.array([1]), np.array([2]), np.array([self.device]))


def together(sit: Sit, device: int) -> list[object]:
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    desk = sit(TogetherOn(device), (3,), speeds=speeds)
    desk.submit(0, "a", "b", total_steps=1000)
    return [d for d in desk.submit(10, "c") if isinstance(d, Stop | Start)]


def test_a_job_that_gets_a_partner_on_its_own_seats_starts_anew_with_it(sit: Sit) -> None:
    stop, start = together(sit, device=1)
    assert isinstance(stop, Stop)
    assert isinstance(start, Start)
    assert stop.job_ids == ("b",)
    assert (start.job_id, start.partner_id, start.seats) == ("b", "c", (1,))


def test_a_partner_that_runs_elsewhere_leaves_its_seats_first(sit: Sit) -> None:
    """The same pair named the other way round: b, which runs on accelerator 1, comes to c on 2."""

    @dataclass(frozen=True)
    class CalledOver(TogetherOn):
        def decide(self, view: View) -> Grants:
            if view.jobs < 3:
                return super().decide(view)
            return seat(np.array([2]), np.array([1]), np.array([self.device]))

    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    desk = sit(CalledOver(2), (3,), speeds=speeds)
    desk.submit(0, "a", "b", total_steps=1000)
    stop, start = [d for d in desk.submit(10, "c") if isinstance(d, Stop | Start)]
    assert isinstance(stop, Stop)
    assert isinstance(start, Start)
    assert stop.job_ids == ("b",)
    assert (start.job_id, start.partner_id, start.seats) == ("c", "b", (2,))


def test_a_pair_whose_second_job_went_since_the_question_is_dropped(sit: Sit) -> None:
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=0.5)
    desk = sit(TogetherOn(2), (3,), speeds=speeds)
    desk.submit(0, "a", "b", total_steps=1000)
    desk.observe(10, JobSubmitted(Job(job_id="c", total_steps=10, submitted=10, sequence=9)))
    question = desk.asks[-1]
    desk.observe(11, JobCancelled("c"))
    assert not [d for d in desk.answer(11, desk.policy.decide(question.view)) if isinstance(d, Stop | Start)]
