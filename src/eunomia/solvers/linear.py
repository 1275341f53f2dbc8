"""The largest total that divisible capacity allows, with floors under what single rows get.

    maximise Σ_ik c_ik x_ik   subject to   Σ_k T_ik x_ik ≥ f_i,   Σ_k x_ik ≤ 1,   Σ_i s_i x_ik ≤ N_k,   x ≥ 0

c worth (may be negative: a cost), T rate, f floor, s size, N capacity. The proof is a price p_k ≥ 0 of each column and
λ_i ≥ 0 of each floor: no x is worth more than

    Σ_k p_k N_k + Σ_i ( y_i − λ_i f_i ),   y_i = max(0, max_k c_ik + λ_i T_ik − s_i p_k)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.linear_totals.box_refinement import FEW, Exact, OpenRows, TotalSearch, exactly
from eunomia.solvers.linear_totals.response import BASE
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.linear_totals.symmetry import alike
from eunomia.solvers.pricing.refinement import BoxesMissed
from eunomia.solvers.program import Infeasible, NoOptimum

GAP = 1e-9  # relative: what an answer must prove
_ATTEMPTS = 60


@dataclass(frozen=True, slots=True)
class LinearResult:
    """An optimum, as the places where a row has a share, and its proof."""

    shape: tuple[int, int]
    row: Ints  # (entry,)
    column: Ints  # (entry,)
    share: Floats  # (entry,) above 0
    objective: float
    bound: float  # no x is worth more
    scale: float  # sum of the sizes of the terms that the bound adds up: rounding is relative to it
    price: Floats  # (column,) by how much the total rises per unit of capacity
    time_price: Floats  # (row,) y: what the row's own time is worth
    floor_price: Floats  # (row,) λ: by how much the total rises per unit by which the floor is lowered

    @property
    def gap(self) -> float:
        """Return (bound − objective) relative to the terms that make them up."""
        return max(self.bound - self.objective, 0.0) / max(self.scale, 1e-300)

    @property
    def x(self) -> Floats:
        """Return the shares as one dense array (row, column)."""
        x = np.zeros(self.shape)
        x[self.row, self.column] = self.share
        return x

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Return row, column and share of every place above 0."""
        return self.row, self.column, self.share


def best_total(
    worth: Floats,
    size: Floats,
    capacity: Floats,
    *,
    rate: Floats | None = None,
    floor: Floats | None = None,
    scale: float = 0.0,
) -> LinearResult:
    """Solve the program above; worth, rate (row, column), size, floor (row,), capacity (column,).

    `scale` is the size of what worths are differences of, if they are: the gap is relative to no less. A negative
    rate with a negative floor is a ceiling. Raises Infeasible when the floors cannot all be met (then `late_rows`
    says which to give up), NoOptimum when no proof to 1e-9 is found.
    """
    asked = floor is not None and rate is not None and bool(((floor > 0) | (rate < 0).any(axis=1)).any())
    total = _total(worth, size, capacity, *((rate, floor) if asked else (None, None)))
    total = replace(total, scale=max(total.scale, scale))
    if not total.gap <= GAP:
        raise NoOptimum(f"the proof leaves a gap of {total.gap:.1e}; check the worths for entries many decades apart")
    return total


def _total(worth: Floats, size: Floats, capacity: Floats, rate: Floats | None, floor: Floats | None) -> LinearResult:
    """Solve it over the columns with capacity."""
    kept = np.flatnonzero(capacity > 0)
    by_column, ceiling = _by_column(worth, kept), _ceiling(worth, size, floor is not None)
    if rate is None or floor is None:
        floor = np.zeros(len(size))
        rows = LinearRows(by_column, size, np.empty((len(kept), 0)), np.empty(0), ceiling)
    else:
        asked = (floor > 0) | (rate < 0).any(axis=1)
        floor = _reachable(floor, rate[:, kept])
        rows = LinearRows(by_column, size, _by_column(rate, kept), np.where(asked, floor, -np.inf), ceiling)
    found = _optimum(rows, capacity[kept]) if len(size) and len(kept) else Exact.nothing(len(kept))
    price = np.zeros(len(capacity))
    price[kept] = found.price
    column, (floor_price, time_price) = kept[found.column], rows.proof(found.price)
    return proven(worth, capacity, floor, price, floor_price, time_price, found.row, column, found.share)


def _reachable(floor: Floats, rate: Floats) -> Floats:
    """Return the floors, those that rounding alone puts out of reach lowered to what a row can get."""
    most = np.maximum(rate.max(axis=1, initial=0.0), 0.0)
    beyond = np.flatnonzero(floor > most * (1 + GAP))
    if len(beyond):
        raise Infeasible(f"row {beyond[0]} cannot reach its floor even alone; lower the floor or open a faster column")
    lowered: Floats = np.minimum(floor, most)
    return lowered


def _by_column(values: Floats, kept: Ints) -> Floats:
    """Return values (column, row) of the columns kept, without a copy where they already lie so."""
    return np.ascontiguousarray(values.T if len(kept) == values.shape[1] else values.T[kept])


def _ceiling(worth: Floats, size: Floats, held: bool) -> float:
    """Return a price that no column reaches; with floors, one that is very far above what rows are worth."""
    highest = float(max(worth.max(initial=0.0), -worth.min(initial=0.0) if held else 0.0) / size.min(initial=np.inf))
    return max(highest, 1e-300) * (1e3 if held else 2.0)


def proven(
    worth: Floats,
    capacity: Floats,
    floor: Floats,
    price: Floats,
    floor_price: Floats,
    time_price: Floats,
    row: Ints,
    column: Ints,
    share: Floats,
) -> LinearResult:
    """Put a point and prices together, with the bound that the prices prove."""
    terms = worth[row, column] * share
    floors = floor_price * floor
    bound = float(dot(price, capacity) + time_price.sum() - floors.sum())
    scale = max(float(np.abs(terms).sum()), float(dot(price, capacity) + time_price.sum() + np.abs(floors).sum()))
    return LinearResult(
        worth.shape, row, column, share, float(terms.sum()), bound, scale, price, time_price, floor_price
    )


def _optimum(rows: LinearRows, capacity: Floats) -> Exact:
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
