"""Carbyne: claims, and no job behind its fair share on a fluid cluster where shares are received as answered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.answers import Shares
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.shares.carbyne import NOT_YET, Carbyne, claims
from eunomia.policies.shares.proportional import Proportional

NEW = {"fair_rest": NOT_YET, "fair_rate": 0.0, "asked_at": 0.0}


def view_of(
    throughput: Any, capacity: Any, work: Any, *, size: Any = 1, weight: Any = 1.0, at: float = 0.0, memory: Any = None
) -> View:
    jobs = len(work)
    columns = {
        "throughput": np.asarray(throughput, dtype=float),
        "scale_factor": np.broadcast_to(size, jobs).astype(np.int64),
        "weight": np.broadcast_to(weight, jobs).astype(float),
        "capacity": np.asarray(capacity, dtype=float),
        "remaining": np.asarray(work, dtype=float),
    }
    kept = {name: np.full(jobs, first) for name, first in NEW.items()} if memory is None else memory
    return View(at=at, types=tuple("abc"[: len(capacity)]), jobs=jobs, columns=columns, memory=kept)


def ends(policy: Carbyne | Proportional, throughput: Floats, capacity: Ints, work: Floats, arrival: Floats) -> Floats:
    """Give every job exactly its shares, and ask at each arrival and end; return the ends of single accelerators."""
    left, end, memory = work.astype(float), np.full(len(work), np.inf), {}
    kept = {name: np.full(len(work), first) for name, first in NEW.items()}
    at = 0.0
    while np.isinf(end).any():
        rows = np.flatnonzero((arrival <= at) & np.isinf(end))
        later = arrival[arrival > at]
        if len(rows) == 0:
            at = float(later.min())
            continue
        memory = {name: column[rows] for name, column in kept.items()}
        answer: Shares = policy.decide(view_of(throughput[rows], capacity, left[rows], at=at, memory=memory))
        for name, column in answer.memory.items():
            kept[name][rows] = column
        rate = (answer.x * throughput[rows]).sum(axis=1)
        step = min(float((left[rows] / rate).min()), float(later.min(initial=np.inf)) - at)
        left[rows] -= rate * step
        at += step
        done = rows[left[rows] <= 1e-6]
        left[done], end[done] = 0.0, at
    return end


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.0]))
def test_no_job_ends_later_than_with_its_fair_share(seed: int, altruism: float) -> None:
    """Whatever jobs arrive, and whatever types they cannot run on."""
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    throughput = rng.uniform(0.5, 5.0, (jobs, types))
    throughput[:, 1:][rng.random((jobs, types - 1)) < 0.4] = 0.0
    capacity, work = rng.integers(1, 4, types), rng.exponential(3600.0, jobs)
    arrival = np.sort(rng.exponential(1800.0, jobs))
    fair = ends(Proportional(), throughput, capacity, work, arrival)
    assert (ends(Carbyne(altruism=altruism), throughput, capacity, work, arrival) <= fair * (1 + 1e-6) + 1e-3).all()


def test_a_job_claims_what_it_needs_to_end_with_its_fair_rest_and_all_of_its_share_if_it_is_behind() -> None:
    """Of 1000 fair steps 250 are left: a quarter is claimed."""
    remaining, fair = np.array([0.0, 250.0, 1000.0, 2000.0, 1.0]), np.array([1000.0, 1000, 1000, 1000, 0])
    assert claims(remaining, fair).tolist() == [0, 0.25, 1, 1, 1]


ONLY_A = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])  # the third cannot run on b


def test_without_altruism_jobs_have_their_fair_share_and_the_shortest_what_is_left_over() -> None:
    """Each has a third of both, the third job none of b: that third goes to the shortest job that can use it."""
    answer = Carbyne(altruism=0.0).decide(view_of(ONLY_A, [1, 1], [90.0, 300.0, 100.0]))
    np.testing.assert_allclose(answer.x, [[1 / 3, 2 / 3], [1 / 3, 1 / 3], [1 / 3, 0]])


@pytest.mark.parametrize(("altruism", "first", "new"), [(0.0, 1 / 2, 3 / 4), (1.0, 3 / 7, 23 / 28)])
def test_a_job_that_is_ahead_by_leftover_time_gives_to_a_shorter_one(altruism: float, first: float, new: float) -> None:
    """The first does 30 steps in 30 s, with its fair 2/3 it had done 20: 60 are left, of fair ones 70. Then a job of 10
    steps arrives. Fair shares are 1/2, and the first claims 6/7 of it, 3/7. The new one has 1/2, the third's 1/4 of b,
    and the 1/14 that the first gives: 23/28.
    """
    policy = Carbyne(altruism=altruism)
    before = policy.decide(view_of(ONLY_A, [1, 1], [90.0, 300.0, 100.0]))
    memory: dict[str, Array] = {name: np.append(column, NEW[name]) for name, column in before.memory.items()}
    throughput = np.vstack((ONLY_A, [1.0, 1.0]))
    after = policy.decide(view_of(throughput, [1, 1], [60.0, 280.0, 90.0, 10.0], at=30.0, memory=memory))
    np.testing.assert_allclose(after.memory["fair_rest"], [70.0, 280.0, 90.0, 10.0])
    np.testing.assert_allclose(after.x.sum(axis=1)[[0, 3]], [first, new])


def test_a_promise_does_not_outlive_the_crowd_in_which_it_was_made() -> None:
    """A job of 1000 s beside nine of 100 s on one accelerator: these end at 1000 s, and it, a tenth of the way, at
    1900. It does not give its share away then to two jobs that come at 1000 s, though in the crowd it had 10,000 s.
    """
    work, arrival = np.array([1000.0, *[100.0] * 9, 500.0, 500.0]), np.array([0.0] * 10 + [1000.0] * 2)
    found = ends(Carbyne(), np.ones((12, 1)), np.array([1]), work, arrival)
    np.testing.assert_allclose(found, ends(Proportional(), np.ones((12, 1)), np.array([1]), work, arrival))
    np.testing.assert_allclose(found[[0, 10]], [2900.0, 2500.0])


def test_a_job_that_cannot_run_now_has_a_fair_rest_from_when_it_can() -> None:
    answer = Carbyne().decide(view_of(np.zeros((1, 1)), [1], [100.0]))
    assert answer.memory["fair_rest"].tolist() == [NOT_YET]
    back = Carbyne().decide(view_of(np.ones((1, 1)), [1], [100.0], at=50.0, memory=dict(answer.memory)))
    assert back.memory["fair_rest"].tolist() == [100.0]


def test_altruism_beyond_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"altruism is 2; it is between 0"):
        Carbyne(altruism=2)
