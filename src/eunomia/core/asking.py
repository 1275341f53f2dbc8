"""The asks of the policy, and its last answer except for the candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from eunomia.core.answer_check import StateFacts, check_answer, check_kind
from eunomia.core.answer_rows import PendingAsk
from eunomia.core.columns import GrowingColumns
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.answers import Answer
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.decisions import Ask, Decision, Refuse
from eunomia.model.events import Answered, AskAbandoned, Moment
from eunomia.model.job_lifecycle import Cause, Stage
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason


class Asks:
    """The asks of one scheduler so far. `pending` is asked and not yet answered."""

    def __init__(self, info: PolicyInfo, sched: SchedulerState, seed: int) -> None:
        self.info = info
        self.pending: PendingAsk | None = None
        self.count, self.last_at = 0, -math.inf  # asks so far, and when the last was asked
        self.again_at = math.inf  # when the policy wants to be asked again at the latest
        self.certificate: Certificate | None = None  # of the last answer, where it was optimised
        self._sched, self._seed = sched, seed
        self._changes_known = 0  # what of `changes` in the state the last ask knew
        self._reasons: tuple[Ints, Mapping[int, Reason | str]] = (NO_INTS, {})  # of waiting, and rows of the jobs
        self._columns = GrowingColumns({name: (np.float64, value) for name, value in info.memory_columns.items()})
        self._scalars: dict[str, Any] = {}

    @property
    def is_stale(self) -> bool:
        """Whether jobs or devices came or went since the last ask."""
        return self._sched.changes != self._changes_known

    def why_of(self, row: int) -> Reason | None:
        """Return the reason of one job's wait by the last answer, without making those of all."""
        rows, reasons = self._reasons
        return next((Reason.of(reasons[m]) for m in np.flatnonzero(rows == row).tolist() if m in reasons), None)

    def note_changes(self) -> None:
        """Count all that happened as known: the last answer holds for it."""
        self._changes_known, self.again_at = self._sched.changes, math.inf

    def note_ranked(self, answers: int, last_at: float, again_at: float) -> None:
        """Count asks whose answers followed from what the policy ranks by."""
        self.count += answers
        self.last_at, self.again_at = max(self.last_at, last_at), again_at

    def ask(self, at: float, rows: Ints, columns: dict[str, Any]) -> Ask:
        """Ask about these jobs."""
        if self.info.memory_columns:
            self._columns.add_many(len(self._sched.state.jobs) - len(self._columns))
        memory = {**self._scalars, **{name: getattr(self._columns, name)[rows] for name in self.info.memory_columns}}
        types, seed = self._sched.state.topology.types, (self._seed, self.count)
        view = View(at=at, types=types, jobs=len(rows), columns=columns, seed=seed, memory=memory)
        self.pending = PendingAsk(self.count, rows)
        self.count += 1
        self.last_at = at
        self.note_changes()
        return Ask(self.pending.asked, view)

    def answer_in(self, moment: Moment) -> Answer | None:
        """Return the pending answer if the moment contains it."""
        assert self.pending is not None
        answer = None
        for event in moment.events:
            if isinstance(event, Answered):
                answer = event.answer if event.asked == self.pending.asked else None
        return answer

    def note_abandoned(self, moment: Moment) -> None:
        """Withdraw the pending ask if the moment says that it was abandoned."""
        for event in moment.events:
            if isinstance(event, AskAbandoned) and self.pending is not None and self.pending.asked == event.asked:
                self.pending = None
                self.note_changes()
                self.again_at = event.next_at

    def check(self, answer: Answer, question: PendingAsk, asked: float, at: float) -> None:
        """Raise InvalidAnswer unless the answer to a question of `asked` can be carried out at `at`; change nothing."""
        facts = StateFacts(
            self.info, self._sched, question, asked, at, stale=self.is_stale and question is self.pending
        )
        check_answer(answer, facts, question)

    def check_pending(self, answer: object, at: float) -> None:
        """Raise InvalidAnswer unless this can be taken in at `at` as the answer to the pending ask; change nothing."""
        assert self.pending is not None
        check_kind(answer, self.info, self.last_at)
        question = PendingAsk(self.pending.asked, self.pending.active)  # the check notes candidates in it
        facts = StateFacts(self.info, self._sched, question, self.last_at, at, stale=self.is_stale)
        check_answer(cast("Answer", answer), facts, question)

    def accept(self, answer: Answer, at: float, decisions: list[Decision]) -> PendingAsk:
        """Store the rest of a checked answer besides its candidates, refuse jobs it refuses, and return the ask."""
        question, self.pending = self.pending, None
        assert question is not None
        self.again_at = answer.again_at
        for name, values in answer.memory.items():
            if name in self.info.memory_columns:
                getattr(self._columns, name)[question.active] = values
            else:
                self._scalars[name] = values
        self._refuse(answer, question, at, decisions)
        self._reasons = question.active, answer.why
        self.certificate = answer.certificate
        return question

    def forget(self, stays: Bools, row: Ints) -> None:
        """Drop rows of jobs, (row,) each: those that stay, and their new numbers, -1 = dropped."""
        self._columns.compact(stays[: len(self._columns)])
        rows, reasons = self._reasons
        self._reasons = np.append(row, -1)[rows], reasons

    def _refuse(self, answer: Answer, question: PendingAsk, at: float, decisions: list[Decision]) -> None:
        state = self._sched.state
        for m, why in answer.refuse.items():
            row = int(question.active[m])
            if state.jobs.stage[row] == Stage.WAITING:
                decisions.append(Refuse(state.ids[row], why))
                self._sched.leave(row, at, Cause.REFUSED)
        if answer.refuse and question.found is not None:  # listed before: a refused job is no candidate any more
            job, type, share = question.found
            stays = state.jobs.stage[job] <= Stage.RUNNING
            question.found = job[stays], type[stays], None if share is None else share[stays]
