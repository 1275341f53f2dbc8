"""Moments in columns: submissions and completions whose decisions follow without an ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Starts
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.job_ids import JobIdList


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentBatch:
    """Moments with submissions and completions, each followed by at most one start. Rows are jobs by submission.

    Iterating yields every moment with its decisions, as they are without a batch.
    """

    at: Floats  # (event,)
    row: Ints  # (event,) its job
    epoch: Ints  # (event,) run that was completed; 0 = the job was submitted
    last: Ints  # (event,) 1 = the last of its moment
    started: Ints  # (event,) job that was started after the moment that ends here, -1 = none
    started_epoch: Ints  # (event,)
    seats: Ints  # (seat,) of the started gangs in order
    seats_end: Ints  # (event,) where those of the gangs started so far end
    submitted: Sequence[Job]  # in order
    first_row: int  # of the first submitted job
    ids: Sequence[str]  # (job,) by row

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.at)

    def __iter__(self) -> Iterator[tuple[Moment, list[Decision]]]:
        events: list[Event] = []
        for m, (row, epoch) in enumerate(zip(self.row.tolist(), self.epoch.tolist(), strict=True)):
            events.append(
                JobFinished(self.ids[row], epoch) if epoch else JobSubmitted(self.submitted[row - self.first_row])
            )
            if self.last[m]:
                yield Moment.of(self.at.item(m), events), self._decisions(m)
                events = []

    def _decisions(self, m: int) -> list[Decision]:
        """Return the decisions of the moment that ends with an event."""
        if self.started[m] < 0:
            return []
        seats = self.seats[self.seats_end[m - 1] if m > 0 else 0 : self.seats_end[m]]
        lead, epoch = self.started[m : m + 1], self.started_epoch[m : m + 1]
        return [Starts.single(JobIdList(lead, self.ids), epoch, seats, np.inf)]
