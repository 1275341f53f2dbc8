"""Bid tables: which of its gangs an app would seat where, and what its ρ would be then.

The first row of a table takes nothing. Others seat its first gang, its first two, and so on, each in several ways: on
the seats that a gang has now, which costs no restart; in one slot or on one machine, in different ones in different
rows, so that apps need not all want the same; on several where none is big enough. An app seats the gangs first that
its user gives more weight, of equals the one that has done least: so searches that tell promising trials from others
have those run first, and searches that let all trials of a rung get equally far share alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.sorting import sorted_places
from eunomia.policies.grants.themis.book import Book, opened, pushed
from eunomia.policies.grants.themis.ground import Gangs, Ground, apart, gather, nearest, own_place, rooms, scattered
from eunomia.policies.grants.themis.rho import RHO_MAX, fairness
from eunomia.policies.grants.themis.seen import Seen

ROWS = 64


class Standing(NamedTuple):
    """What the bidders are, before they win anything. Apps that do not bid have no jobs here."""

    begin: Ints  # (app + 1,) where its jobs begin in `job`
    job: Ints  # (entry,) app by app, those that it seats first before others
    wants: Bools  # (job,)
    held: Bools  # (job,)
    here: Floats  # (job,) seconds still needed where it sits
    work: Floats  # (job,) accelerator-seconds still needed on its fastest type
    least: Floats  # (app,) seconds still needed by its longest job at best
    paused: Floats  # (app,) accelerator-seconds still needed by its paused jobs
    elapsed: Floats  # (app,)
    ideal: Floats  # (app,)


@dataclass(frozen=True, slots=True)
class Tables:
    """The bid tables of some apps, one below the other. A row seats `count` gangs, from `gang` of the book on."""

    bidder: Ints  # (row,) ascending from 0
    gang: Ints  # (row,)
    count: Ints  # (row,)
    rho: Floats  # (row,) of the app with these gangs
    book: Book


def standing(seen: Seen, bidders: Ints) -> Standing:
    """Return what the apps that bid are."""
    view, bids = seen.view, np.zeros(len(seen.elapsed), dtype=bool)
    bids[bidders] = True
    job = seen.in_turn(np.flatnonzero(bids[view.app]))
    begin = np.searchsorted(view.app[job], np.arange(len(bids) + 1))
    by_app = seen.least, seen.paused, seen.elapsed, seen.ideal
    return Standing(begin, job, seen.wants, seen.held, seen.here, seen.work, *by_app)


def bid_tables(seen: Seen, bidders: Ints, free: Ints, rows: int = ROWS) -> Tables:
    """Return what apps bid for what is free, (unit,), in at most `rows` rows each."""
    return Tables(*tabled(seen.ground, seen.gangs, standing(seen, bidders), bidders, free, rows))


@kernel()
def tabled(
    ground: Ground, gangs: Gangs, apps: Standing, bidders: Ints, free: Ints, rows: int
) -> tuple[Ints, Ints, Ints, Floats, Book]:
    """Return the columns of `Tables`. The turn of a bidder tells apps apart that bid for machines of one kind."""
    most = len(bidders) * rows
    bidder, gang, count = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    rho, book = np.empty(most), opened(len(bidders) * 4)
    unit, number = np.empty(len(free), np.int64), np.empty(len(free), np.int64)
    n = 0
    for turn in range(len(bidders)):
        app = bidders[turn]
        mine = apps.job[apps.begin[app] : apps.begin[app + 1]]
        longest, left, held = _now(gangs, apps, app, mine)
        bidder[n], gang[n], count[n], begin = turn, book.used[0], 0, n
        rho[n] = fairness(apps.elapsed[app], apps.ideal[app], longest, left, held)
        n += 1
        wants = mine[apps.wants[mine]]
        if len(wants) == 0:
            continue
        ways, first = max(1, (rows - 1) // len(wants)), book.used[0]
        book = _ways(ground, gangs, wants[0], free, turn, ways, book, unit, number)
        found = book.used[0] - first
        key = np.where(book.own[first : first + found], -1.0, book.time[first : first + found])
        for g in first + sorted_places(key)[:ways]:
            if n == begin + rows:
                break
            entries = book.first[g + 1] - book.first[g]
            unit[:entries] = book.unit[book.first[g] : book.first[g + 1]]
            number[:entries] = book.amount[book.first[g] : book.first[g + 1]]
            type, time, own, start = book.type[g], book.time[g], book.own[g], book.used[0]
            after, slowest, more, seats = free.copy(), longest, left, held
            for k in range(len(wants)):
                m = wants[k]
                if k > 0:
                    entries, type, time, own = nearest(ground, gangs, m, after, True, unit, number)
                if entries == 0 or n == begin + rows:
                    break
                book = pushed(book, m, type, own, time, unit, number, entries)
                for e in range(entries):
                    after[unit[e]] -= number[e]
                slowest, seats = max(slowest, time), seats + gangs.size[m]
                more += time * gangs.size[m] - apps.work[m]
                bidder[n], gang[n], count[n] = turn, start, k + 1
                rho[n] = fairness(apps.elapsed[app], apps.ideal[app], slowest, more, seats)
                n += 1
    return bidder[:n], gang[:n], count[:n], rho[:n], book


@kernel()
def _now(gangs: Gangs, apps: Standing, app: int, mine: Ints) -> tuple[float, float, float]:
    """Return how long the longest of an app's jobs takes as they sit, what it has left to do, and on how many seats."""
    longest, left, held = apps.least[app], apps.paused[app], 0.0
    for m in mine:
        if apps.held[m]:
            longest = max(longest, apps.here[m])
            left += apps.here[m] * gangs.size[m]
            held += gangs.size[m]
        else:
            left += apps.work[m]
    return longest, left, held


