"""Bid tables, the auction of them, and hidden payments.

A row of a bid table says which of its gangs an app would place where, and what its ρ would be then. The first row
takes nothing. For an app that holds nothing that is ρ if it starts with the least that it bids for once the leases
that begin now are over, or RHO_MAX where that is not to be assumed: then two such apps that want one gang forfeit
nearly all of it, as each loses a million times its value by the other. Others place its first gang, its first two,
and so on, each in several ways: on the devices that a gang has, which costs no restart; in one slot or on one
machine, in different ones in different rows, so that apps need not all want the same; on several where none is large
enough. An app places gangs in order of its user's weights, of equals the one that has done least first: searches that
tell promising trials from others have those run first, and searches that let all trials of a rung get equally far
share alike. An elastic gang has a row for each of its smaller sizes too, and takes what is left where the whole gang
does not fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model import elementary
from eunomia.model.arrays import NO_INTS, Array, Bools, Floats, Ints
from eunomia.model.sorting import sorted_places
from eunomia.placement.levels import Levels, free_by_node, gather, gather_nodes, level_on
from eunomia.policies.grants.themis.agents import (
    RHO_MAX,
    AuctionState,
    Gangs,
    best_place,
    fairness,
    new_place,
    own_place,
)
from eunomia.policies.grants.themis.shapes import kept_sizes
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import QUICK
from eunomia.solvers.auction.partial import Partial, Treatment, partial_allocation, whole

ROWS = 64


class CandidateGangs(NamedTuple):
    """Gang g would run on units first[g]:first[g + 1] of `unit`, on `amount` accelerators of each."""

    used: Ints  # (2,) gangs and entries so far; the columns have room for more
    job: Ints  # (gang,)
    type: Ints  # (gang,)
    own: Bools  # (gang,) these are the devices that it has
    time: Floats  # (gang,) seconds that the job still needs there
    first: Ints  # (gang + 1,)
    unit: Ints  # (entry,)
    amount: Ints  # (entry,) accelerators


class Bidders(NamedTuple):
    """The apps that bid, before they win anything. Other apps have no jobs here."""

    begin: Ints  # (app + 1,) where its jobs begin in `job`
    job: Ints  # (entry,) app by app, by priority
    wants: Bools  # (job,)
    held: Bools  # (job,)
    here: Floats  # (job,) seconds still needed where it runs
    work: Floats  # (job,) accelerator-seconds still needed on its fastest type
    least: Floats  # (app,) seconds still needed by its longest job at best
    paused: Floats  # (app,) accelerator-seconds still needed by its paused jobs
    elapsed: Floats  # (app,)
    ideal: Floats  # (app,)


@dataclass(frozen=True, slots=True)
class BidTables:
    """The bid tables of some apps, one below the other. A row places `count` gangs, from `gang` of `gangs` on."""

    bidder: Ints  # (row,) ascending from 0
    gang: Ints  # (row,)
    count: Ints  # (row,)
    rho: Floats  # (row,) of the app with these gangs
    gangs: CandidateGangs


@dataclass(frozen=True, slots=True)
class WonGangs:
    """What bidders are granted: candidate gangs, each for a part of the lease."""

    gang: Ints
    size: Ints  # (gang,) accelerators: all of its own, or fewer if it is elastic
    part: Floats  # of the lease, for each gang
    partial: Partial | None  # None: there was nothing to bid for


def bid_tables(
    state: AuctionState, bidders: Ints, free: Ints, rows: int = ROWS, starts_in_s: float = math.inf
) -> BidTables:
    """Return what apps bid for what is free, (unit,), in at most `rows` rows each.

    An app that holds nothing and wins nothing expects to start after `starts_in_s`; inf = never.
    """
    view, bids = state.view, np.zeros(len(state.elapsed), dtype=bool)
    bids[bidders] = True
    job = state.by_priority(np.flatnonzero(bids[view.app]))
    begin = np.searchsorted(view.app[job], np.arange(len(bids) + 1))
    by_app = state.least, state.paused, state.elapsed, state.ideal
    apps = Bidders(begin, job, state.wants, state.held, state.here, state.work, *by_app)
    return BidTables(*_fill_tables(state.levels, state.gangs, apps, bidders, free, rows, starts_in_s))


def misjudged(tables: BidTables, error: float, rng: np.random.Generator) -> BidTables:
    """Return the tables as apps would bid that misjudge each ρ by up to ± error of it."""
    return replace(tables, rho=tables.rho * (1 + error * rng.uniform(-1, 1, len(tables.rho))))


def misreported(tables: BidTables, bidder: int, factor: float) -> BidTables:
    """Return the tables with one app lying: it says that winning helps it by another factor than it does."""
    lies = (tables.bidder == bidder) & (tables.count > 0)
    return replace(tables, rho=np.minimum(np.where(lies, tables.rho / factor, tables.rho), RHO_MAX))


def hold_auction(
    tables: BidTables, free: Ints, sizes: Ints, treatment: Treatment, least: float, rng: np.random.Generator
) -> WonGangs:
    """Return what each bidder keeps of its partial allocation after the hidden payment.

    It keeps the part c of the gangs that it won, which are not divided, or of their accelerators if they are elastic;
    nothing where it would keep them for a part of the lease below `least`. sizes (job, shape) are those of its jobs.
    """
    if not tables.count.any():
        return WonGangs(NO_INTS, NO_INTS, np.empty(0), None)
    found, gangs = partial_allocation(_bids_of(tables, free), QUICK), tables.gangs
    amount = np.add.reduceat(np.append(gangs.amount[: gangs.used[1]], 0), gangs.first[: gangs.used[0]])
    elastic = sizes.shape[1] > 1
    won = tables.count[found.row]
    if elastic:
        won = np.array([amount[g : g + n].sum() for g, n in zip(tables.gang[found.row], won, strict=True)], np.int64)
    keeps = whole(won, found.share, treatment, rng)
    if treatment == "lease":
        keeps[found.share < least] = 0
    part = found.share if treatment == "lease" else np.ones(len(keeps))
    if not elastic:
        within = np.arange(keeps.sum()) - np.repeat(np.cumsum(keeps) - keeps, keeps)
        gang = np.repeat(tables.gang[found.row], keeps) + within
        return WonGangs(gang, amount[gang], np.repeat(part, keeps), found)
    gang_of, size, parts = [NO_INTS], [NO_INTS], [np.empty(0)]
    for bidder, row in enumerate(found.row.tolist()):
        g = tables.gang[row] + np.arange(tables.count[row])
        kept = kept_sizes(amount[g], sizes[gangs.job[g]], int(keeps[bidder]))
        gang_of.append(g[kept > 0])
        size.append(kept[kept > 0])
        parts.append(np.full(int((kept > 0).sum()), part[bidder]))
    return WonGangs(np.concatenate(gang_of), np.concatenate(size), np.concatenate(parts), found)


def _bids_of(tables: BidTables, free: Ints) -> Bids:
    """Return tables as rows over the units that are bid for, each worth ln 1/ρ."""
    gangs = tables.gangs
    units = np.flatnonzero(np.bincount(gangs.unit[: gangs.used[1]], minlength=len(free)))
    column = np.zeros(len(free), dtype=np.int64)
    column[units] = np.arange(len(units))
    take = _taken(tables.gang, tables.count, gangs, column, len(units))
    return Bids(tables.bidder, take, -elementary.log(tables.rho), free[units])


@kernel()
def _taken(gang: Ints, count: Ints, gangs: CandidateGangs, column: Ints, columns: int) -> Ints:
    take = np.zeros((len(gang), columns), dtype=np.int64)
    for row in range(len(gang)):
        for e in range(gangs.first[gang[row]], gangs.first[gang[row] + count[row]]):
            take[row, column[gangs.unit[e]]] += gangs.amount[e]
    return take


@kernel()
def no_gangs(room: int) -> CandidateGangs:
    """Return a table of candidates with room for some, none of them there yet."""
    room = max(room, 8)
    return CandidateGangs(
        np.zeros(2, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.bool_),
        np.empty(room),
        np.zeros(room + 1, dtype=np.int64),
        np.empty(2 * room, dtype=np.int64),
        np.empty(2 * room, dtype=np.int64),
    )


@kernel()
def with_gang(
    gangs: CandidateGangs, job: int, type: int, own: bool, time: float, unit: Ints, count: Ints, n: int
) -> CandidateGangs:
    """Return the candidates with one more, on the first n entries of unit and count."""
    g, e = gangs.used
    if g == len(gangs.job):
        gangs = CandidateGangs(
            gangs.used, _wider(gangs.job), _wider(gangs.type), _wider(gangs.own), _wider(gangs.time),
            _wider(gangs.first), gangs.unit, gangs.amount,
        )  # fmt: skip
    while e + n > len(gangs.unit):
        gangs = CandidateGangs(
            gangs.used, gangs.job, gangs.type, gangs.own, gangs.time, gangs.first, _wider(gangs.unit),
            _wider(gangs.amount),
        )  # fmt: skip
    gangs.job[g], gangs.type[g], gangs.own[g], gangs.time[g] = job, type, own, time
    gangs.unit[e : e + n], gangs.amount[e : e + n] = unit[:n], count[:n]
    gangs.first[g + 1] = e + n
    gangs.used[0], gangs.used[1] = g + 1, e + n
    return gangs


@kernel()
def _wider(column: Array) -> Array:
    wider = np.empty(2 * len(column), dtype=column.dtype)
    wider[: len(column)] = column
    return wider


@kernel()
def _fill_tables(
    levels: Levels, gangs: Gangs, apps: Bidders, bidders: Ints, free: Ints, rows: int, starts_in_s: float
) -> tuple[Ints, Ints, Ints, Floats, CandidateGangs]:
    """Return the columns of `BidTables`. The place of a bidder in `bidders` makes like apps bid for other machines."""
    most = len(bidders) * rows
    bidder, gang, count = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    rho, found = np.empty(most), no_gangs(len(bidders) * 4)
    unit, number = np.empty(len(free), np.int64), np.empty(len(free), np.int64)
    some, in_all, n = np.flatnonzero(free), free.sum(), 0
    node_free = np.empty((gangs.time.shape[2], len(levels.type)), np.int64)
    for j in range(len(node_free)):
        node_free[j] = free_by_node(levels, j, free)
    for turn in range(len(bidders)):
        app = bidders[turn]
        mine = apps.job[apps.begin[app] : apps.begin[app + 1]]
        # the row that takes nothing: the app as it is
        longest, left, held = _now(gangs, apps, app, mine)
        bidder[n], gang[n], count[n], begin = turn, found.used[0], 0, n
        rho[n] = fairness(apps.elapsed[app], apps.ideal[app], longest, left, held)
        n += 1
        # places of its first gang, its own before others, then the soonest ends
        wants = mine[apps.wants[mine]]
        if len(wants) == 0 or gangs.least[wants[0]] > in_all:
            continue
        ways, first = max(1, (rows - 1) // len(wants)), found.used[0]
        found = _with_places(levels, gangs, wants[0], free, node_free, some, turn, ways, found, unit, number)
        places = found.used[0] - first
        key = np.where(found.own[first : first + places], -1.0, found.time[first : first + places])
        narrow = gangs.sizes.shape[1] - 1  # places of fewer accelerators have a row each beside the ways
        # each place begins a way: the next gangs go where they end soonest beside it, a row for each more
        for way, g in enumerate(first + sorted_places(key)[: ways + narrow]):
            if n == begin + rows:
                break
            entries = found.first[g + 1] - found.first[g]
            unit[:entries] = found.unit[found.first[g] : found.first[g + 1]]
            number[:entries] = found.amount[found.first[g] : found.first[g + 1]]
            type, time, own, start = found.type[g], found.time[g], found.own[g], found.used[0]
            after, slowest, more, seats = free.copy(), longest, left, held
            for k in range(len(wants) if way < ways else 1):
                m = wants[k]
                if k > 0:
                    entries, type, time, own = best_place(levels, gangs, m, after, True, unit, number)
                if entries == 0 or n == begin + rows:
                    break
                found = with_gang(found, m, type, own, time, unit, number, entries)
                placed = 0  # fewer than the whole gang, where it is elastic and there is no more
                for e in range(entries):
                    after[unit[e]] -= number[e]
                    placed += number[e]
                slowest, seats = max(slowest, time), seats + placed
                more += time * placed - apps.work[m]
                bidder[n], gang[n], count[n] = turn, start, k + 1
                rho[n] = fairness(apps.elapsed[app], apps.ideal[app], slowest, more, seats)
                n += 1
        # an app that holds and wins nothing starts with the least that it bids for, once leases are over
        if held == 0 and n > begin + 1:
            rho[begin] = min(rho[begin + 1 : n].max() + starts_in_s / apps.ideal[app], RHO_MAX)
    return bidder[:n], gang[:n], count[:n], rho[:n], found


@kernel()
def _now(gangs: Gangs, apps: Bidders, app: int, mine: Ints) -> tuple[float, float, float]:
    """Return how long the longest of an app's jobs takes as they run, what is left, and on how many accelerators."""
    longest, left, held = apps.least[app], apps.paused[app], 0.0
    for m in mine:
        if apps.held[m]:
            longest = max(longest, apps.here[m])
            left += apps.here[m] * gangs.width[m]
            held += gangs.width[m]
        else:
            left += apps.work[m]
    return longest, left, held


