"""The optimum for many rows: one for all alike, boxes, the open rows exactly, and the parts put together."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.linear_totals.box_refinement import FEW, OpenRows, TotalSearch
from eunomia.solvers.linear_totals.exact import Exact, exactly
from eunomia.solvers.linear_totals.response import BASE
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.linear_totals.symmetry import alike
from eunomia.solvers.pricing.refinement import BoxesMissed

_ATTEMPTS = 60


def optimum(rows: LinearRows, capacity: Floats) -> Exact:
    """Return the optimum; capacity (column,) above 0. Raises Infeasible where the floors cannot all be met."""
    classes = alike(rows) if len(rows.size) > FEW else None
    if classes is None:
        return _by_boxes(rows, capacity)
    found = _by_boxes(classes.rows, capacity)
    row, column, share = classes.shares(found.row, found.column, found.share)
    return Exact(row, column, share, found.price, found.torn)


def _by_boxes(rows: LinearRows, capacity: Floats) -> Exact:
    """Return the optimum. Where boxes keep missing the general solver takes all rows, which may take long."""
    search = TotalSearch.of(rows, capacity)
    try:
        found, part = search.refined([search.whole()], _ATTEMPTS)
    except BoxesMissed:
        return exactly(rows, capacity, *search.whole().box.ends)
    return _whole(search, found, part)


def _whole(search: TotalSearch, found: Exact, part: OpenRows) -> Exact:
    """Put the shares of the open rows and the choices of the others together."""
    rows, choice, columns = search.problem, search.choice, len(found.price)
    alone = np.flatnonzero((choice >= 0) & (choice < columns))
    parts = [(alone, choice[alone].astype(np.int64), np.ones(len(alone)))]
    parts += [(part.places[found.row], found.column, found.share)]
    if not rows.free:
        parts += _mixtures(rows, choice.astype(np.int64), columns)
    where, what, much = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Exact(where, what, much, found.price, found.torn)


def _mixtures(rows: LinearRows, choice: Ints, columns: int) -> list[tuple[Ints, Ints, Floats]]:
    """Return the two halves of the decided mixtures of two places; idling is no entry."""
    mixed = np.flatnonzero(choice >= BASE)
    low, high = choice[mixed] // BASE - 1, choice[mixed] % BASE
    speed = np.vstack((rows.rate, np.zeros(rows.rate.shape[1])))
    slow, fast = speed[low, mixed], speed[high, mixed]
    part = (rows.floor[mixed] - slow) / (fast - slow)
    halves = ((low, 1 - part), (high, part))
    return [(mixed[k < columns], k[k < columns], much[k < columns]) for k, much in halves]
