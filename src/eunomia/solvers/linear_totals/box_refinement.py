"""From the prices of a sample to those of all rows, by looking again only at the rows that are left undecided.

Prices of a sample of M rows are right to about 1/√M. In a box of that width around them most rows choose the same at
every price; they are decided, and what they use is taken off the capacity. A sample of the others errs by as much less
as they are fewer, so the next box is narrower by √M, and so on until few rows are open. Whether the boxes were wide
enough is not trusted: the caller solves for the open rows exactly, and if its prices press against a box, that box is
made wider and the steps after it are done again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.linear_totals.exact import exactly
from eunomia.solvers.linear_totals.response import OPEN
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.linear_totals.symmetry import seem_alike
from eunomia.solvers.program import NoOptimum

SAMPLE = 800  # rows that the interior point method is asked to solve for at once, unless fewer are left
_LARGEST = 16_384  # rows of the sample from which the first box over all rows is taken
_WIDTH = 12.0  # of a box, in typical errors of a sample's prices
_NARROW = 1e-5  # relative half-width of a box around prices that are not a sample's
_LEAST = 1e-13  # half-width of a box over the ceiling of prices
_FREE = 1e-3  # of the typical price: a price that may well be zero
_TIED = 1e-2  # relative width of a box below which open rows are tied if they stay open
_DEAR = 1e-2  # of the ceiling: a price at which one asks whether the floors can be met at all
_STEP = 4.0  # by how much a box that prices lie outside is widened at once, at most
_STRAYS = 6  # prices outside the boxes, in one narrowing, after which it is left as it is
_MISSES = 16  # after which narrowing begins again with more caution


@dataclass(slots=True)
class PriceBox:
    """One narrowing: which rows were open before, what was left for them, and the prices looked at."""

    rows: Ints  # (open row,)
    part: LinearRows  # their problem
    room: Floats  # (column,) capacity left for them
    centre: Floats  # (column,)
    half: Floats  # (column,)
    relative: float  # half-width over price

    def ends(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest price (column,) of the box."""
        return np.maximum(self.centre - self.half, 0.0), np.minimum(self.centre + self.half, 2 * self.part.ceiling)


