"""Moments in columns: submissions and completions whose decisions follow without an ask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Starts, Stop
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment, TimerFired
from eunomia.model.job import Job
from eunomia.model.job_ids import JobIdList

INSTANT_S = 1e-3  # moments within this time of the first one count as one instant


@dataclass(slots=True)
class Instant:
    """The moments and asks since an instant began."""

    since: float = -math.inf
    moments: int = 0
    asks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentBatch:
    """Moments with submissions, completions and the core's own timer, and the stops and starts that follow each.

    Rows are jobs by submission. Iterating yields every moment with its decisions, as they are without a batch, but for
    asks and answers, which only observers that take batches can do without, and for timers.
    """

    at: Floats  # (event,)
    row: Ints  # (event,) its job; -1 = the timer fired
    epoch: Ints  # (event,) run that was completed; 0 = the job was submitted, -1 = the timer fired
    last: Ints  # (event,) 1 = the last of its moment
    starts_end: Ints  # (event,) how many gangs were started up to then; those of a moment count at its last event
    stops_end: Ints  # (event,) likewise
    started: Ints  # (start,) job
    started_epoch: Ints  # (start,)
    seats_end: Ints  # (start,) where its seats end
    seats: Ints  # (seat,) of the started gangs in order
    stopped: Ints  # (stop,) job, with a checkpoint
    stopped_epoch: Ints  # (stop,)
    submitted: Sequence[Job]  # in order
    first_row: int  # of the first submitted job
    ids: Sequence[str]  # (job,) by row

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.at)

    @property
    def started_at(self) -> Floats:
        """Return when each gang was started, (start,)."""
        return np.repeat(self.at, np.diff(self.starts_end, prepend=0))

    @property
    def finished(self) -> int:
        """Return how many jobs were completed."""
        return int(np.count_nonzero(self.epoch > 0))

    def __iter__(self) -> Iterator[tuple[Moment, list[Decision]]]:
        events: list[Event] = []
        for m, (row, epoch) in enumerate(zip(self.row.tolist(), self.epoch.tolist(), strict=True)):
            if epoch > 0:
                events.append(JobFinished(self.ids[row], epoch))
            else:
                events.append(JobSubmitted(self.submitted[row - self.first_row]) if epoch == 0 else TimerFired())
            if self.last[m]:
                yield Moment.of(self.at.item(m), events), self._decisions(m)
                events = []

    def _decisions(self, m: int) -> list[Decision]:
        """Return the decisions of the moment that ends with an event."""
        decisions: list[Decision] = []
        before, end = self.stops_end.item(m - 1) if m > 0 else 0, self.stops_end.item(m)
        if end > before:
            decisions.append(Stop(JobIdList(self.stopped[before:end], self.ids), self.stopped_epoch[before:end]))
        before, end = self.starts_end.item(m - 1) if m > 0 else 0, self.starts_end.item(m)
        if end > before:
            first = np.concatenate(([self.seats_end[before - 1] if before > 0 else 0], self.seats_end[before:end]))
            alone = np.full(end - before, -1)
            decisions.append(
                Starts(
                    jobs=JobIdList(self.started[before:end], self.ids),
                    epochs=self.started_epoch[before:end],
                    first=first - first[0],
                    seats=self.seats[first[0] : first[-1]],
                    until=np.full(end - before, np.inf),
                    shape=np.zeros(end - before, dtype=np.int64),
                    partners=JobIdList(alone, self.ids),
                    partner_epochs=np.zeros(end - before, dtype=np.int64),
                )
            )
        return decisions
