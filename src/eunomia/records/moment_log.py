"""Moments as a service stores them: as lines of a record, with each answer as what differs from the one before it.

Whoever reads them begins where the writer began anew (`begin`): with the first moment, or with the first one after a
snapshot that is stored. Lines of before, in which answers are whole, are read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from eunomia.core.answer_rows import PendingAsk
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Decision
from eunomia.model.events import Answered, Event, Moment
from eunomia.records.answer_changes import AnswerParts, change_of, changed
from eunomia.records.record import decision_lines, events_line, from_json, to_json
from eunomia.records.row_changes import NONE

# Fields of a stored event that has an answer so: the number of the ask before, left out where all is written; and what
# differs from its answer.
AFTER, CHANGES = "after", "changes"


class MomentLog:
    """Writes moments, or reads them, one after the other."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Write the next answer whole, so that it can be read without those before it."""
        self._asked: int | None = None  # of the last answer
        self._last = AnswerParts()

    def renumber(self, row: Ints) -> None:
        """Know the jobs of the last answer by the new numbers of their rows, (row,), -1 = dropped."""
        self._last.jobs = np.append(row, NONE)[self._last.jobs]

    def lines(self, moment: Moment, decisions: Iterable[Decision], pending: PendingAsk | None) -> str:
        """Return the lines of one moment and its decisions; `pending` is the ask that was pending before it."""
        events = [self._written(event, pending) for event in moment.events]
        return events_line(moment.at, events) + "".join(decision_lines(moment.at, decisions))

    def read(self, lines: str) -> Moment:
        """Return the moment of stored lines.

        Raises an ArithmeticError, LookupError, TypeError or ValueError for anything that is not written so.
        """
        line = json.loads(lines.partition("\n")[0])
        return Moment(float(line["at"]), tuple(map(self._event, line["events"])))

    def _written(self, event: Event, pending: PendingAsk | None) -> Any:
        if not isinstance(event, Answered) or pending is None or pending.asked != event.asked:
            return to_json(event)
        after = {} if self._asked is None else {AFTER: self._asked}
        text, self._last = change_of(self._last, event.answer, pending.active)
        self._asked = event.asked
        return {"is": "Answered", "asked": event.asked, **after, CHANGES: text}

    def _event(self, written: Mapping[str, Any]) -> Event:
        if CHANGES not in written:
            event: Event = from_json(written)
            return event
        if AFTER not in written:
            self.begin()
        elif written[AFTER] != self._asked:
            raise ValueError(f"its answer differs from that to ask {written[AFTER]}, which is not the one before it")
        answer, self._last = changed(self._last, written[CHANGES])
        self._asked = written["asked"]
        return Answered(self._asked, answer)


def stored_decisions(lines: str) -> str:
    """Return the lines of the decisions of a stored moment."""
    return lines.partition("\n")[2]
