"""Newton's method for prices: what rows ask for is what each does at least cost, and the steps end where it fits."""

from itertools import combinations

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.solvers.pricing.newton import PriceMarket, widths
from eunomia.solvers.pricing.rows import NeedRows


def some_rows(count: int, columns: int, seed: int, *, base: float = 0.0) -> NeedRows:
    """Return rows with continuous speeds, that need at level 1 half of the best of them on average."""
    rng = np.random.default_rng(seed)
    T = np.exp(rng.normal(0, 0.5, (columns, count)))
    need = T.max(axis=0) * rng.uniform(0.1, 0.9, count)
    return NeedRows(T, np.full(count, base), rng.choice((1.0, 2.0, 4.0), count), need, None, None, None)


def cheapest(rows: NeedRows, price: Floats, t: float) -> Floats:
    """Return what rows ask of each column (column,), from all mixtures of two of their choices, one row at a time."""
    K, asked = len(price), np.zeros(len(price))
    for i in range(rows.count):
        need, best, shares = rows.a[i] * t, np.inf, np.zeros(K)
        points = [(rows.base[i], 0.0, -1)] + [(rows.T[k, i], price[k], k) for k in range(K)]
        for (slow, low, left), (fast, high, right) in combinations(sorted(points), 2):
            if slow <= need <= fast and slow < fast:
                part = (need - slow) / (fast - slow)
                if (cost := low + part * (high - low)) < best:
                    best, shares = cost, np.zeros(K)
                    if left >= 0:
                        shares[left] += 1 - part
                    shares[right] += part
        asked += rows.size[i] * shares * (need > rows.base[i])
    return asked


@pytest.mark.parametrize("base", [0.0, 0.6])
@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_rows_ask_for_the_cheapest_mixture(columns: int, base: float) -> None:
    rows, price = some_rows(60, columns, columns, base=base), np.linspace(0.5, 1.5, columns)
    limit, settled = np.full(columns, 7.0), np.stack((np.full(columns, 2.0), np.full(columns, 3.0), np.ones(columns)))
    excess, rise = PriceMarket(rows, settled, 0.5, limit).excess(price * limit, 1.0)
    asked = cheapest(rows, price, 1.0) + 2.0 + 3.0 * 0.5 + 0.25
    assert excess == pytest.approx(asked / limit - 1, rel=1e-12, abs=1e-12)
    step = 1e-7
    above, _ = PriceMarket(rows, settled, 0.5, limit).excess(price * limit, 1.0 + step)
    assert rise == pytest.approx((above - excess) / step, rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_steps_end_where_what_is_asked_for_is_all_capacity(seed: int) -> None:
    rows, rng = some_rows(30_000, 4, seed), np.random.default_rng(seed)
    limit = 0.2 * rows.size.sum() * rng.dirichlet(np.full(4, 5.0))
    market = PriceMarket(rows, np.zeros((3, 4)), 0.0, limit)
    begin = limit * rows.T.mean(axis=1)
    value, t = begin / begin.sum(), 0.5
    for _ in range(30):  # a slow way to a fair beginning: dearer what is short
        excess, _ = market.excess(value, t)
        value, t = (
            value * np.clip(1 + 0.1 * excess, 0.7, 1.4),
            t * (1 - 0.2 * float(np.clip(value @ excess, -0.5, 0.5))),
        )
        value /= value.sum()
    found = market.balance(value, t, 10.0, market.slope(value, t), 1e-4)
    assert found is not None
    excess, _ = market.excess(found[0], found[1])
    assert np.abs(excess).max() < 5e-3
    sharp = market.balance(found[0], found[1], 10.0, market.slope(found[0], found[1]), 1e-6)
    assert sharp is not None
    assert np.abs((found[0] - sharp[0]) / widths(sharp[0])).max() < 10 * found[2] + 1e-6


def test_prices_of_rows_that_are_all_alike_are_not_claimed_to_be_exact() -> None:
    rows = NeedRows(np.array([[2.0] * 50, [1.0] * 50]), np.zeros(50), np.ones(50), np.ones(50), None, None, None)
    market = PriceMarket(rows, np.zeros((3, 2)), 0.0, np.array([10.0, 10.0]))
    value = np.array([0.6, 0.4])
    found = market.balance(value, 0.5, 1.0, market.slope(value, 0.5), 1e-9)
    assert found is None or found[2] > 1e-9