@kernel()
def _with_places(
    levels: Levels, gangs: Gangs, job: int, free: Ints, node_free: Ints, some: Ints, turn: int, ways: int,
    found: CandidateGangs, unit: Ints, count: Ints,
) -> CandidateGangs:  # fmt: skip
    """Add up to `ways` places of a gang to the candidates, and one more for each type on which it must be spread.

    free (unit,), node_free (type, node); `some` are the units of which any is free.
    """
    size, places = gangs.size[job], 0
    n = own_place(levels, gangs, job, free, unit, count)
    if n > 0:
        time = gangs.now[job] * gangs.slowdown[job, level_on(levels, unit, n)]
        found, places = with_gang(found, job, gangs.type[job], True, time, unit, count, n), 1
    for j in sorted_places(gangs.time[job, 0]):
        time = gangs.time[job, 0, j]
        if time == np.inf:
            break
        units = some[(free[some] >= size) & (levels.type[levels.node[some]] == j)]
        units = units[sorted_places(free[units])]
        here = min(max(ways - places, 0), len(units))
        for k in range(here):
            unit[0], count[0] = units[(k + turn) % len(units)], size
            found = with_gang(found, job, j, False, time * gangs.slowdown[job, 0], unit, count, 1)
        places += here
        wide = node_free[j] >= size
        wide[levels.node[units]] = False
        nodes = np.flatnonzero(wide)
        nodes = nodes[sorted_places(node_free[j][nodes])]
        here = min(max(ways - places, 0), len(nodes))
        for k in range(here):
            n = gather(levels, nodes[(k + turn) % len(nodes)], free, size, unit, count, 0)
            level = level_on(levels, unit, n)
            found = with_gang(found, job, j, False, time * gangs.slowdown[job, level], unit, count, n)
        places += here
        if len(units) + len(nodes) == 0:
            n = gather_nodes(levels, node_free[j], free, size, unit, count)
            if n > 0:
                level = level_on(levels, unit, n)
                found = with_gang(found, job, j, False, time * gangs.slowdown[job, level], unit, count, n)
                places += 1
    for s in range(1, gangs.sizes.shape[1]):  # on fewer accelerators
        n, j, time = new_place(levels, gangs, job, free, s, np.inf, unit, count)
        if n > 0:
            found = with_gang(found, job, j, False, time, unit, count, n)
    return found
