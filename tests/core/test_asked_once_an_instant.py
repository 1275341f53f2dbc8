"""At one instant a policy is asked again for what happens by itself, and not for what its own answer changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order, Rows
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import JobFinished, Progressed, TimerFired
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View

from .conftest import Desk

Sit = Callable[..., Desk]


@dataclass(frozen=True)
class Turning:
    """Turns the order round whenever it is asked."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="turning", answer_type="order", objective="", technique="", paper="", needs=frozenset(), mechanism=ROUNDS
    )

    def decide(self, view: View) -> Order:
        job = np.arange(view.jobs)[:: -1 if view.seed[1] % 2 else 1].copy()
        return Order(Rows(job, np.zeros_like(job)))


def changes(decided: list[object]) -> list[type]:
    return [type(one) for one in decided if isinstance(one, Start | Stop)]


def test_the_checkpoints_that_an_answer_has_written_are_no_reason_to_ask_again(sit: Sit) -> None:
    desk = sit(Turning(), (1,))
    desk.submit(0, "a", "b", total_steps=1e6)
    asked = len(desk.asks)
    assert changes(desk.tell(360, TimerFired())) == [Stop, Start]
    assert changes(desk.tell(360, Progressed(("a",), np.array([360.0])))) == []
    assert len(desk.asks) == asked + 1
    assert changes(desk.tell(720, TimerFired())) == [Stop, Start]


def test_a_job_that_comes_or_ends_at_the_instant_of_an_answer_is_a_reason(sit: Sit) -> None:
    desk = sit(Turning(), (1,))
    desk.submit(0, "a", "b", total_steps=1e6)
    desk.tell(360, TimerFired())
    for happened in (lambda: desk.submit(360, "c"), lambda: desk.tell(360, JobFinished("b", 1))):
        asked = len(desk.asks)
        happened()
        assert len(desk.asks) == asked + 1
