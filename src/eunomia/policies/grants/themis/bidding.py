"""An app's bid table: which of its gangs it would seat where, and what its ρ would be then.

Its first row takes nothing. Others seat its first gang, its first two, and so on, each in several ways: on the seats
that a gang has now, which costs no restart; on one machine, on different ones in different rows, so that apps need not
all want the same; on several where none is big enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.policies.grants.themis.rho import finish_time_fairness
from eunomia.policies.grants.themis.seen import Seen

ROWS = 64


@dataclass(frozen=True, slots=True)
class Gang:
    """Seats for one job: how many on which nodes; `own` where they are those that it has."""

    job: int
    type: int
    nodes: Ints  # (node,)
    count: Ints  # (node,) accelerators
    time: float  # seconds that the job still needs there
    own: bool = False


@dataclass(frozen=True, slots=True)
class Bid:
    """One row: gangs that are seated together, and ρ of the app with them."""

    gangs: tuple[Gang, ...]
    rho: float


def bid_table(seen: Seen, app: int, free: Ints, turn: int, rows: int = ROWS) -> list[Bid]:
    """Return what an app bids for what is free, (node,); `turn` tells apps apart that bid for machines of one kind."""
    mine = np.flatnonzero(seen.view.app == app)
    wants = [int(m) for m in mine if seen.wants[m]]
    chains: list[tuple[Gang, ...]] = [()]
    if wants:
        ways = max(1, (rows - 1) // len(wants))
        for first in placements(seen, wants[0], free, turn, ways):
            chains += _extended(seen, wants[1:], free, first)[: rows - len(chains)]
    return [Bid(chain, rho) for chain, rho in zip(chains, _rhos(seen, app, mine, chains).tolist(), strict=True)]


def _extended(seen: Seen, jobs: list[int], free: Ints, first: Gang) -> list[tuple[Gang, ...]]:
    """Return the first gang alone, then with the next ones, each where it would be done soonest beside them."""
    chain: tuple[Gang, ...] = (first,)
    chains, left = [chain], _less(free, first)
    for m in jobs:
        found = placements(seen, m, left, 0, 1)
        if not found:
            break
        chain, left = (*chain, found[0]), _less(left, found[0])
        chains.append(chain)
    return chains


def _less(free: Ints, gang: Gang) -> Ints:
    left = free.copy()
    left[gang.nodes] -= gang.count
    return left


def placements(seen: Seen, job: int, free: Ints, turn: int, ways: int, *, own: bool = True) -> list[Gang]:
    """Return up to `ways` places for a gang, where it needs the least time first, the one that it has before all."""
    view, size = seen.view, int(seen.view.scale_factor[job])
    found = []
    if own and seen.ended[job]:
        nodes, count = np.unique(view.topology.node[view.holder == job], return_counts=True)
        if len(nodes) and (count <= free[nodes]).all():
            found.append(_gang(seen, job, int(view.on_type[job]), nodes, count, own=True))
    types = [j for j in np.argsort(seen.time[job], kind="stable").tolist() if np.isfinite(seen.time[job, j])]
    for j in types:
        nodes = np.flatnonzero((view.topology.node_type == j) & (free > 0))
        fitting = nodes[free[nodes] >= size]
        if len(fitting):
            fitting = np.roll(fitting[np.argsort(free[fitting], kind="stable")], -turn)[: max(ways - len(found), 0)]
            found += [_gang(seen, job, j, node[None], np.array([size])) for node in fitting]
        elif free[nodes].sum() >= size:
            found.append(_gang(seen, job, j, *_several(seen, nodes, free, size)))
    found.sort(key=lambda gang: (not gang.own, gang.time))
    return found[:ways]


def _several(seen: Seen, nodes: Ints, free: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the fewest nodes that hold a gang, within one rack where one can."""
    room = np.bincount(seen.rack[nodes], weights=free[nodes], minlength=int(seen.rack.max()) + 1)
    within = np.flatnonzero(room >= size)
    if len(within):
        nodes = nodes[seen.rack[nodes] == within[np.argmin(room[within])]]
    nodes = nodes[np.argsort(-free[nodes], kind="stable")]
    before = np.cumsum(free[nodes]) - free[nodes]
    count = np.clip(size - before, 0, free[nodes])
    return nodes[count > 0], count[count > 0]


def _gang(seen: Seen, job: int, type: int, nodes: Ints, count: Ints, *, own: bool = False) -> Gang:
    level = seen.apart(nodes, int(count.sum()))
    return Gang(job, type, nodes, count, float(seen.time[job, type] * seen.view.slowdown[job, level]), own)


def _rhos(seen: Seen, app: int, mine: Ints, chains: list[tuple[Gang, ...]]) -> Floats:
    """Return ρ of the app with each set of gangs beside what it holds, (row,)."""
    view, rows = seen.view, len(chains)
    row_of = {int(m): k for k, m in enumerate(mine)}
    here = seen.time[mine, np.maximum(view.on_type[mine], 0)] * view.slowdown[mine, seen.level[mine]]
    seated, time = np.tile(seen.held[mine], (rows, 1)), np.tile(here, (rows, 1))
    for row, chain in enumerate(chains):
        for gang in chain:
            seated[row, row_of[gang.job]], time[row, row_of[gang.job]] = True, gang.time
    return finish_time_fairness(
        np.repeat(np.arange(rows), len(mine)),
        np.full(rows, seen.elapsed[app]),
        np.full(rows, seen.ideal[app]),
        seated.ravel(),
        np.where(seated, time, 0.0).ravel(),
        np.tile(seen.work[mine], rows),
        np.tile(view.scale_factor[mine], rows),
    )


def misjudged(table: list[Bid], error: float, rng: np.random.Generator) -> list[Bid]:
    """Return the table as an app would bid that misjudges each ρ by up to ± error of it."""
    off = 1 + error * rng.uniform(-1, 1, len(table))
    return [replace(bid, rho=bid.rho * factor) for bid, factor in zip(table, off.tolist(), strict=True)]


def misreported(table: list[Bid], factor: float) -> list[Bid]:
    """Return the table of an app that lies: it says that winning helps it by another factor than it does."""
    return [replace(bid, rho=bid.rho / factor) if bid.gangs else bid for bid in table]