@kernel()
def _ways(
    ground: Ground, gangs: Gangs, job: int, free: Ints, turn: int, ways: int, book: Book, unit: Ints, count: Ints
) -> Book:
    """Add up to `ways` places of a gang to the book, and one more for each type on which it must sit apart."""
    size, found = gangs.size[job], 0
    n = own_place(ground, gangs, job, free, unit, count)
    if n > 0:
        time = gangs.time[job, gangs.type[job]] * gangs.slowdown[job, apart(ground, unit, n)]
        book, found = pushed(book, job, gangs.type[job], True, time, unit, count, n), 1
    for j in sorted_places(gangs.time[job]):
        time = gangs.time[job, j]
        if time == np.inf:
            break
        room = rooms(ground, j, free)
        units = np.flatnonzero((free >= size) & (ground.type[ground.node] == j))
        units = units[sorted_places(free[units])]
        here = min(max(ways - found, 0), len(units))
        for k in range(here):
            unit[0], count[0] = units[(k + turn) % len(units)], size
            book = pushed(book, job, j, False, time * gangs.slowdown[job, 0], unit, count, 1)
        found += here
        wide = room >= size
        wide[ground.node[units]] = False
        nodes = np.flatnonzero(wide)
        nodes = nodes[sorted_places(room[nodes])]
        here = min(max(ways - found, 0), len(nodes))
        for k in range(here):
            n = gather(ground, nodes[(k + turn) % len(nodes)], free, size, unit, count, 0)
            level = apart(ground, unit, n)
            book = pushed(book, job, j, False, time * gangs.slowdown[job, level], unit, count, n)
        found += here
        if len(units) + len(nodes) == 0:
            n = scattered(ground, room, free, size, unit, count)
            if n > 0:
                level = apart(ground, unit, n)
                book = pushed(book, job, j, False, time * gangs.slowdown[job, level], unit, count, n)
                found += 1
    return book


def misjudged(tables: Tables, error: float, rng: np.random.Generator) -> Tables:
    """Return the tables as apps would bid that misjudge each ρ by up to ± error of it."""
    return replace(tables, rho=tables.rho * (1 + error * rng.uniform(-1, 1, len(tables.rho))))


def misreported(tables: Tables, bidder: int, factor: float) -> Tables:
    """Return the tables with one app lying: it says that winning helps it by another factor than it does."""
    lies = (tables.bidder == bidder) & (tables.count > 0)
    return replace(tables, rho=np.minimum(np.where(lies, tables.rho / factor, tables.rho), RHO_MAX))
