"""Free accelerators by node, indexed by how many a node has free, so that finding seats is no scan.

For each type and each count of free accelerators a two-level bit set holds the nodes with just that many. The
lowest node is found in a few steps, and the result depends only on present allocations, never on the past.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Ints

WORD, _SHIFT, _MASK = 32, 5, 31  # nodes in a word, which shifts and masks count; int64 words keep clear of the sign


class Index(NamedTuple):
    """The arrays; every function here changes them in place."""

    node_type: Ints  # (node,)
    first: Ints  # (node,)
    size: Ints  # (node,)
    node: Ints  # (device,)
    free: Ints  # (node,)
    device_free: Bools  # (device,)
    total: Ints  # (type,) free accelerators
    nodes: Ints  # (type, count) nodes with that many in all; at count 0 the accelerators of the largest
    filled: Ints  # (type, count) nodes with that many free
    words: Ints  # (type, count, word)
    summary: Ints  # (type, count, summary word): bit set of the non-zero `words`


@kernel(allocates=False, forceinline=True)
def _bit_of(word: int) -> int:
    """Return the place of the lowest bit that is set."""
    word &= -word
    place = 0
    if word & 0xFFFF0000:
        place += 16
    if word & 0xFF00FF00:
        place += 8
    if word & 0xF0F0F0F0:
        place += 4
    if word & 0xCCCCCCCC:
        place += 2
    if word & 0xAAAAAAAA:
        place += 1
    return place


@kernel(allocates=False, forceinline=True)
def _put(ix: Index, k: int, count: int, node: int) -> None:
    word = node >> _SHIFT
    ix.words[k, count, word] |= 1 << (node & _MASK)
    ix.summary[k, count, word >> _SHIFT] |= 1 << (word & _MASK)
    ix.filled[k, count] += 1


@kernel(allocates=False, forceinline=True)
def _drop(ix: Index, k: int, count: int, node: int) -> None:
    word = node >> _SHIFT
    ix.words[k, count, word] &= ~(1 << (node & _MASK))
    if ix.words[k, count, word] == 0:
        ix.summary[k, count, word >> _SHIFT] &= ~(1 << (word & _MASK))
    ix.filled[k, count] -= 1


@kernel(allocates=False, forceinline=True)
def _lowest(ix: Index, k: int, count: int) -> int:
    """Return the lowest node of type k with that many free; there is one."""
    for top in range(ix.summary.shape[2]):
        if ix.summary[k, count, top]:
            word = top * WORD + _bit_of(ix.summary[k, count, top])
            node: int = word * WORD + _bit_of(ix.words[k, count, word])
            return node
    return -1


@kernel(allocates=False, forceinline=True)
def _recount(ix: Index, node: int, change: int) -> None:
    """Move a node to the list of its new count."""
    k, before = ix.node_type[node], ix.free[node]
    if before > 0:
        _drop(ix, k, before, node)
    ix.free[node] = before + change
    ix.total[k] += change
    if before + change > 0:
        _put(ix, k, before + change, node)


@kernel(allocates=False, forceinline=True)
def _pick(ix: Index, node: int, wanted: int, seats: Ints, filled: int) -> int:
    """Take the lowest free devices of a node, which is not counted anew; return how many seats are filled now."""
    device = ix.first[node]
    for _ in range(wanted):
        while not ix.device_free[device]:
            device += 1
        ix.device_free[device] = False
        seats[filled] = device
        filled += 1
    return filled


@kernel(allocates=False)
def fewest_nodes(ix: Index, k: int, z: int) -> int:
    """Return on how many nodes z accelerators of type k would be placed now, packed closely; 0 = they do not fit."""
    return _fewest(ix.filled[k], z) if z <= ix.total[k] else 0


@kernel(allocates=False)
def _fewest(having: Ints, z: int) -> int:
    """Return how many nodes hold z accelerators, of which `having` (count,) nodes have so many each."""
    nodes, left = 0, z
    for count in range(len(having) - 1, 0, -1):
        here = min(having[count], (left + count - 1) // count)
        nodes += here
        left -= here * count
        if left <= 0:
            break
    return nodes


@kernel(allocates=False, forceinline=True)
def _hole(ix: Index, k: int, z: int) -> int:
    """Return how many are free where a gang of z fits best on one node; 0 = no node has room for it."""
    for count in range(z, ix.nodes[k, 0] + 1):
        if ix.filled[k, count] > 0:
            return count
    return 0


@kernel(allocates=False, forceinline=True)
def fits(ix: Index, k: int, z: int, one_machine: bool) -> bool:
    """Return whether there are seats for a gang of z on type k; if asked for, on as few nodes as it needs."""
    if z > ix.total[k]:
        return False
    return not (one_machine and fewest_nodes(ix, k, z) > _fewest(ix.nodes[k], z))


@kernel(allocates=False, forceinline=True)
def seat_anywhere(ix: Index, k: int, z: int, seats: Ints) -> None:
    """Take seats for a gang of z on type k, which has so many free: best fit on one node, else the fullest nodes."""
    filled = 0
    while filled < z:
        left = z - filled
        found = _hole(ix, k, left)
        if found == 0:  # no hole is big enough: the biggest one, whole
            for count in range(min(left, ix.nodes[k, 0]), 0, -1):
                if ix.filled[k, count] > 0:
                    found = count
                    break
        node, here = _lowest(ix, k, found), min(left, found)
        filled = _pick(ix, node, here, seats, filled)
        _recount(ix, node, -here)


@kernel(allocates=False, forceinline=True)
def seat_gang(ix: Index, k: int, z: int, one_machine: bool, seats: Ints) -> bool:
    """Take seats for a gang of z on type k as `seat_anywhere` does: all of it or nothing."""
    if not fits(ix, k, z, one_machine):
        return False
    seat_anywhere(ix, k, z, seats)
    return True


@kernel(allocates=False, forceinline=True)
def seat_alike(ix: Index, k: int, z: int, one_machine: bool, seats: Ints, begun: Ints, listed: Ints) -> bool:
    """Do as `seat_gang` for one of many gangs of z: where one fits best, the next does while there is room.

    So the node of the last one, begun[k] (-1 = none), is counted anew only when it is full; till then it stands among
    those with `listed[k]` free. Before the size changes, and in the end, `count_begun` is due.
    """
    node = begun[k]
    if node < 0 or ix.free[node] < z:
        count_begun(ix, k, begun, listed)
        found = _hole(ix, k, z)
        if found == 0:
            alone: bool = seat_gang(ix, k, z, one_machine, seats)
            return alone
        node = _lowest(ix, k, found)
        begun[k], listed[k] = node, found
    _pick(ix, node, z, seats, 0)
    ix.free[node] -= z
    ix.total[k] -= z
    return True


@kernel(allocates=False, forceinline=True)
def count_begun(ix: Index, k: int, begun: Ints, listed: Ints) -> None:
    """Move the node that `seat_alike` took seats of to the list of its new count."""
    node = begun[k]
    if node >= 0:
        _drop(ix, k, listed[k], node)
        if ix.free[node] > 0:
            _put(ix, k, ix.free[node], node)
        begun[k] = -1


@kernel(allocates=False)
def take(ix: Index, devices: Ints) -> None:
    """Take just these devices, which are free."""
    place = 0
    while place < len(devices):
        node, first = ix.node[devices[place]], place
        while place < len(devices) and ix.node[devices[place]] == node:
            ix.device_free[devices[place]] = False
            place += 1
        _recount(ix, node, first - place)


@kernel(allocates=False, forceinline=True)
def free_chain(ix: Index, device: int, next_device: Ints, holder: Ints, up: Bools) -> None:
    """Free a chain of devices, linked by `next_device`, except those of lost nodes; none has a holder now."""
    while device >= 0:
        node, freed = ix.node[device], 0
        while device >= 0 and ix.node[device] == node:
            following = next_device[device]
            next_device[device] = holder[device] = -1
            if up[node]:
                ix.device_free[device] = True
                freed += 1
            device = following
        if freed:
            _recount(ix, node, freed)


@kernel(allocates=False)
def give_back(ix: Index, devices: Ints, up: Bools) -> None:
    """Free these devices, but for those of lost nodes."""
    for device in devices:
        if up[ix.node[device]]:
            ix.device_free[device] = True
            _recount(ix, ix.node[device], 1)


@kernel(allocates=False)
def build(ix: Index) -> None:
    """Fill an empty index from `device_free`."""
    for device in range(len(ix.node)):
        if ix.device_free[device]:
            ix.free[ix.node[device]] += 1
    for node in range(len(ix.size)):
        k = ix.node_type[node]
        ix.total[k] += ix.free[node]
        if ix.free[node] > 0:
            _put(ix, k, ix.free[node], node)


def empty_index(node_type: Ints, first: Ints, size: Ints, node: Ints, device_free: Bools, types: int) -> Index:
    """Return an index of these nodes in which nothing is counted yet."""
    largest = np.zeros(types, dtype=np.int64)
    np.maximum.at(largest, node_type, size)
    words = -(-len(size) // WORD)
    counts = int(size.max()) + 1
    nodes = np.zeros((types, counts), dtype=np.int64)
    np.add.at(nodes, (node_type, size), 1)
    nodes[:, 0] = largest
    return Index(
        node_type=node_type,
        first=first,
        size=size,
        node=node,
        free=np.zeros(len(size), dtype=np.int64),
        device_free=device_free,
        total=np.zeros(types, dtype=np.int64),
        nodes=nodes,
        filled=np.zeros((types, counts), dtype=np.int64),
        words=np.zeros((types, counts, words), dtype=np.int64),
        summary=np.zeros((types, counts, -(-words // WORD)), dtype=np.int64),
    )
