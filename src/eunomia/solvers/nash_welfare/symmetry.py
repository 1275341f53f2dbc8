"""Rows that a box of prices cannot tell apart are one row: tied between the same columns in the same way.

A row that a box leaves open but whose level stays, all over the box, between the rates of two sets of columns buys a
mix of both: of those *over* its level (T̄', p̄') and of those *under* it (T̄, p̄; idle time is one of them),

    x_over = w / (s (p̄' − p̄)) − T̄ / (T̄' − T̄)

Rows whose rates in both sets are in one ratio, or the same throughout each set, therefore want together what one row of
all their weight and size wants, and the mean T̄ / (T̄' − T̄). So do rows that have all their time on columns of one
rate. How ties are split among columns is then a question to few rows, whatever the weights, sizes and units of the
many; and each of the many has the same mix within either set as the one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import group
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows
from eunomia.solvers.nash_welfare.response import OPEN, STRIDE, Edges, L, R, walk

_WORTH = 0.5  # merged rows, of all, up to which merging is worth its while
_LOOK, _DIFFERENT = 2048, 0.97  # rows looked at first; the part of them up to which merging may be
_MARGIN = 3.0  # widths of the box that a row must be away from another way to buy
_SAME = 1e-9  # relative, of rates that are one
FINE, COARSE = 19, 29  # bits of a ratio of rates that are passed over: 1e-10 and 1e-7 of it are left
_APART, _AT_ONE, _TWINS, _IN_RATIO = 0, 1, 2, 3  # kinds: a row alone, all time at one rate, sides of one rate, others


@kernel(error_model="numpy")
def _sides(
    rate: Floats, i: int, left: int, right: int, ratio: float, price: Floats, box: Floats, side: NDArray[np.int8]
) -> int:
    """Write the side of each column, and of idle as the last: 1 over the level of row i, −1 under, 0 never bought.

    left, right: the row's edge at the prices; ratio: w / s. Returns a kind: _APART where the box may change the sides.
    """
    K = len(price)
    vertex = left == right
    high, dear, wide = rate[right, i], price[right], box[right]
    low, paid, tight = 0.0, 0.0, 0.0
    if vertex:
        paid = dear - ratio
        y = high
        if -paid < _MARGIN * wide:
            return _APART
    else:
        if left >= 0:
            low, paid, tight = rate[left, i], price[left], box[left]
        y = ratio * (high - low) / (dear - paid)
    side[K] = 0
    if not vertex and (left < 0 or low * dear - high * paid < _MARGIN * (high * tight + low * wide)):
        side[K] = -1
    for k in range(K):
        A = rate[k, i]
        after, before = A - low, high - A
        above = price[k] * (high - low) - before * paid - after * dear
        slack = box[k] * (high - low) + abs(before) * tight + abs(after) * wide
        side[k] = 0
        if A > 0.0 and (k in (left, right) or above < _MARGIN * slack):
            side[k] = 1 if vertex or y < A else -1
            if vertex and abs(A - y) > _SAME * y:
                return _APART
    if not vertex and not _stays(rate, i, ratio, price, box, side):
        return _APART
    return _AT_ONE if vertex else _TWINS if _one_rate_a_side(rate, i, side) else _IN_RATIO


@kernel(error_model="numpy")
def _stays(rate: Floats, i: int, ratio: float, price: Floats, box: Floats, side: NDArray[np.int8]) -> bool:
    """Tell whether row i would mix each column over its level with each under it, at all prices of the box.

    Then no such price puts it at one column's rate, or between two columns of one side.
    """
    K = len(price)
    for over in range(K):
        if side[over] > 0:
            high = rate[over, i]
            for under in range(K + 1):
                if side[under] < 0:
                    idle = under == K
                    low = 0.0 if idle else rate[under, i]
                    rise = price[over] if idle else price[over] - price[under]
                    wide = box[over] if idle else box[over] + box[under]
                    budget = ratio * (high - low)
                    if not (low * (rise + wide) < budget < high * (rise - wide)):
                        return False
    return True


@kernel(error_model="numpy")
def _one_rate_a_side(rate: Floats, i: int, side: NDArray[np.int8]) -> bool:
    """Tell whether row i has one rate on all columns over its level and one on all under it."""
    K = len(rate)
    over, under = -1.0, 0.0 if side[K] < 0 else -1.0
    for k in range(K):
        A = rate[k, i]
        if side[k] > 0:
            over = A if over < 0.0 else over
            if abs(A - over) > _SAME * over:
                return False
        elif side[k] < 0:
            under = A if under < 0.0 else under
            if abs(A - under) > _SAME * A:
                return False
    return True


@kernel(error_model="numpy")
def _look(
    rows: tuple[Floats, Floats, Floats], price: Floats, box: Floats, drop: int, kinds: Ints, sides: NDArray[np.int8],
    ratios: Ints, lever: Floats,
) -> None:  # fmt: skip
    """Write of each row its kind, its sides (column + 1, row), and s T / (T' − T) of its edge.

    Also the ratios of its rates (column, row) in whole numbers, where rows that are one must have them in common.
    rows: rate (column, row), size and weight (row,).
    """
    rate, size, weight = rows
    K, n = rate.shape
    f, ratio, side, number = np.empty(15 * STRIDE), np.empty(STRIDE), np.zeros(K + 1, dtype=np.int8), np.empty(1)
    bits = number.view(np.int64)
    for o in range(0, n, STRIDE):
        m = min(STRIDE, n - o)
        for j in range(m):
            ratio[j] = weight[o + j] / size[o + j]
        walk(rate, ratio, price, o, m, f)
        for j in range(m):
            i, left, right, first = o + j, int(f[L + j]), int(f[R + j]), -1
            kinds[i] = _sides(rate, i, left, right, ratio[j], price, box, side)
            sides[:, i] = side
            lever[i] = size[i] * rate[left, i] / (rate[right, i] - rate[left, i]) if left not in (-1, right) else 0.0
            for k in range(K):
                ratios[k, i] = 0
                if kinds[i] == _IN_RATIO and side[k] != 0:
                    first = k if first < 0 else first
                    number[0] = rate[k, i] / rate[first, i]
                    ratios[k, i] = (int(bits[0]) + (1 << (drop - 1))) >> drop


@kernel(error_model="numpy")
def _rates(rate: Floats, first: Ints, kinds: Ints, sides: NDArray[np.int8], sums: Floats, merged: Floats) -> None:
    """Write the rates of classes (column, class)."""
    for c in range(len(first)):
        lever = sums[2, c] / sums[0, c]
        for k in range(len(rate)):
            own = rate[k, first[c]]
            if kinds[c] in (_AT_ONE, _TWINS):
                own = 1.0 if sides[k, c] > 0 else lever / (1.0 + lever)
            merged[k, c] = own if kinds[c] == _APART or sides[k, c] != 0 else 0.0


@kernel(error_model="numpy")
def _spread(
    rate: Floats, ratio: Floats, became: Ints, merged: Floats, merged_ratio: Floats, kinds: Ints,
    sides: NDArray[np.int8], member: Ints, place: Ints, x: Floats, shares: Floats,
) -> None:  # fmt: skip
    """Write shares (1 + column, member) of the members from those x (1 + column, open class) of their classes.

    ratio (row,) and merged_ratio (class,): w / s; place (class,): where in x a class is.
    """
    K = len(rate)
    for q in range(len(member)):
        i = member[q]
        c = became[i]
        at = place[c]
        over, high, low, own_high, own_low = 0.0, 0.0, 0.0, 0.0, 0.0
        if kinds[c] in (_TWINS, _IN_RATIO):
            for k in range(K):
                v = x[k + 1, at]
                if sides[k, c] > 0:
                    over += v
                    high += v * merged[k, c]
                    own_high += v * rate[k, i]
                elif sides[k, c] < 0:
                    low += v * merged[k, c]
                    own_low += v * rate[k, i]
        under = 1.0 - over
        up, down = 1.0, 1.0
        if over > 0.0 and under > 0.0:
            high, own_high, low, own_low = high / over, own_high / over, low / under, own_low / under
            part = ratio[i] / merged_ratio[c] * (over + low / (high - low)) - own_low / (own_high - own_low)
            part = min(max(part, 0.0), 1.0)
            up, down = part / over, (1.0 - part) / under
        total = 0.0
        for k in range(K):
            shares[k + 1, q] = x[k + 1, at] * (up if sides[k, c] > 0 else down)
            total += shares[k + 1, q]
        shares[0, q] = max(1.0 - total, 0.0)


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows that stand for those alike, and which of them each row became (row,)."""

    rows: NashRows
    became: Ints
    _kinds: Ints  # (merged row,)
    _sides: NDArray[np.int8]  # (column + 1, merged row)

    def shares(self, members: NashRows, chosen: Edges, open_rows: Ints, x: Floats) -> tuple[Edges, Ints, Floats]:
        """Return edges (row,), open rows and x (1 + column, open row) of the members from those of the merged rows."""
        edges, rows = chosen[self.became], self.rows
        member = np.flatnonzero(edges == OPEN)
        place = np.full(len(chosen), -1)
        place[open_rows] = np.arange(len(open_rows))
        shares = np.empty((len(x), len(member)))
        _spread(
            members.rate, members.weight / members.size, self.became, rows.rate, rows.weight / rows.size,
            self._kinds, self._sides, member, place, x, shares,
        )  # fmt: skip
        return edges, member, shares


def merged(rows: NashRows, price: Floats, box: Floats, drop: int = FINE) -> MergedRows | None:
    """Return rows that stand for all those alike within price ± box; None if few are alike.

    drop: FINE, or COARSE to take rows for alike whose rates differ by 1e-7 of themselves, which costs a gap of that.
    """
    if len(rows) > 2 * _LOOK:
        some = rows.part(np.arange(0, len(rows), len(rows) // _LOOK))
        if _merged(some, price, box, drop, _DIFFERENT) is None:
            return None
    return _merged(rows, price, box, drop, _WORTH)


def _merged(rows: NashRows, price: Floats, box: Floats, drop: int, worth: float) -> MergedRows | None:
    """Return rows that stand for all those alike; None where they are more than this part of the rows."""
    columns, n = rows.rate.shape
    kinds, ratios, lever = np.empty(n, dtype=np.int64), np.empty((columns, n), dtype=np.int64), np.empty(n)
    sides = np.empty((columns + 1, n), dtype=np.int8)
    _look((rows.rate, rows.size, rows.weight), price, box, drop, kinds, sides, ratios, lever)
    found = group(np.where(kinds == _APART, np.arange(n), -1), kinds, *np.where(kinds == _APART, 0, sides), *ratios)
    count, first = len(found), found.representative
    if count > int(worth * n):
        return None
    kinds, sides = kinds[first], np.ascontiguousarray(sides[:, first])
    sums = np.stack([np.bincount(found.of, part, count) for part in (rows.size, rows.weight, lever)]).astype(float)
    rate = np.empty((columns, count))
    _rates(rows.rate, first, kinds, sides, sums, rate)
    return MergedRows(NashRows(rate, sums[0].copy(), sums[1].copy()), found.of, kinds, sides)