@dataclass(slots=True)
class Narrowing:
    """All rows of a problem with the choices of the decided ones; `boxes` nest, the last one is the smallest."""

    problem: LinearRows
    capacity: Floats
    choice: Array  # (row,)
    low: Floats  # (column,) prices that are looked at, at least
    high: Floats  # (column,) and at most
    inner: bool  # whether the problem is a part of another, which alone may be refused
    known: float  # relative width within which prices are known to lie
    boxes: list[PriceBox] = field(default_factory=list)
    misses: int = 0
    caution: float = 1.0  # by how much boxes are wider than usual

    @classmethod
    def of(
        cls, problem: LinearRows, capacity: Floats, limits: tuple[Floats, Floats] | None = None, known: float = 1.0
    ) -> Narrowing:
        """Begin with every row open; limits: the least and the greatest prices that the problem around it allows."""
        choice = np.full(len(problem.size), OPEN, dtype=np.int8 if problem.free else np.int16)
        low, high = limits or (np.zeros(len(capacity)), np.full(len(capacity), np.inf))
        return cls(problem, capacity, choice, low, high, limits is not None, known)

    def narrow(self, few: int, *, width: float = 0.0) -> tuple[Ints, LinearRows, Floats]:
        """Return the rows still open, their problem, and the capacity left for them.

        Stops when no more than `few` are open,
        when the last box was one of exact prices, or when its relative width is below `width`; and when narrowing has
        become idle, because what is open is tied at any price or, with a few places closed, alike.
        """
        rows, part, room = self._open()
        relative, strays = self.boxes[-1].relative if self.boxes else self.known, 0
        while len(rows) > few and relative > max(width, _NARROW):
            sample = _sample_size(part)
            centre = _estimate(part, room, sample, relative, self.misses)
            if not np.isfinite(centre).all() or strays > _STRAYS:
                break  # what is open has no prices to speak of
            centre = np.clip(centre, self.low, self.high)
            if not self.inner and (centre > _DEAR * part.ceiling).any():
                self.problem.refuse_if_proven(self.capacity, centre)
            if self._strays(centre):
                strays += 1
                rows, part, room = self._open()
                relative = self.boxes[-1].relative if self.boxes else self.known
                continue
            if sample < len(rows):
                relative *= min(0.5, self.caution * _caution(part) * _WIDTH / np.sqrt(sample))
            else:
                relative = self.caution * _NARROW
            middle = _middle(part)
            half = relative * (centre + 0.02 * middle) + _LEAST * part.ceiling
            half = np.where(centre < _FREE * middle, np.maximum(half, 2 * centre), half)
            self.boxes.append(PriceBox(rows, part, room, centre, half, relative))
            before = len(rows)
            rows, part, room = self._look(self.boxes[-1])
            tied = relative < _TIED and len(rows) > 0.9 * before
            if sample >= before or tied or (len(rows) > few > 0 and self._alike(part)):
                break
        return rows, part, room

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest price (column,) that all boxes hold; greatest inf where there is no box."""
        low, high = self.low, self.high
        for box in self.boxes:
            least, greatest = box.ends()
            low, high = np.maximum(low, least), np.minimum(high, greatest)
        return low, high

    def missed(self, outside: Floats) -> bool:
        """Widen the box that keeps a price from rising (outside above 0) or falling (below 0), and drop the later ones.

        Returns False where the limits from outside keep one. After many misses all boxes are dropped, and those to
        come are twice as wide.
        """
        low, high = self.bounds()
        kept = ((outside < 0) & (self.low >= low)) | ((outside > 0) & (self.high <= high))
        if self.inner and kept.any():
            return False
        for place, box in enumerate(self.boxes):
            least, greatest = box.ends()
            below, above = (outside < 0) & (least >= low), (outside > 0) & (greatest <= high)
            if (below | above).any():
                self._widen(box, 3.0 * 2.0**self.misses, place + 1)
                return True
        return False

    def _strays(self, centre: Floats) -> bool:
        """Return whether prices lie outside a box, and widen it to hold them."""
        for place, box in enumerate(self.boxes):
            far = float((np.abs(centre - box.centre) / box.half).max())
            if far > 1:
                self._widen(box, min(2 * far, _STEP), place + 1)
                return True
        return False

    def _widen(self, box: PriceBox, factor: float, kept: int) -> None:
        box.half = np.minimum(factor * box.half, 2 * box.part.ceiling)
        box.relative = min(1.0, factor * box.relative)
        self.misses += 1
        del self.boxes[kept:]
        if self.misses % _MISSES == 0:
            self.boxes.clear()
            self.choice[:] = OPEN
            self.caution *= 2

    def _open(self) -> tuple[Ints, LinearRows, Floats]:
        if self.boxes:
            return self._look(self.boxes[-1])
        return np.arange(len(self.choice)), self.problem, self.capacity

    def _look(self, box: PriceBox) -> tuple[Ints, LinearRows, Floats]:
        """Decide what can be decided in the box; return what stays open."""
        low, high = box.ends()
        choice = np.empty(len(box.rows), dtype=self.choice.dtype)
        used = box.part.choose((low + high) / 2, (high - low) / 2, choice)
        self.choice[box.rows] = choice
        left = np.flatnonzero(choice == OPEN)
        return box.rows[left], box.part.only(left), box.room - used

    def masked(self, part: LinearRows) -> LinearRows:
        """Return the open rows' problem with the places closed that no price of the last box makes best."""
        if not self.boxes:
            return part
        low, high = self.boxes[-1].ends()
        return part.in_play((low + high) / 2, (high - low) / 2)

    def _alike(self, part: LinearRows) -> bool:
        return seem_alike(self.masked(part.some()))


def _sample_size(part: LinearRows) -> int:
    rows, least = len(part.size), _least_sample(part)
    return rows if rows <= 2 * least else int(np.clip(rows // 16, least, _LARGEST))


def _least_sample(part: LinearRows) -> int:
    return int(SAMPLE * _caution(part))


def _caution(part: LinearRows) -> float:
    """Return by how much samples and boxes are larger: rows held by floors say little about each of many prices."""
    return 1.0 if part.free else max(1.0, len(part.worth) / 4)


def _estimate(part: LinearRows, room: Floats, sample: int, known: float, draw: int) -> Floats:
    """Return prices from a sample of the rows, itself narrowed first where it is large."""
    if sample >= len(part.size):
        return _prices(part, room, 1e-7)
    some = part.sample(sample, draw)
    if sample <= 2 * _least_sample(part):
        return _prices(some, room, 1e-4)
    nowhere = np.zeros(len(room)), np.full(len(room), np.inf)
    inner = Narrowing.of(some, room, nowhere, known)
    inner.narrow(0, width=0.5 * known / np.sqrt(sample))
    return inner.boxes[-1].centre if inner.boxes else _prices(some, room, 1e-4)


def _prices(part: LinearRows, room: Floats, tolerance: float) -> Floats:
    """Return prices of a few thousand rows: by an interior point, or by the general solver where that gets nowhere."""
    price = part.centre(room, tolerance)
    if price is not None:
        return price
    try:
        return exactly(part, room, np.zeros(len(room)), np.full(len(room), 2 * part.ceiling)).price
    except NoOptimum:
        return np.full(len(room), np.nan)


def _middle(part: LinearRows) -> float:
    """Return a price of the right order: the mean worth per unit of size of some rows."""
    few = slice(None, None, max(1, len(part.size) // 512))
    worth = np.where(np.isfinite(part.worth[:, few]), np.abs(part.worth[:, few]), 0.0)
    return float((worth.max(axis=0) / part.size[few]).mean())
