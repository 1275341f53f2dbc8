"""Trees of groups: how fast each row rises when weights are split again each time a row stops.

Every group has a weight, and passes what it gets to its children, groups or rows: by `share` in proportion to the
weights of those that still rise, by `first` all of it to the first that still rises. As children stop in the order
of room / weight, what each has got by a moment has a closed form, and no event needs a step of its own:

    got[c] = min(room[c], weight[c] · v)      with v such that Σ_c got[c] = got[group]                      (share)
    got[c] = min(room[c], max(0, got[group] − Σ_{b before c} room[b]))                                      (first)

The root is by `share` with v = the moment itself. Reference for the semantics: D. Narayanan et al.,
"Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints

Inner = Literal["share", "first"]
INFINITE = float("inf")
_ROUNDING = 2.0**-46  # of a sum over rows that is added up and split again in different orders
_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Groups of rows and of groups. Raises ValueError for a tree that is none."""

    parent: Ints  # (group,) an earlier group, or −1 at the top
    weight: Floats  # (group,) above 0; only ratios between siblings matter
    inner: tuple[Inner, ...]  # (group,) how it splits what it gets
    group_of: Ints  # (row,) the group that it is in, or −1 at the top
    row_weight: Floats  # (row,) above 0; `first` ignores it, and serves groups and then rows in their order

    def __post_init__(self) -> None:
        groups = np.arange(len(self.parent))
        if not len(self.weight) == len(self.inner) == len(groups) or len(self.group_of) != len(self.row_weight):
            raise ValueError("a tree needs one weight and one inner per group, and one group and weight per row")
        _demand(groups, (self.parent >= -1) & (self.parent < groups), "its parent must be an earlier group, or −1")
        _demand(groups, np.isfinite(self.weight) & (self.weight > 0), "its weight must be finite and above 0")
        _demand(groups, np.isin(self.inner, ("share", "first")), "its inner must be 'share' or 'first'")
        if not _sound(self.group_of, len(groups), self.row_weight):
            rows = np.arange(len(self.group_of))
            inside = (self.group_of >= -1) & (self.group_of < len(groups))
            _demand(rows, inside, f"its group must be −1 or one of the {len(groups)}", "row")
            positive = np.isfinite(self.row_weight) & (self.row_weight > 0)
            _demand(rows, positive, "its weight must be finite and above 0", "row")


@kernel()
def _sound(group: Ints, groups: int, weight: Floats) -> bool:
    """Return whether all rows have a group and a weight that they may have."""
    wrong = 0
    for row in range(len(group)):
        wrong += 0 if (-1 <= group[row] < groups) & (0.0 < weight[row] < INFINITE) else 1
    return wrong == 0


def _demand(index: Ints, holds: Bools, rule: str, what: str = "group") -> None:
    wrong = index[~np.asarray(holds, dtype=bool)]
    if len(wrong):
        raise ValueError(f"{what} {wrong[0]} of the tree: {rule}")


def flat(rows: int) -> Tree:
    """Return the tree without groups: all rows rise alike, and the moment is their level."""
    nothing, top = np.empty(0), np.full(rows, -1)
    return Tree(parent=top[:0], weight=nothing, inner=(), group_of=top, row_weight=np.ones(rows))


def unsure(tree: Tree, got: Floats) -> Floats:
    """Return by how much rounding leaves open what each row has got, (row,): what its whole tenant got, times that.

    A group passes on differences: what it has less what others have taken. So no difference is known better than the
    sum at the top that it comes from; rows at the top rise by the moment itself, which has no such rounding.
    """
    groups = len(tree.parent)
    if groups == 0:
        return np.zeros(len(got))
    whole = _whole_sums(tree, tree.group_of, got)[1:]
    for group in range(groups):
        if tree.parent[group] >= 0:
            whole[group] = whole[tree.parent[group]]
    return np.append(whole * _ROUNDING, 0.0)[tree.group_of]


