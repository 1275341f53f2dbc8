"""A round of the clock as decisions: who stops, who goes on, who starts, and how far each may get."""

from __future__ import annotations

import numpy as np

from eunomia.core.scheduler_state import SchedulerState
from eunomia.mechanisms.gavel_rounds.round_diff import HEAD, OF_START, turn
from eunomia.mechanisms.gavel_rounds.round_progress import Round
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop


class RoundSeats:
    """Writes each round into the core's state, and tells what changed."""

    def __init__(self, books: SchedulerState):
        self._books, self.state = books, books.state

    def decisions(self, found: Round, at: float) -> list[Decision]:
        """Return what is to be done so that this round, and nobody else, runs."""
        names, n = self.state.names, len(found.first)
        self.state.passes += 1
        told, limits = self._books.paper()[2], np.empty(2 * n)
        length = turn(
            at, found.end, self.state.passes, found.first, found.second, found.on, found.start, found.seats, found.kept,
            found.steps, found.mate_steps, np.empty(n, dtype=np.bool_), told, limits, *self._books.arrays,
        )  # fmt: skip
        self._books.demand_legal()
        told = told[:length].copy()
        stops, renewals, starts, _ = told[:HEAD].tolist()
        orders: list[Decision] = []
        place = HEAD + 2 * stops
        if stops:
            orders.append(Stop(names(told[HEAD : HEAD + stops]), told[HEAD + stops : place]))
        if renewals:
            orders.append(Renew(names(told[place : place + renewals]), found.end, limits[:renewals]))
        if starts:
            self._start(found, starts, told[place + renewals :], orders)
        return orders

    def _start(self, found: Round, starts: int, told: Ints, orders: list[Decision]) -> None:
        rows, first, second, epochs, mate_epochs = told[: OF_START * starts].reshape(OF_START, starts)
        begin, seats = told[OF_START * starts : (OF_START + 1) * starts + 1], told[(OF_START + 1) * starts + 1 :]
        shape = np.zeros(starts, dtype=np.int64)
        names = self.state.names
        orders.append(
            Starts(
                jobs=names(first),
                epochs=epochs,
                first=begin,
                seats=seats,
                until=np.full(starts, found.end),
                shape=shape,
                partners=names(second),
                partner_epochs=mate_epochs,
                max_steps=found.steps[rows],
            )
        )
        if found.paired:
            self._books.correct_rates(first, found.on[rows], shape, np.diff(begin), second)
            two = second >= 0
            if two.any():  # each of two has steps of its own to do
                both = np.concatenate((first[two], second[two]))
                limits = np.concatenate((found.steps[rows[two]], found.mate_steps[rows[two]]))
                orders.append(Renew(names(both), found.end, limits))
