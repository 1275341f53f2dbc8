"""Pairs that share an accelerator: the exact matching, and what an estimate is worth beside it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eunomia_reproduction.pairs import exact_matching, greedy_matching


def drawn_worth(seed: int, jobs: int) -> np.ndarray:
    worth = np.random.default_rng(seed).uniform(0.0, 2.0, (jobs, jobs))
    return np.asarray(worth + worth.T)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_matching_has_the_largest_total_of_all(seed: int) -> None:
    worth, jobs = drawn_worth(seed, 6), range(6)
    totals = [sum(worth[order[k], order[k + 1]] for k in (0, 2, 4)) for order in itertools.permutations(jobs)]
    found = exact_matching(worth)
    assert sorted(job for pair in found for job in pair) == list(jobs)
    assert sum(worth[a, b] for a, b in found) == pytest.approx(max(totals))


def test_greedy_takes_the_best_pair_though_the_rest_has_to_make_do() -> None:
    worth = np.zeros((4, 4))
    for a, b, value in ((0, 1, 2.0), (0, 2, 1.9), (1, 3, 1.9), (2, 3, 0.1)):
        worth[a, b] = worth[b, a] = value
    assert greedy_matching(worth) == [(0, 1), (2, 3)]
    assert exact_matching(worth) == [(0, 2), (1, 3)]
