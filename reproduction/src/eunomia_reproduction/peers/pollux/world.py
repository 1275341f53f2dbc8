"""Pollux' simulator as a world: it looks once a minute at what became of its jobs, and takes decisions then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.model.decisions import Decision, Start, Starts, Stop, WakeAt
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment, Woken
from eunomia.model.job import Job
from eunomia.model.topology import Topology
from eunomia_reproduction.peers.pollux.training import PolluxJob

MINUTE_S = 60.0


class MinuteWorld:
    """Moments at whole minutes: who was submitted or completed since the last one."""

    def __init__(self, trainings: Sequence[PolluxJob], jobs: Sequence[Job], topology: Topology):
        self._topology = topology
        self._waiting = sorted(jobs, key=lambda job: (job.submitted, job.sequence))
        self._trainings = {training.name: training for training in trainings}
        self._epoch: dict[str, int] = {}
        self._present: list[str] = []
        self._wake = math.inf

    def present(self) -> list[PolluxJob]:
        """Return the jobs that were submitted and are not known to be complete, in order of submission."""
        return [self._trainings[name] for name in self._present]

    def moments(self) -> Iterator[Moment]:
        """Yield a moment for every minute at which something is seen, until every job is complete."""
        at = 0.0
        while self._waiting or self._present:
            at += MINUTE_S
            for training in self._trainings.values():
                training.step(MINUTE_S)
            events = [*self._ended(), *self._come(at)]
            if self._wake <= at:
                self._wake = math.inf
                events.append(Woken())
            if events:
                yield Moment.of(at, events)

    def _ended(self) -> list[Event]:
        ended = [name for name in self._present if self._trainings[name].completed is not None]
        self._present = [name for name in self._present if name not in ended]
        return [JobFinished(name, self._epoch[name]) for name in ended]

    def _come(self, at: float) -> list[Event]:
        come = [job for job in self._waiting if job.submitted <= at]
        self._waiting = self._waiting[len(come) :]
        self._present += [job.job_id for job in come]
        return [JobSubmitted(job) for job in come]

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Starts():
                for order in decision.each():
                    self._start(order)
            case Start():
                self._start(decision)
            case Stop():
                for name in decision.job_ids:
                    self._trainings[name].place(())
            case WakeAt(at):
                self._wake = at

    def _start(self, order: Start) -> None:
        """Start a gang; machines with the most of its accelerators come first, as they are given out there."""
        on_node = np.bincount(self._topology.node[np.array(order.seats)])
        self._epoch[order.job_id] = order.epoch
        self._trainings[order.job_id].place(sorted(on_node[on_node > 0].tolist(), reverse=True))
