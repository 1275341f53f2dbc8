"""A round of the clock as decisions: who stops, who goes on, who starts, and how far each may get."""

from __future__ import annotations

import numpy as np

from eunomia.core.books import Books
from eunomia.core.mechanisms.gavel.clock import Round
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop


class Seats:
    """Writes each round into the core's state, and tells what changed."""

    def __init__(self, books: Books):
        self._books, self.state = books, books.state

    def decisions(self, found: Round, at: float) -> list[Decision]:
        """Return what is to be done so that this round, and nobody else, runs."""
        goes_on = self._goes_on(found)
        orders: list[Decision] = []
        self._stop(found, goes_on, at, orders)
        self._renew(found, goes_on, orders)
        self._start(found, ~goes_on, at, orders)
        return orders

    def _goes_on(self, found: Round) -> Bools:
        """Return who sits where it sat, and still runs there, (row,)."""
        jobs = self.state.jobs
        same_type, same_mate = jobs.on_type[found.first] == found.on, jobs.partner[found.first] == found.second
        return np.asarray(found.kept & same_type & same_mate)

    def _stop(self, found: Round, goes_on: Bools, at: float, orders: list[Decision]) -> None:
        stays = np.zeros(len(self.state.jobs), dtype=np.bool_)
        stays[_both(found, goes_on)] = True
        running = self.state.running()
        rows = running[~stays[running]]
        if len(rows):
            orders.append(Stop(self.state.names(rows), self.state.jobs.epoch[rows]))
            self._books.stop_all(rows, at)

    def _renew(self, found: Round, which: Bools, orders: list[Decision]) -> None:
        rows = _both(found, which)
        if len(rows):
            self.state.jobs.until[rows] = found.end
            orders.append(Renew(self.state.names(rows), found.end, _limits(found, which)))

    def _start(self, found: Round, which: Bools, at: float, orders: list[Decision]) -> None:
        gangs = np.flatnonzero(which)
        if len(gangs) == 0:
            return
        sizes, begin = np.diff(found.start)[gangs], np.zeros(len(gangs) + 1, dtype=np.int64)
        np.cumsum(sizes, out=begin[1:])
        places = np.arange(begin[-1]) + np.repeat(found.start[gangs] - begin[:-1], sizes)
        seats, first, second = found.seats[places], found.first[gangs], found.second[gangs]
        shape = np.zeros(len(gangs), dtype=np.int64)
        self._books.start_all(first, at, found.on[gangs], shape, begin, seats, found.end, second)
        epoch, pairs = self.state.jobs.epoch, second >= 0
        orders.append(
            Starts(
                jobs=self.state.names(first),
                epochs=epoch[first],
                first=begin,
                seats=seats,
                until=np.full(len(gangs), found.end),
                shape=shape,
                partners=self.state.names(second),
                partner_epochs=np.where(pairs, epoch[second], 0),
                max_steps=found.steps[gangs],
            )
        )
        shared = which & (found.second >= 0) if found.paired else which
        if found.paired and shared.any():  # each of two has steps of its own to do
            orders.append(Renew(self.state.names(_both(found, shared)), found.end, _limits(found, shared)))


def _both(found: Round, which: Bools) -> Ints:
    """Return the jobs of these rows, then the second ones of those that share."""
    first = found.first[which]
    return np.concatenate((first, found.second[which & (found.second >= 0)])) if found.paired else first


def _limits(found: Round, which: Bools) -> Floats:
    """Return the steps of the jobs of these rows, as `_both` names them."""
    steps = found.steps[which]
    return np.concatenate((steps, found.mate_steps[which & (found.second >= 0)])) if found.paired else steps