class Clock:
    """What each row has got at each moment, as long as nothing but its own room stops a row."""

    def __init__(self, tree: Tree, room: Floats, group_of: Ints | None = None, row_weight: Floats | None = None):
        """Take the most that each row can get, (row,) ≥ 0 and finite; other rows than the tree's may be given."""
        group_of = tree.group_of if group_of is None else group_of
        row_weight = tree.row_weight if row_weight is None else row_weight
        self.inside = len(tree.parent) + 1  # nodes: the root, the groups, the rows
        self.weight, self.room = row_weight, room
        if self.inside > 1:
            self._plant(tree, group_of)
        top = slice(None) if self.inside == 1 else self.child[self.start[0] : self.start[1]]
        self.end = float((self.room[top] / self.weight[top]).max(initial=0.0))  # nothing rises after it

    def _plant(self, tree: Tree, group_of: Ints) -> None:
        """Number the nodes and list the children of each."""
        self.weight = np.concatenate((np.ones(1), tree.weight, self.weight))
        self.room = np.concatenate((np.zeros(self.inside), self.room))
        parent = np.concatenate((np.full(1, -1), tree.parent + 1, group_of + 1))
        self.first = np.array([False, *(inner == "first" for inner in tree.inner)])
        self.room[: self.inside] = _whole_sums(tree, group_of, self.room[self.inside :])
        self.start, self.child = _children(parent, self.inside)
        self.reached = np.zeros(self.inside)  # v of each group when it was last split

    def at(self, moment: float) -> tuple[Floats, Floats]:
        """Return what each row has got, (row,), and at what pace it was rising just before, (row,)."""
        got, pace = np.empty((2, len(self.room)))
        if self.inside == 1:
            _together(moment, self.room, self.weight, got, pace)
            return got, pace
        _split(moment, self.start, self.child, self.room, self.weight, self.first, self.reached, got, pace)
        return got[self.inside :], pace[self.inside :]

    def levels(self, moment: float, nearly: float = 1.0) -> Floats:
        """Return v of each group at a moment, the root first; infinite where a group has `nearly` all its room."""
        if self.inside == 1:
            return np.array([moment])
        got, pace = np.empty((2, len(self.room)))
        _split(moment, self.start, self.child, self.room, self.weight, self.first, self.reached, got, pace)
        levels = np.where(got[: self.inside] >= nearly * self.room[: self.inside], np.inf, self.reached)
        levels[0] = moment
        return levels


def end_of(tree: Tree, room: Floats) -> float:
    """Return the moment after which nothing rises; room (row,) is the most that each row can get."""
    groups = len(tree.parent)
    if groups == 0:
        return float((room / tree.row_weight).max(initial=0.0))
    whole = _whole_sums(tree, tree.group_of, room)
    at_top = np.flatnonzero(tree.parent < 0)
    end = (whole[1:][at_top] / tree.weight[at_top]).max(initial=0.0)
    rows = np.flatnonzero(tree.group_of < 0)
    last = float(max(end, (room[rows] / tree.row_weight[rows]).max(initial=0.0)))
    return last * (1 + _ROUNDING * len(room))  # a sum in another order may be as much more


def _whole_sums(tree: Tree, group_of: Ints, value: Floats) -> Floats:
    """Return the sums of value (row,) over the rows of each group and of the groups in it, (group + 1,), root first."""
    whole = sums_by_group(group_of, value, len(tree.parent) + 1)
    for group in range(len(tree.parent) - 1, -1, -1):
        whole[tree.parent[group] + 1] += whole[group + 1]
    return whole


@kernel()
def _together(moment: float, room: Floats, weight: Floats, got: Floats, pace: Floats) -> None:
    """Fill in what rows without groups have got, and their pace."""
    for row in range(len(room)):
        stop = room[row] / weight[row]
        got[row] = weight[row] * moment if moment < stop else room[row]
        pace[row] = weight[row] if moment <= stop else 0.0


@kernel()
def sums_by_group(group: Ints, value: Floats, inside: int) -> Floats:
    """Return the sums of value (row,) over the rows of each group, (group + 1,), those at the top first.

    What rounding takes from a sum is added later: rows served one after the other have differences of such sums.
    """
    whole, lost = np.zeros(inside), np.zeros(inside)
    for row in range(len(group)):
        g = group[row] + 1
        more = value[row] - lost[g]
        after = whole[g] + more
        lost[g] = (after - whole[g]) - more
        whole[g] = after
    return whole


