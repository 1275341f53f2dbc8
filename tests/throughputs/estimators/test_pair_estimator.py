"""Our estimator of pair rates: exact, robust, calibrated, and no better than chance where there is nothing to learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eunomia.throughputs import read_table
from eunomia.throughputs.estimators.cell_posterior import CellPosterior
from eunomia.throughputs.estimators.judging import CHOICES, JudgeSettings, choose_profiles, judge
from eunomia.throughputs.estimators.matching import ReferenceSet
from eunomia.throughputs.estimators.pair_estimator import NOISE, PairEstimator
from eunomia.throughputs.estimators.pair_table import PairTable, features_of


def some_prior(cells: int, seed: int = 0) -> np.ndarray:
    factor = np.random.default_rng(seed).normal(size=(cells, cells))
    return factor @ factor.T / cells + 0.1 * np.eye(cells)


def test_conditioning_one_by_one_is_that_of_all_at_once() -> None:
    prior, mean = some_prior(30), np.linspace(0, 1, 30)
    seen, values = [3, 17, 5, 3, 29], [0.2, 0.9, 0.1, 0.3, 0.5]
    posterior = CellPosterior(prior, mean)
    for cell, value in zip(seen, values, strict=True):
        posterior.observe(cell, value, 0.05)
    gain = prior[:, seen] @ np.linalg.inv(prior[np.ix_(seen, seen)] + 0.05 * np.eye(5))
    assert np.allclose(posterior.mean, mean + gain @ (np.array(values) - mean[seen]))
    assert np.allclose(posterior.variance, np.diag(prior - gain @ prior[seen]))


def test_a_copy_learns_on_its_own() -> None:
    posterior = CellPosterior(some_prior(5), np.zeros(5))
    posterior.copy().observe(0, 1.0, 0.1)
    assert posterior.count == 0 and not posterior.mean.any()


def test_the_most_telling_measurement_is_that_of_the_least_known_cell() -> None:
    posterior = CellPosterior(np.diag([1.0, 2.0, 0.5]), np.zeros(3))
    assert posterior.most_telling(np.array([0, 1, 2]), 0.1, np.arange(3)) == 1
    posterior.observe(1, 0.0, 0.1)
    assert posterior.most_telling(np.array([0, 1, 2]), 0.1, np.arange(3)) == 0


def estimator() -> PairEstimator:
    names = (*(f"A (batch size {2**m})" for m in range(4)), "B", "C")
    return PairEstimator(features_of(names, np.random.default_rng(1).uniform(1, 4, (6, 2))))


def test_one_wild_value_in_fifty_moves_an_estimate_by_less_than_its_interval() -> None:
    rng = np.random.default_rng(0)
    clean, poisoned = estimator(), estimator()
    places = [(int(i), int(w), int(k)) for i, w, k in zip(*(rng.integers(0, n, 50) for n in (6, 2, 6)), strict=True)]
    for place, cell in enumerate(places):
        value = float(np.clip(0.6 + rng.normal(0, 0.02), 0, 1))
        clean.observe(*cell, value)
        poisoned.observe(*cell, 600.0 if place == 40 else value)
    before, after = clean.estimate(), poisoned.estimate()
    assert (np.abs(after.median - before.median) < (before.high - before.low)).all()


def test_both_members_learn_from_one_run() -> None:
    found = estimator()
    before = found.estimate().median[5, 0, 0]
    found.observe(0, 0, 5, 0.9)  # beside job 5, job 0 keeps nearly all: job 5 is a mild partner and has one
    assert found.estimate().median[5, 0, 0] != before


def test_a_pair_with_larger_batches_than_one_that_did_not_fit_does_not_fit() -> None:
    found = estimator()
    found.observe(1, 0, 4, 0.0)
    fits = found.estimate().fits
    assert not fits[1, 0, 4] and not fits[3, 0, 4] and not fits[4, 0, 2]
    assert fits[0, 0, 4] and fits[1, 1, 4] and fits[1, 0, 5]


def small_table() -> PairTable:
    """Eight jobs on two types: the rate beside a partner depends on both members and on the type."""
    names = (*(f"A (batch size {2**m})" for m in range(4)), *(f"B (batch size {2**m})" for m in range(4)))
    mild = np.linspace(0.9, 0.4, 8)
    kept = np.clip(mild[:, None, None] * np.array([1.0, 0.8])[None, :, None] + 0.2 * mild[None, None, :], 0, 1)
    return PairTable("small", ("a", "b"), names, np.random.default_rng(2).uniform(1, 3, (8, 2)), kept)


def test_telling_profiles_have_their_number_and_no_measured_value_chooses_them() -> None:
    table = small_table()
    refs, new = ReferenceSet(np.arange(0, 8, 2), table.kept[::2][:, :, ::2]), np.arange(1, 8, 2)
    chosen = choose_profiles(table, refs, new, 0.4)
    assert {int(each.sum()) for each in chosen.values()} == {3}
    turned = PairTable("small", table.types, table.job_types, table.alone, table.kept[::-1].copy())
    again = choose_profiles(turned, refs, new, 0.4)
    assert all(np.array_equal(chosen[x], again[x]) for x in chosen)
    assert {int(each.sum()) for each in choose_profiles(table, refs, new, 0.0).values()} == {1}


@pytest.mark.nightly
@pytest.mark.slow
def test_telling_measurements_teach_more_than_random_ones(gavel: PairTable) -> None:
    error = {
        choose: np.mean([judge(gavel, JudgeSettings(choose=choose, seed=s)).summary()["mae_hidden"] for s in range(5)])
        for choose in CHOICES
    }
    assert error["telling"] < error["random"]


@pytest.fixture(scope="module")
def gavel(reference: Path) -> PairTable:
    return PairTable.of(read_table(str(reference / "gavel" / "simulation_throughputs.json.gz")))


@pytest.mark.slow
def test_pair_rates_are_estimated_within_the_goal_with_calibrated_intervals(gavel: PairTable) -> None:
    found = [judge(gavel, JudgeSettings(seed=seed)).summary() for seed in range(10)]
    assert np.mean([each["mae_hidden"] for each in found]) <= 0.055
    assert 0.78 <= np.mean([each["coverage80_hidden"] for each in found]) <= 0.84


@pytest.mark.slow
def test_the_skill_vanishes_when_the_measurements_are_shuffled(gavel: PairTable) -> None:
    ours = np.mean([judge(gavel, JudgeSettings(seed=s, shuffle=True)).summary()["mae_hidden"] for s in range(3)])
    mean = np.mean(
        [
            judge(gavel, JudgeSettings(seed=s, shuffle=True, method="column_mean")).summary()["mae_hidden"]
            for s in range(3)
        ]
    )
    assert ours > 0.9 * mean


@pytest.mark.slow
def test_the_published_method_is_no_better_than_the_column_mean_on_its_own_table(gavel: PairTable) -> None:
    def error(method: str, legacy: bool = False) -> float:
        found = [judge(gavel, JudgeSettings(method=method, legacy_indexing=legacy, seed=s)) for s in range(3)]
        return float(np.mean([each.summary()["mae_hidden"] for each in found]))

    assert error("match") > 0.95 * error("column_mean")
    assert error("match", legacy=True) > error("match")


def test_the_same_seed_gives_the_same_judgement(gavel: PairTable) -> None:
    settings = JudgeSettings(method="match", seed=3)
    assert judge(gavel, settings).summary() == judge(gavel, settings).summary()


def test_the_noise_of_a_measurement_is_smaller_than_what_is_unknown_before() -> None:
    assert estimator()._posterior.variance.min() > 50 * NOISE
