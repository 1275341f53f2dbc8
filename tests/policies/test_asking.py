"""A question that could have but one answer is not asked; nothing else may come of it than if it were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.backends.simulated import FaultModel
from eunomia.model.decisions import Decision
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.promises import Promises
from eunomia.placement.radix_sort import rising
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.srtf import Srtf
from eunomia.testing.small_worlds import draw, play

SEEDS = st.integers(0, 2**32 - 1)
PROMISING: tuple[Policy, ...] = (
    Fifo(),
    Fifo(backfill="skip"),
    Fifo(backfill="easy"),
    Srtf(),
    Las(quantum=400.0),
)


class AlwaysAsked:
    """The same policy, promising nothing."""

    def __init__(self, policy: Policy):
        self.info = replace(policy.info, promises=Promises())
        self.decide = policy.decide


def decided(
    policy: Policy, seed: int, terms: LeaseTerms, types: int | None
) -> tuple[list[tuple[float, Decision]], int]:
    """Return who was stopped and started when, and how often the policy was asked."""
    played = play(
        policy,
        draw(seed, types=types),
        terms=terms,
        overheads=Overheads(start_s=5.0, restore_s=7.0),
        faults=FaultModel(node_failures_per_hour=0.5, node_repair_s=600.0, cancel_fraction=0.1, cancel_after_s=300.0),
        seed=seed,
    )
    return [(at, d) for at, d in played.decisions if type(d).__name__ in ("Start", "Stop")], played.asks


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(PROMISING), st.booleans(), st.sampled_from([1, None]))
def test_without_the_questions_spared_the_same_jobs_start_and_stop(
    seed: int, policy: Policy, recall: bool, types: int | None
) -> None:
    terms = LeaseTerms(recall=recall)
    mine, asks = decided(policy, seed, terms, types)
    plain, more = decided(AlwaysAsked(policy), seed, terms, types)  # type: ignore[arg-type]
    assert mine == plain
    assert asks <= more


@pytest.mark.parametrize("policy", PROMISING)
def test_most_arrivals_at_a_quiet_cluster_are_no_question(policy: Policy) -> None:
    assert sum(decided(policy, seed, LeaseTerms(recall=True), 1)[1] for seed in range(3)) < sum(
        decided(AlwaysAsked(policy), seed, LeaseTerms(recall=True), 1)[1]  # type: ignore[arg-type]
        for seed in range(3)
    )


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.floats(-1e9, 1e9), st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e308, -1e308])), max_size=200)
)
def test_ranking_is_a_stable_sort(keys: list[float]) -> None:
    key = np.array(keys, dtype=np.float64)
    assert rising(key).tolist() == np.argsort(key, kind="stable").tolist()


def test_ranking_many_numbers_in_few_heaps_is_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    few, far = rng.integers(0, 5, 3000).astype(float), np.where(rng.random(3000) < 0.5, 1e9, 1.0) * rng.random(3000)
    for key in (few, far, -far, rng.normal(0, 1, 3000), rng.lognormal(0, 5, 3000)):
        assert rising(key).tolist() == np.argsort(key, kind="stable").tolist()
