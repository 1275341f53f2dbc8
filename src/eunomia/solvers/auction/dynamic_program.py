"""One bidder after the other: what may be left of each class, and the best way to leave just that.

A layer holds the states after some bidders: what is left, and the most that those bidders' rows can be worth then. A
state is worth no more than its bound, value + Σ_later max_b(v − λ·n) + λ·left, and one whose bound does not exceed the
best answer known is dropped. States are one where the bidders to come cannot tell them apart: amounts beyond what they
can take are cut off, and classes that are interchangeable to all of them stand in falling order. A layer keeps at most
`width` states, the best bounds; `lost` is the highest bound of those it had to let go, so where nothing above the
answer was lost, the answer is proven.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.packed_states import Packed, fits, mixed
from eunomia.solvers.sums import inner_product


@kernel(forceinline=True)
def _find(table: Ints, words: Ints, key: Ints) -> tuple[int, int]:
    """Return the place of a state in the table, and the state there or -1."""
    x: Any = 0
    for word in key:
        x = mixed(x ^ word)
    place = x & (len(table) - 1)
    while table[place] >= 0:
        same = True
        for w in range(len(key)):
            same &= words[table[place], w] == key[w]
        if same:
            return place, table[place]
        place = (place + 1) & (len(table) - 1)
    return place, -1


@kernel(forceinline=True)
def _unfold(rows: Packed, state: Ints, most: Ints, price: Floats, left: Ints, cut: Ints, key: Ints) -> float:
    """Fill `left` (class,) with a packed state, `cut` and `key` with what of it matters; return what that is worth."""
    worth = 0.0
    key[:] = 0
    for k in range(len(left)):
        left[k] = (state[rows.word[k]] >> rows.shift[k]) & rows.mask[k]
        cut[k] = min(left[k], most[k])
        key[rows.word[k]] |= cut[k] << rows.shift[k]
        worth += price[k] * cut[k]
    return worth


@kernel(forceinline=True)
def _in_order(rows: Packed, price: Floats, group: Ints, ends: Ints, cut: Ints, key: Ints) -> float:
    """Put amounts `cut` (class,) in falling order within each group, and pack them; return what they are worth."""
    begin, worth = 0, 0.0
    for end in ends:
        for i in range(begin + 1, end):
            x, j = cut[group[i]], i - 1
            while j >= begin and cut[group[j]] < x:
                cut[group[j + 1]] = cut[group[j]]
                j -= 1
            cut[group[j + 1]] = x
        begin = end
    key[:] = 0
    for k in range(len(cut)):
        key[rows.word[k]] |= cut[k] << rows.shift[k]
        worth += price[k] * cut[k]
    return worth


@kernel()
def _narrowed(bound: Floats, count: int, width: int) -> tuple[Ints, float]:
    """Return the states with the best bounds, ascending, and the highest bound that is not among them."""
    least = np.partition(bound[:count], count - width)[count - width]
    room = width - (bound[:count] > least).sum()
    kept, n, lost = np.empty(width, dtype=np.int64), 0, -np.inf
    for s in range(count):
        if bound[s] > least or (bound[s] == least and room > 0):
            room -= bound[s] == least
            kept[n] = s
            n += 1
        else:
            lost = max(lost, bound[s])
    return kept, lost


@kernel()
def _take(rows: Packed, row: int, left: Ints, cut: Ints, most: Ints, price: Floats, key: Ints, reach: float) -> float:
    """Take a row's part from the packed state `key`; return the bound `reach` less what that was worth."""
    for e in range(rows.first[row], rows.first[row + 1]):
        k = rows.entry[e]
        less = cut[k] - min(left[k] - rows.amount[e], most[k])
        reach -= price[k] * less
        key[rows.word[k]] -= less << rows.shift[k]
    return reach


@kernel()
def _hash(table: Ints, slot: Ints, states: Ints, count: int) -> None:
    """Write the table anew with the first `count` states, and where each stands in it."""
    table[slot] = -1
    for other in range(count):
        slot[other] = _find(table, states, states[other])[0]
        table[slot[other]] = other


