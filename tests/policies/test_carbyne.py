"""Carbyne's claims, and its promises on a fluid cluster where shares are received as answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.model.view import View
from eunomia.policies.shares.carbyne import NOT_YET, Carbyne, claims
from eunomia.policies.shares.proportional import Proportional


def a_view(seed: int) -> View:
    """Up to 6 jobs with work for minutes to hours, on up to 3 types."""
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    throughput = rng.uniform(0.5, 5.0, (jobs, types))
    throughput[:, 1:][rng.random((jobs, types - 1)) < 0.2] = 0.0
    return view_of(throughput, rng.integers(1, 4, jobs), rng.integers(3, 7, types), rng.exponential(3600.0, jobs), rng)


def view_of(
    throughput: Floats, size: Ints, capacity: Ints, work: Floats, rng: np.random.Generator | None = None
) -> View:
    columns = {
        "throughput": np.asarray(throughput, dtype=float),
        "scale_factor": np.asarray(size),
        "weight": np.ones(len(work)) if rng is None else rng.uniform(0.5, 2.0, len(work)),
        "capacity": np.asarray(capacity, dtype=float),
        "remaining": np.asarray(work, dtype=float),
    }
    types = tuple("abc"[: len(capacity)])
    return View(at=0.0, types=types, jobs=len(work), columns=columns, memory={"promise": np.full(len(work), NOT_YET)})


def ends(policy: Carbyne, view: View) -> tuple[Floats, Floats]:
    """Give every job exactly its shares, and ask again when a job ends; return ends and promises."""
    left, end, promise = np.arange(view.jobs), np.zeros(view.jobs), np.full(view.jobs, np.inf)
    while len(left):
        answer = policy.decide(view)
        if "promise" in answer.memory:
            promise[left] = answer.memory["promise"]
        rate = (answer.x * view.throughput).sum(axis=1)
        step = float((view.remaining / rate).min())
        remaining = view.remaining - rate * step
        goes_on = np.flatnonzero(remaining > 1e-6)
        end[np.delete(left, goes_on)] = view.at + step
        columns = {**view.columns, "remaining": np.maximum(remaining, 0.0)}
        view = replace(view, at=view.at + step, columns=columns, memory=dict(answer.memory)).part(
            goes_on, view.capacity
        )
        left = left[goes_on]
    return end, promise


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0]))
def test_without_new_jobs_every_promise_is_kept(seed: int, altruism: float) -> None:
    end, promise = ends(Carbyne(altruism=altruism), a_view(seed))
    assert (end <= promise * (1 + 1e-6) + 1e-3).all()


@given(st.integers(0, 2**32 - 1))
def test_without_altruism_it_is_the_fair_share(seed: int) -> None:
    view = a_view(seed)
    np.testing.assert_array_equal(Carbyne(altruism=0.0).decide(view).x, Proportional().decide(view).x)


def test_a_job_claims_what_it_needs_to_end_in_time_and_all_of_its_share_if_it_cannot() -> None:
    """10 steps a second for 100 s are 1000 steps: of 250 a quarter is claimed, of 1000 and more all."""
    remaining, rate = np.array([0.0, 250.0, 1000.0, 2000.0, 1.0, 1.0]), np.array([10.0, 10, 10, 10, 10, 0])
    left = np.array([100.0, 100, 100, 100, -5, 100])
    assert claims(remaining, rate, left).tolist() == [0, 0.25, 1, 1, 1, 1]


def test_what_a_long_job_does_not_need_helps_a_short_one() -> None:
    """Three jobs of 100, 200 and 900 s share one accelerator by thirds: promised 300, 600 and 2700 s.

    The first ends at 300 s; 100 and 800 s are left. Shares of a half would do, and claims are 100 / 300 and 800 / 2400:
    a third each. The last third goes to the second: it ends after 100 / (2/3) = 150 s more, with halves after 200.
    """
    view = view_of(np.ones((3, 1)), np.ones(3, dtype=int), np.ones(1, dtype=int), np.array([100.0, 200.0, 900.0]))
    altruistic, promise = ends(Carbyne(), view)
    fair, _ = ends(Carbyne(altruism=0.0), view)
    np.testing.assert_allclose(promise, [300, 600, 2700])
    np.testing.assert_allclose(altruistic, [300, 450, 1200])
    np.testing.assert_allclose(fair, [300, 500, 1200])


def test_who_cannot_run_now_is_promised_an_end_when_it_can() -> None:
    lost = view_of(np.zeros((1, 1)), np.ones(1, dtype=int), np.ones(1, dtype=int), np.array([100.0]))
    answer = Carbyne().decide(lost)
    assert answer.memory["promise"].tolist() == [NOT_YET]
    back = replace(lost, at=50.0, columns={**lost.columns, "throughput": np.ones((1, 1))}, memory=answer.memory)
    assert Carbyne().decide(back).memory["promise"].tolist() == [150.0]


def test_altruism_beyond_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"altruism is 2; it is between 0"):
        Carbyne(altruism=2)
