"""What holds of the Gittins index for any past, and of Tiresias' queues in any small world."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.answers import Order
from eunomia.model.arrays import Floats
from eunomia.model.view import View
from eunomia.policies.order.gittins import MOST_SAMPLES, textbook, to_quantiles, within
from eunomia.policies.order.tiresias import Tiresias
from eunomia.policies.order.tiresias_queues import parse_limits
from eunomia.testing.small_worlds import draw, play

PASTS = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=30).map(lambda s: np.sort(np.array(s)))
ATTAINED = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=8).map(np.array)


def by_definition(past: Floats, a: float, delta: float) -> float:
    """P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]."""
    left = past[past > a] - a
    return float(np.mean(left <= delta) / np.mean(np.minimum(left, delta))) if len(left) else 0.0


@given(PASTS, ATTAINED)
def test_the_textbook_index_is_its_definition(past: Floats, attained: Floats) -> None:
    ends = [past[past > a] - a for a in attained.tolist()]  # the Δ that reach a sample
    expected = [
        max((by_definition(past, a, delta) for delta in left.tolist()), default=0.0)
        for a, left in zip(attained.tolist(), ends, strict=True)
    ]
    np.testing.assert_allclose(textbook(past, attained), expected, rtol=1e-6)


@given(PASTS, ATTAINED, st.sampled_from([100.0, 7777.77, 1e5, math.inf]))
def test_the_index_within_a_queue_is_its_definition(past: Floats, attained: Floats, delta: float) -> None:
    found = within(past, attained, np.full(len(attained), delta))
    np.testing.assert_allclose(found, [by_definition(past, a, delta) for a in attained.tolist()], rtol=1e-6)


@given(PASTS, ATTAINED, st.sampled_from([0.5, 2.0, 64.0]), st.floats(1.0, 1e6))
def test_in_another_unit_of_service_the_index_is_that_much_less(
    past: Floats, attained: Floats, unit: float, delta: float
) -> None:
    np.testing.assert_allclose(textbook(past * unit, attained * unit), textbook(past, attained) / unit, rtol=1e-9)
    limit = np.full(len(attained), delta)
    scaled = within(past * unit, attained * unit, limit * unit)
    np.testing.assert_allclose(scaled, within(past, attained, limit) / unit, rtol=1e-9)


def test_when_all_jobs_are_alike_the_index_rises_to_the_end() -> None:
    index = textbook(np.full(20, 100.0), np.array([0.0, 30, 60, 99]))
    np.testing.assert_allclose(index, [1 / 100, 1 / 70, 1 / 40, 1])


def test_of_a_distribution_without_memory_the_index_stays() -> None:
    """The quantiles of an exponential distribution of mean 1000, just after one of them: 1 / 1000 everywhere."""
    past = -1000 * np.log1p(-(np.arange(1000) + 0.5) / 1000)
    np.testing.assert_allclose(textbook(past, past[[0, 200, 500, 800]]), 1e-3, rtol=0.01)


def test_where_old_jobs_last_ever_longer_the_index_falls_as_under_least_service() -> None:
    past = 100 * (1 - (np.arange(1000) + 0.5) / 1000) ** -1.0  # Pareto
    assert (np.diff(textbook(past, np.array([100.0, 300, 1000, 3000]))) < 0).all()


def test_of_very_many_jobs_the_quantiles_are_kept() -> None:
    past = np.random.default_rng(0).exponential(1000, 20_000)
    kept = to_quantiles(past)
    assert len(kept) == MOST_SAMPLES
    assert (kept[0], kept[-1]) == (past.min(), past.max())
    assert np.median(kept) == pytest.approx(np.median(past), rel=0.01)


class Watched(Tiresias):
    """Tiresias that keeps what it saw and said."""

    seen: list[tuple[View, Order]]

    def decide(self, view: View) -> Order:
        answer = super().decide(view)
        self.seen.append((view, answer))
        return answer


PARAMETERS = st.fixed_dictionaries(
    {
        "limits": st.sampled_from([150.0, "200,2000", "none"]),
        "promote": st.sampled_from([math.inf, 2.0, 1.0]),
        "placement": st.sampled_from(["anywhere", "consolidate"]),
        "index": st.sampled_from(["las", "gittins"]),
        "gittins": st.sampled_from(["queue", "textbook", "authors"]),
    }
)


@settings(max_examples=15)
@given(st.integers(0, 10_000), PARAMETERS)
def test_a_job_is_in_the_queue_of_its_service_since_it_was_promoted(seed: int, parameters: dict[str, object]) -> None:
    policy = Watched(**parameters)  # type: ignore[arg-type]
    object.__setattr__(policy, "seen", [])
    played = play(policy, draw(seed, jobs=10), seed=seed)
    assert played.counts == {"finished": 10}
    limits = np.concatenate(([0.0], parse_limits(policy.limits), [np.inf]))
    for view, answer in policy.seen:
        queue = answer.memory["queue"].astype(np.int64)
        served = view.service - answer.memory["served_before"]
        assert (served >= limits[queue] * (1 - 1e-6)).all()
        assert (served < limits[queue + 1]).all()
        places = queue[answer.rows.job]
        if policy.placement == "anywhere":
            assert (np.diff(places) >= 0).all()  # the first queue first
        anew = answer.memory["served_before"] != view.memory["served_before"]
        assert (served[anew] == 0).all()
        assert (queue[anew] == 0).all()
        assert (view.on_type[anew] < 0).all()


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([150.0, "200,2000", "none"]))
def test_no_job_is_stopped_for_a_lower_queue_or_by_a_later_entry_into_its_own(seed: int, limits: float | str) -> None:
    """On one type, where a job never moves. Who has just come into a queue is not settled there, and may be stopped."""
    policy = Watched(limits=limits, placement="anywhere")
    object.__setattr__(policy, "seen", [])
    play(policy, draw(seed, types=1), seed=seed)
    for view, answer in policy.seen:
        order, size, left = answer.rows.job, view.scale_factor, int(view.capacity.sum())
        queue, was = answer.memory["queue"], view.memory["queue"]
        runs = np.zeros(view.jobs, dtype=bool)
        for m in order.tolist():
            runs[m] = size[m] <= left
            left -= int(size[m]) * int(runs[m])
        stops, starts = (view.on_type >= 0) & ~runs, (view.on_type < 0) & runs
        settled = stops & (queue == was)
        assert not settled.any() or starts.any()
        for m in np.flatnonzero(settled).tolist():
            assert (queue[starts] < queue[m]).any()
