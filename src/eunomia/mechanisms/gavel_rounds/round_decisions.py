"""A round of the clock as decisions: stops, renewals and starts, with a limit of steps each."""

from __future__ import annotations

import numpy as np

from eunomia.core.scheduler_state import SchedulerState
from eunomia.mechanisms.gavel_rounds.progress_accounting import Round
from eunomia.mechanisms.gavel_rounds.round_diff import HEAD, OF_START, turn
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop


class RoundSeats:
    """Applies each round to the scheduler state and returns the changes."""

    def __init__(self, sched: SchedulerState):
        self._sched, self.state = sched, sched.state

    def decisions(self, found: Round, at: float) -> list[Decision]:
        """Return the decisions after which exactly the jobs of this round run."""
        names, n = self.state.names, len(found.first)
        self.state.pass_count += 1
        output, limits = self._sched.kernel_scratch()[2], np.empty(2 * n)
        stays = np.empty(n, dtype=np.bool_)
        length = turn(at, found.end, self.state.pass_count, stays, output, limits, *found, *self._sched.arrays)
        self._sched.demand_legal()
        output = output[:length].copy()
        stops, renewals, starts, _ = output[:HEAD].tolist()
        orders: list[Decision] = []
        place = HEAD + 2 * stops
        if stops:
            orders.append(Stop(names(output[HEAD : HEAD + stops]), output[HEAD + stops : place]))
        if renewals:
            orders.append(Renew(names(output[place : place + renewals]), found.end, limits[:renewals]))
        if starts:
            self._start(found, starts, output[place + renewals :], orders)
        return orders

    def _start(self, found: Round, starts: int, output: Ints, orders: list[Decision]) -> None:
        rows, first, second, epochs, mate_epochs = output[: OF_START * starts].reshape(OF_START, starts)
        begin, seats = output[OF_START * starts : (OF_START + 1) * starts + 1], output[(OF_START + 1) * starts + 1 :]
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
            self._sched.correct_rates(first, found.on[rows], shape, np.diff(begin), second)
            two = second >= 0
            if two.any():  # each of two has steps of its own to do
                both = np.concatenate((first[two], second[two]))
                limits = np.concatenate((found.steps[rows[two]], found.mate_steps[rows[two]]))
                orders.append(Renew(names(both), found.end, limits))