@kernel()
def _children(parent: Ints, inside: int) -> tuple[Ints, Ints]:
    """Return where the children of each node start, (inside + 1,), and the children in order."""
    start = np.zeros(inside + 1, dtype=np.int64)
    for node in range(1, len(parent)):
        start[parent[node] + 1] += 1
    for node in range(inside):
        start[node + 1] += start[node]
    place, child = start.copy(), np.empty(len(parent) - 1, dtype=np.int64)
    for node in range(1, len(parent)):
        child[place[parent[node]]] = node
        place[parent[node]] += 1
    return start, child


@kernel()
def _split(
    moment: float,
    start: Ints,
    child: Ints,
    room: Floats,
    weight: Floats,
    first: Bools,
    reached: Floats,
    got: Floats,
    pace: Floats,
) -> None:
    """Fill in what each node has got and its pace, from the root down; `reached` (group,) is where to start from."""
    for group in range(len(first)):
        children = child[start[group] : start[group + 1]]
        if group > 0 and got[group] >= room[group]:
            for node in children:
                got[node] = room[node]
                pace[node] = 0.0
        elif first[group]:
            _serve_in_order(children, room, got, pace, got[group], pace[group])
        else:
            v, rising = moment, 1.0
            if group > 0:
                v, rising = _level(children, room, weight, got[group], pace[group], reached[group])
                reached[group] = v
            for node in children:
                stop = room[node] / weight[node]
                got[node] = weight[node] * v if v < stop else room[node]
                pace[node] = weight[node] * rising if v <= stop else 0.0


@kernel()
def _serve_in_order(children: Ints, room: Floats, got: Floats, pace: Floats, total: float, rising: float) -> None:
    """Give `total` to the first child up to its room, what is left to the next, and so on."""
    below, lost = 0.0, 0.0
    for node in children:
        got[node] = min(room[node], max(0.0, total - below))
        pace[node] = rising if below < total <= below + room[node] else 0.0
        more = room[node] - lost
        after = below + more
        lost = (after - below) - more
        below = after


@kernel()
def _level(
    children: Ints, room: Floats, weight: Floats, total: float, rising: float, start: float
) -> tuple[float, float]:
    """Return v with Σ_c min(room, weight · v) = total, and its pace: Newton's steps up a concave function.

    From a `start` that is too high the first step leads below v, as the function lies under its tangents.
    """
    v, steeper, first = start, INFINITE, True
    while True:
        full, slope = _full(children, room, weight, v)
        if slope == 0.0 and first and v > 0.0:  # no row rises there
            v, first = 0.0, False
            continue
        if slope >= steeper or slope == 0.0:
            return v, rising / steeper
        steeper = INFINITE if first and full + slope * v > total else slope
        v, first = (total - full) / slope, False


@kernel()
def _full(children: Ints, room: Floats, weight: Floats, v: float) -> tuple[float, float]:
    """Return Σ room of the children that are full at v, and Σ weight of the others; in blocks, for less rounding."""
    full, slope = 0.0, 0.0
    for begin in range(0, len(children), _BLOCK):
        some = children[begin : begin + _BLOCK]
        full_here, slope_here = _full_of(some, room, weight, v)
        full += full_here
        slope += slope_here
    return full, slope


@kernel()
def _full_of(children: Ints, room: Floats, weight: Floats, v: float) -> tuple[float, float]:
    """Return the same of a block, in four strands so that no addition waits for the last."""
    a, b, c, d, s, t, u, w = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = len(children) - len(children) % 4
    for place in range(0, whole, 4):
        one, two, three, four = children[place], children[place + 1], children[place + 2], children[place + 3]
        rises = weight[one] * v < room[one]
        a += 0.0 if rises else room[one]
        s += weight[one] if rises else 0.0
        rises = weight[two] * v < room[two]
        b += 0.0 if rises else room[two]
        t += weight[two] if rises else 0.0
        rises = weight[three] * v < room[three]
        c += 0.0 if rises else room[three]
        u += weight[three] if rises else 0.0
        rises = weight[four] * v < room[four]
        d += 0.0 if rises else room[four]
        w += weight[four] if rises else 0.0
    for place in range(whole, len(children)):
        one = children[place]
        rises = weight[one] * v < room[one]
        a += 0.0 if rises else room[one]
        s += weight[one] if rises else 0.0
    return (a + b) + (c + d), (s + t) + (u + w)
