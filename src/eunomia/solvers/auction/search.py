"""Row by row, depth first: the rows that lose least against the prices, where machines are distinguished.

Rows that fit together are worth L(λ), less what each falls short of its bidder's best at these prices, less λ·left for
what no row takes: their loss. A node has rows that may still be taken and what is left. A row leaves it that does not
fit, or with which the loss cannot stay below the limit, where each other bidder loses its least and a class loses what
all that may still take of it together cannot reach. The search branches where there are the fewest ways to: at the
bidder with the fewest rows, or the class that the fewest rows take of; first with the row that loses least, then
without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.packed_states import Packed, fits

PASSES = 3  # over the rows of a node: what one row's going does to others mostly shows in the first


class SearchTree(NamedTuple):
    """The nodes between the root and the present one; depth is how many bidders have their row."""

    row: Ints  # (depth, place) rows that may be taken, those of a bidder side by side
    length: Ints  # (depth,) how many
    left: Ints  # (depth, class) what is left
    spent: Floats  # (depth,) the loss of the rows taken
    taken: Ints  # (depth,) the row that is tried
    turn: Ints  # (row,) whose it is: an index in `bidders`


@kernel()
def search(
    rows: Packed, loss: Floats, price: Floats, left: Ints, bidders: Ints, line: Ints, limit: float, work: int
) -> tuple[float, Ints, int]:
    """Return the least loss below `limit` (inf: there is none), its rows (turn,), and what is left of `work`.

    loss (row,) at the prices, left (class,) what `bidders` (turn,) may take, line (row,) the rows of each bidder in the
    order in which equals are tried, work: rows to look at. Nothing is proven where none of it is left.
    """
    nodes = _root(rows, loss, left, bidders, line, limit)
    best, chosen = np.inf, np.full(len(bidders), -1, dtype=np.int64)
    least, size, touched = (
        np.empty(len(bidders)),
        np.empty(len(bidders), dtype=np.int64),
        np.zeros(len(left), dtype=np.int64),
    )
    usable, most = np.zeros(len(left), dtype=np.int64), np.zeros(len(left), dtype=np.int64)
    depth = 0
    while depth >= 0 and work > 0:
        bound, looked = _tighten(rows, nodes, depth, loss, price, limit, least, size, touched, usable, most)
        work -= looked
        if bound < limit and depth == len(bidders):
            best = limit = bound
            for d in range(depth):
                chosen[nodes.turn[nodes.taken[d]]] = nodes.taken[d]
        if bound >= limit or depth == len(bidders):
            depth -= 1
            if depth >= 0:
                _without(nodes, depth)
            continue
        nodes.taken[depth] = _branch(
            rows, nodes, depth, loss, price, limit - bound, size[: len(bidders) - depth], touched
        )
        _descend(rows, nodes, depth, loss)
        depth += 1
    return best, chosen, work


@kernel()
def _root(rows: Packed, loss: Floats, left: Ints, bidders: Ints, line: Ints, limit: float) -> SearchTree:
    """Return room for all nodes, with the first one in it."""
    deep, total = len(bidders) + 1, 0
    for i in bidders:
        total += rows.begin[i + 1] - rows.begin[i]
    nodes = SearchTree(
        np.empty((deep, total), dtype=np.int64),
        np.zeros(deep, dtype=np.int64),
        np.empty((deep, len(left)), dtype=np.int64),
        np.zeros(deep),
        np.full(deep, -1, dtype=np.int64),
        np.full(len(loss), -1, dtype=np.int64),
    )
    nodes.left[0] = left
    for t in range(len(bidders)):
        for row in line[rows.begin[bidders[t]] : rows.begin[bidders[t] + 1]]:
            nodes.turn[row] = t
            if loss[row] < limit and fits(rows, row, left):
                nodes.row[0, nodes.length[0]] = row
                nodes.length[0] += 1
    return nodes


@kernel()
def _tighten(
    rows: Packed,
    nodes: SearchTree,
    depth: int,
    loss: Floats,
    price: Floats,
    limit: float,
    least: Floats,
    size: Ints,
    touched: Ints,
    usable: Ints,
    most: Ints,
) -> tuple[float, int]:
    """Drop the rows of a node that cannot stay below the limit; return what it loses at least, and the rows looked at.

    Fill, for the bidders in the order of their rows, the loss of each one's best and how many rows it has, and how many
    take of each class. inf stands for a bidder that has no row at all.
    """
    looked, here = 0, nodes.row[depth]
    for _ in range(PASSES):
        looked += nodes.length[depth] + len(price)
        bidders = _measured(rows, nodes, depth, loss, least, size, touched, usable, most)
        if bidders < len(nodes.length) - 1 - depth:
            return np.inf, looked
        bound = nodes.spent[depth]
        for g in range(bidders):
            bound += least[g]
        for k in range(len(price)):
            bound += price[k] * max(nodes.left[depth, k] - usable[k], 0)
        if bound >= limit:
            return bound, looked
        kept, place = 0, 0
        for g in range(bidders):
            most_lost = least[g] + limit - bound
            for p in range(place, place + size[g]):
                if loss[here[p]] < most_lost:
                    here[kept] = here[p]
                    kept += 1
            place += size[g]
        if kept == nodes.length[depth]:
            break
        nodes.length[depth] = kept
    else:
        _measured(rows, nodes, depth, loss, least, size, touched, usable, most)
    return bound, looked


@kernel()
def _measured(
    rows: Packed, nodes: SearchTree, depth: int, loss: Floats, least: Floats, size: Ints, touched: Ints, usable: Ints,
    most: Ints,
) -> int:  # fmt: skip
    """Fill what `_tighten` says, and what bidders can take at most of each class; return how many have rows."""
    here, count, turns = nodes.row[depth], nodes.length[depth], nodes.turn
    first, entry, amount = rows.first, rows.entry, rows.amount
    touched[:], usable[:] = 0, 0
    bidders, place = 0, 0
    while place < count:
        begin, turn, best = place, turns[here[place]], np.inf
        while place < count and turns[here[place]] == turn:
            row = here[place]
            best = min(best, loss[row])
            for e in range(first[row], first[row + 1]):
                k = entry[e]
                touched[k] += 1
                if amount[e] > most[k]:
                    usable[k] += amount[e] - most[k]
                    most[k] = amount[e]
            place += 1
        for p in range(begin, place):
            for e in range(first[here[p]], first[here[p] + 1]):
                most[entry[e]] = 0
        least[bidders], size[bidders] = best, place - begin
        bidders += 1
    return bidders


@kernel()
def _branch(
    rows: Packed, nodes: SearchTree, depth: int, loss: Floats, price: Floats, spare: float, size: Ints, touched: Ints
) -> int:
    """Return the row to try: the one that loses least of the bidder or the class that leaves the fewest ways."""
    bidder, fewest, where = np.argmin(size), size.min(), -1
    for k in range(len(touched)):
        ways = touched[k] + (price[k] * nodes.left[depth, k] < spare)  # or none of them
        if touched[k] > 0 and ways < fewest:
            fewest, where = ways, k
    begin, found = size[:bidder].sum(), -1
    low, high = (begin, begin + size[bidder]) if where < 0 else (0, nodes.length[depth])
    for row in nodes.row[depth, low:high]:
        if (where < 0 or rows.take[row, where] > 0) and (found < 0 or loss[row] < loss[found]):
            found = row
    return found


@kernel()
def _descend(rows: Packed, nodes: SearchTree, depth: int, loss: Floats) -> None:
    """Fill the node below, in which the row is taken that is tried."""
    taken, count, here, below = nodes.taken[depth], 0, nodes.row[depth], nodes.row[depth + 1]
    left, turn = nodes.left[depth + 1], nodes.turn
    left[:] = nodes.left[depth]
    for e in range(rows.first[taken], rows.first[taken + 1]):
        left[rows.entry[e]] -= rows.amount[e]
    for p in range(nodes.length[depth]):
        if turn[here[p]] != turn[taken] and fits(rows, here[p], left):
            below[count] = here[p]
            count += 1
    nodes.length[depth + 1], nodes.spent[depth + 1] = count, nodes.spent[depth] + loss[taken]


@kernel()
def _without(nodes: SearchTree, depth: int) -> None:
    """Take the row that was tried out of a node."""
    count = 0
    for row in nodes.row[depth, : nodes.length[depth]]:
        if row != nodes.taken[depth]:
            nodes.row[depth, count] = row
            count += 1
    nodes.length[depth] = count
