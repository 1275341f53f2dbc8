"""Water filling of very many rows: sampled levels lead where clocks of all rows lead."""

from contextlib import ExitStack
from unittest import mock

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.solvers.water_filling import screen
from eunomia.solvers.water_filling.tree import Tree
from eunomia.solvers.water_filling.waterfill import Filled, fill

ROWS = 60_000


def tenants(rng: np.random.Generator, count: int) -> Tree | None:
    """Return tenants of different weights that own the rows; None for none."""
    if count == 0:
        return None
    return Tree(
        parent=np.full(count, -1),
        weight=rng.integers(1, 4, count).astype(float),
        inner=tuple("share" for _ in range(count)),
        group_of=rng.integers(count, size=ROWS),
        row_weight=np.ones(ROWS),
    )


def filled(seed: int, load: float, groups: int, **patched: object) -> tuple[Filled, Floats, Floats, Floats]:
    """Fill a drawn table while parts of the engine are replaced; return also rates, sizes and capacity."""
    rng = np.random.default_rng(seed)
    rate = np.exp(np.linspace(1.4, 0, 3) + rng.normal(0, 0.35, (ROWS, 3)) + rng.normal(0, 1, (ROWS, 1)))
    size = rng.choice((1.0, 2.0, 4.0), ROWS)
    capacity = size.sum() / load * rng.dirichlet(np.full(3, 5.0))
    need = (rate @ capacity) / capacity.sum() / size
    tree = tenants(rng, groups)
    with ExitStack() as stack:
        for name, other in patched.items():
            stack.enter_context(mock.patch.object(screen, name, other))
        return fill(rate, size, capacity, need, tree=tree), rate, size, capacity


@pytest.mark.parametrize("load", [8.0, 1.3])
@pytest.mark.parametrize("groups", [0, 5])
def test_both_roads_fill_alike(load: float, groups: int) -> None:
    quick, rate, size, capacity = filled(1, load, groups)
    slow, *_ = filled(1, load, groups, LARGE=ROWS + 1)
    assert quick.level == pytest.approx(slow.level, rel=1e-8)
    x = quick.x
    assert (size @ x <= capacity * (1 + 1e-9)).all() and (x.sum(axis=1) <= 1 + 1e-9).all() and (x >= 0).all()
    assert (rate * x).sum() == pytest.approx((rate * slow.x).sum(), rel=1e-6)
