"""Tables of jobs that an engine may find hard: tied rates, weights over twelve decades, loads around what there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from eunomia.model.arrays import Floats

Problem: TypeAlias = tuple[Floats, Floats, Floats, Floats]  # rate (row, column), size, capacity, weight

LOADS = (0.3, 0.7, 0.9, 1.0, 1.1, 1.5, 3.0, 8.0)


def continuous(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """No two rows are alike."""
    speed = np.linspace(1.4, 0, columns) + rng.normal(0, 0.35, (rows, columns))
    return np.asarray(np.exp(speed + rng.normal(0, 1, (rows, 1))))


def rank_one(rng: np.random.Generator, rows: int, columns: int, noise: float = 0.0) -> Floats:
    """All rows are alike up to a scale, or nearly."""
    column = np.linspace(1.4, 0, columns) + rng.normal(0, 0.2, columns)
    return np.asarray(np.exp(rng.normal(0, 1, (rows, 1)) + column + noise * rng.normal(0, 1, (rows, columns))))


def half_rank_one(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Half of the rows are alike up to a scale."""
    rate, other = rank_one(rng, rows, columns), rng.random(rows) < 0.5
    rate[other] = continuous(rng, int(other.sum()), columns)
    return rate


def few_rows(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Five rows, again and again."""
    return continuous(rng, 5, columns)[rng.integers(0, 5, rows)]


def few_directions(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Twenty rows, up to a scale."""
    return np.asarray(continuous(rng, 20, columns)[rng.integers(0, 20, rows)] * np.exp(rng.normal(0, 1, (rows, 1))))


def twin_columns(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Every column but an odd last one is there twice."""
    rate, half = continuous(rng, rows, columns), max(1, columns // 2)
    rate[:, half : 2 * half] = rate[:, :half]
    return rate


def one_rate(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """A row has one rate everywhere."""
    return np.asarray(np.ones((rows, columns)) * np.exp(rng.normal(0, 1, (rows, 1))))


def worthless_column(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """One row in a hundred can use the first column."""
    rate = continuous(rng, rows, columns)
    rate[rng.random(rows) < 0.99, 0] = 0.0
    return rate


def zeros(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Two rates in five are 0, and one row in ten."""
    rate = continuous(rng, rows, columns)
    rate[rng.random(rate.shape) < 0.4] = 0.0
    rate[rng.random(rows) < 0.1] = 0.0
    return rate


def rank_one_with_zeros(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Alike up to a scale where a rate is not 0."""
    rate = rank_one(rng, rows, columns)
    rate[rng.random(rate.shape) < 0.3] = 0.0
    return rate


def whole_numbers(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Rates are 1, 2, 3 or 4."""
    return np.asarray(np.ceil(rng.uniform(0.1, 10, (rows, columns)) / 3))


def powers_of_two(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Rates are 1, 2, 4, 8 or 16, so that many ratios are equal."""
    return np.asarray(2.0 ** rng.integers(0, 5, (rows, columns)))


def nearly_rank_one(noise: float) -> Callable[[np.random.Generator, int, int], Floats]:
    """Return the family whose rows are alike up to a scale and this much noise."""
    return lambda rng, rows, columns: rank_one(rng, rows, columns, noise)


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "continuous": continuous,
    "rank one": rank_one,
    "half rank one": half_rank_one,
    "few rows": few_rows,
    "few directions": few_directions,
    "noise 1e-2": nearly_rank_one(1e-2),
    "noise 1e-3": nearly_rank_one(1e-3),
    "noise 1e-4": nearly_rank_one(1e-4),
    "noise 1e-6": nearly_rank_one(1e-6),
    "noise 1e-8": nearly_rank_one(1e-8),
    "noise 1e-10": nearly_rank_one(1e-10),
    "twin columns": twin_columns,
    "one rate": one_rate,
    "worthless column": worthless_column,
    "zeros": zeros,
    "rank one with zeros": rank_one_with_zeros,
    "whole numbers": whole_numbers,
    "powers of two": powers_of_two,
}


def problem(family: str, rows: int, columns: int, seed: int) -> Problem:
    """Draw a problem: rates of the family, and by chance sizes, capacities, a load of LOADS and weights.

    Weights are 1 and 2; or those over twelve decades; or those with a deviation of a half. Every third seed has sizes
    of 1, every fourth equal capacities.
    """
    rng = np.random.default_rng((rows, columns, seed, sorted(FAMILIES).index(family)))
    rate = np.asfortranarray(FAMILIES[family](rng, rows, columns))
    size = rng.choice((1.0, 2.0, 4.0, 8.0), rows, p=(0.7, 0.1, 0.15, 0.05)) if seed % 3 else np.ones(rows)
    load, spread = rng.choice(LOADS), rng.integers(3)
    weight = rng.choice((1.0, 2.0), rows)
    weight *= (1.0, 10.0 ** rng.uniform(-6, 6, rows), np.exp(rng.normal(0, 0.5, rows)))[spread]
    parts = rng.dirichlet(np.full(columns, 5.0)) if seed % 4 else np.full(columns, 1 / columns)
    return rate, size, size.sum() / load * parts, weight
