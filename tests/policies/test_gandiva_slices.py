"""Gandiva's pairs and slices, kind by kind and compiled, are those of a plain loop over pairs and units."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.model.tolerance import is_at_least
from eunomia.model.view import View
from eunomia.policies.grants.gandiva.time_slicing import counted, packed, together
from eunomia.policies.pair_memory import NO_PAIR


def crowded(seed: int) -> View:
    """Jobs of a few classes and sizes on two types; some cannot run on one, and some pairs gain alike."""
    rng = np.random.default_rng(seed)
    jobs, classes = int(rng.integers(2, 40)), int(rng.integers(1, 5))
    job_class, size = rng.integers(0, classes, jobs), rng.choice([1, 2], jobs)
    alone = rng.choice([0.0, 1.0, 2.0], (classes, 2), p=[0.2, 0.5, 0.3])
    kept = rng.choice([0.0, 0.4, 0.5, 0.6, 0.7], (classes, classes, 1))
    columns = {
        "scale_factor": size,
        "throughput": alone[job_class],
        "capacity": np.array([4.0, float(rng.integers(1, 4))]),
        "job_class": job_class,
        "packed_throughput": kept * alone[:, None, :] * (alone[None, :, :] > 0),
    }
    return View(at=0.0, types=("a", "b"), jobs=jobs, columns=columns)


def paired_plainly(view: View, pair: Floats) -> Floats:
    """Return the pairs by looking at every two jobs of one size, the best gain first."""
    pair, number = pair.copy(), pair.max(initial=NO_PAIR) + 1
    can = ((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity)).any(axis=1)
    for size in np.unique(view.scale_factor).tolist():
        free = np.flatnonzero((pair == NO_PAIR) & (view.scale_factor == size) & can)
        m, n = (free[place] for place in np.triu_indices(len(free), 1))
        gain = together(view, m, n)
        best = np.where(is_at_least(gain, 1.0).any(axis=1), gain.max(axis=1, initial=0.0), 0.0)
        for one in rising(-best)[: np.count_nonzero(best)].tolist():
            if pair[m[one]] == NO_PAIR and pair[n[one]] == NO_PAIR:
                pair[m[one]] = pair[n[one]] = number
                number += 1
    return pair


@pytest.mark.parametrize("seed", range(60))
def test_pairs_are_those_of_looking_at_every_two_jobs(seed: int) -> None:
    view, rng = crowded(seed), np.random.default_rng(seed)
    before = np.full(view.jobs, NO_PAIR)
    if view.jobs > 3 and rng.random() < 1 / 2:
        before[rng.permutation(view.jobs)[:2]] = 0.0
    assert packed(view, before).tolist() == paired_plainly(view, before).tolist()


def counted_plainly(
    order: Ints, size: Ints, speed: Floats, gain: Floats, on_type: Ints, runs: Bools, lasts: Bools, capacity: Floats
) -> list[int]:
    type, types = [-1] * len(size), np.arange(len(capacity))
    left, below, kept = capacity.copy(), capacity.copy(), np.zeros(len(capacity), dtype=bool)
    for unit in order.tolist():
        wishes = np.lexsort((-speed[unit], -gain[unit], types != on_type[unit]))
        wishes = wishes[gain[unit, wishes] > 0][: 1 if lasts[unit] else None]
        fits = wishes[(left[wishes] >= size[unit]) & (~kept[wishes] | runs[unit])]
        if len(fits):
            type[unit] = int(fits[0])
            left[fits[0]] -= size[unit]
            below[fits[0]] -= 0 if lasts[unit] else size[unit]
        else:
            kept[wishes[below[wishes] >= size[unit]]] = True
    return type


@pytest.mark.parametrize("seed", range(60))
def test_units_are_counted_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units, types = int(rng.integers(1, 25)), int(rng.integers(1, 4))
    runs = rng.random(units) < 1 / 2
    given = (
        rng.permutation(units), rng.integers(1, 5, units), rng.integers(0, 3, (units, types)).astype(float),
        rng.choice([0.0, 1.0, 1.2], (units, types)), np.where(runs, rng.integers(0, types, units), -1), runs,
        runs & (rng.random(units) < 1 / 2), rng.integers(2, 20, types).astype(float),
    )  # fmt: skip
    assert counted(*given).tolist() == counted_plainly(*given)