@kernel()
def sweep(
    rows: Packed, worth: Floats, price: Floats, bidders: Ints, gain: Floats, loss: Floats, line: Ints,
    most: Ints, group: Ints, ends: Ints, known: float, width: int,
) -> tuple[float, Ints, float]:  # fmt: skip
    """Return the best value above `known` (-inf: none found), the rows in the frame of each layer, and `lost`.

    bidders (turn,) in the order in which they are served, gain (turn,) and loss (row,) as `prices.surplus` has
    them, line (row,) rows of each bidder with the least loss first, most (turn + 1, class) what later bidders can take
    at most, group and ends (turn + 1, …) the classes that are interchangeable to all of them, -1 = no more.
    """
    turns, words, room = len(bidders), len(rows.full), 4 * width + 64
    size = 1
    while size < 2 * room:
        size *= 2
    table, slot = np.full(size, -1, dtype=np.int64), np.empty(room, dtype=np.int64)  # slot: where a state stands in it
    state, value, bound = np.empty((room, words), dtype=np.int64), np.empty(room), np.empty(room)
    new, new_value, new_bound = np.empty((room, words), dtype=np.int64), np.empty(room), np.empty(room)
    origin, by = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    parent, row_of = np.empty((turns, width), dtype=np.int32), np.empty((turns, width), dtype=np.int32)
    # what bidders to come can gain at most, by these prices: part of every bound
    later = np.zeros(turns + 1)
    for t in range(turns - 1, -1, -1):
        later[t] = later[t + 1] + gain[t]
    key, packed = np.empty((2, words), dtype=np.int64)
    left, cut, in_order = np.empty((3, len(price)), dtype=np.int64)
    lost, alive = -np.inf, 1
    state[0], value[0], bound[0] = rows.full, 0.0, later[0] + inner_product(price, rows.capacity)
    # one layer a bidder: each state of the last layer with each of the bidder's rows
    for t in range(turns):
        count, bar, last = 0, known, 0
        while last < ends.shape[1] and ends[t + 1, last] >= 0:
            last += 1
        for s in range(alive):
            kept_worth = _unfold(rows, state[s], most[t + 1], price, left, cut, packed)
            # rows by their loss: once one cannot reach the bar, none after it can
            for row in line[rows.begin[bidders[t]] : rows.begin[bidders[t] + 1]]:
                reach = bound[s] - loss[row]
                if reach <= bar:
                    lost = max(lost, reach)
                    break
                if not fits(rows, row, left):
                    continue
                total = value[s] + worth[row]
                # what is left then, cut off and in order, so that states that later bidders cannot tell apart are one
                key[:] = packed
                reach = _take(rows, row, left, cut, most[t + 1], price, key, total + later[t + 1] + kept_worth)
                if last > 0:
                    for k in range(len(left)):
                        in_order[k] = (key[rows.word[k]] >> rows.shift[k]) & rows.mask[k]
                    reach = total + later[t + 1]
                    reach += _in_order(rows, price, group[t + 1], ends[t + 1, :last], in_order, key)
                if reach <= bar:
                    lost = max(lost, reach)
                    continue
                # a full layer keeps the best `width` bounds, and the bar rises to the best that is let go
                place, found = _find(table, new, key)
                if found < 0 and count == room:
                    kept, gone = _narrowed(new_bound, count, width)
                    count, bar, lost = width, max(bar, gone), max(lost, gone)
                    new[:count], new_value[:count], new_bound[:count] = new[kept], new_value[kept], new_bound[kept]
                    origin[:count], by[:count] = origin[kept], by[kept]
                    _hash(table, slot, new, count)
                    place, found = _find(table, new, key)
                if found < 0:
                    found, count = count, count + 1
                    table[place], slot[found], new_value[found] = found, place, -np.inf
                    new[found] = key
                # of two ways to one state the one worth more is remembered
                if total > new_value[found]:
                    new_value[found], new_bound[found], origin[found], by[found] = total, reach, s, row
        # the next layer: the best states, and by which state and row each was reached
        table[slot[:count]] = -1
        kept = np.arange(count)
        if count > width:
            kept, gone = _narrowed(new_bound, count, width)
            lost = max(lost, gone)
        alive = len(kept)
        state[:alive], value[:alive], bound[:alive] = new[kept], new_value[kept], new_bound[kept]
        parent[t, :alive], row_of[t, :alive] = origin[kept], by[kept]
    chosen = np.full(turns, -1, dtype=np.int64)
    if alive == 0:
        return -np.inf, chosen, lost
    # back through the layers from the best of the last
    s = int(np.argmax(value[:alive]))
    best = value[s]
    for t in range(turns - 1, -1, -1):
        chosen[t], s = row_of[t, s], parent[t, s]
    return best, chosen, lost
