"""Seconds are the policy's own: what the first question pays for compiled code stands beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from eunomia.allocation import single_decision
from eunomia.allocation.single_decision import timed
from eunomia.kernels import Kernel, kernel

Ask = Callable[[], int]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], Ask]:
    """Return what makes a question that takes so long each time, by a clock that nothing else moves."""

    def questions(lasting_s: list[float]) -> Ask:
        now, left = [0.0], list(lasting_s)
        monkeypatch.setattr(single_decision, "perf_counter", lambda: now[0])

        def ask() -> int:
            now[0] += left.pop(0)
            return len(left)

        return ask

    return questions


class Policy:
    """Any policy: a class of its own in each test, for what was asked before matters."""


def test_the_first_question_of_a_policy_is_asked_twice_and_only_the_second_counts(
    clock: Callable[[list[float]], Ask],
) -> None:
    mine = type("Mine", (Policy,), {})()
    assert timed(mine, clock([1.5, 0.25])) == (0, 0.25, 1.25)
    assert timed(mine, clock([0.5])) == (0, 0.5, 0.0)


def test_a_long_question_is_asked_once(clock: Callable[[list[float]], Ask]) -> None:
    assert timed(type("Slow", (Policy,), {})(), clock([60.0])) == (0, 60.0, 0.0)


def test_what_is_compiled_meanwhile_is_not_the_policys(clock: Callable[[list[float]], Ask]) -> None:
    @kernel()
    def fresh(x: int) -> int:  # a kernel that another shape of problem needs
        return x + 1

    cast(Kernel, fresh).mode = "compiled"
    mine, ask = type("Compiled", (Policy,), {})(), clock([0.5, 0.5, 0.5, 0.25])
    timed(mine, ask)
    assert timed(mine, lambda: fresh(1) + ask())[1:] == (0.25, 0.25)
