"""Pollux' simulator as a backend: once a minute it looks at what became of its jobs, and takes decisions then."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from eunomia.backends.simulated.virtual_clock import VirtualClock
from eunomia.model.decisions import Decision, SetTimer, Start, Stop
from eunomia.model.events import Event, JobFinished
from eunomia.model.job import Job
from eunomia.model.topology import Topology
from eunomia_reproduction.peers.pollux.training import PolluxJob

MINUTE_S = 60.0


class MinuteWorld(VirtualClock):
    """Moments at whole minutes: jobs that were submitted or completed since the last one."""

    def __init__(self, trainings: Sequence[PolluxJob], jobs: Sequence[Job], topology: Topology):
        super().__init__(jobs)
        self._arrivals = array("d", (max(_whole_minute(arrival), MINUTE_S) for arrival in self._arrivals))
        self._topology = topology
        self._trainings = {training.name: training for training in trainings}
        self._epoch: dict[str, int] = {}
        self._reported: set[str] = set()  # jobs known to be complete

    def present(self) -> list[PolluxJob]:
        """Return the jobs that were submitted and are not known to be complete, in order of submission."""
        names = (job.job_id for job in self._jobs[: self._arrived])
        return [self._trainings[name] for name in names if name not in self._reported]

    def _next_time(self) -> float:
        return self._at + MINUTE_S

    def _happen_now(self) -> list[Event]:
        for training in self._trainings.values():
            training.step(MINUTE_S)
        ended = [training.name for training in self.present() if training.completed is not None]
        self._reported.update(ended)
        self._unfinished -= len(ended)
        return [JobFinished(name, self._epoch[name]) for name in ended]

    def carry_out(self, decision: Decision) -> None:
        """Apply a decision at once; a timer fires at the next whole minute."""
        if isinstance(decision, SetTimer):
            decision = SetTimer(max(_whole_minute(decision.at), self._at + MINUTE_S))
        super().carry_out(decision)

    def _stop(self, order: Stop) -> None:
        for name in order.job_ids:
            self._trainings[name].place(())

    def _start_gang(self, order: Start) -> None:
        """Start a gang; machines with the most of its accelerators come first, as they are given out there."""
        on_node = np.bincount(self._topology.node[np.array(order.seats)])
        self._epoch[order.job_id] = order.epoch
        self._trainings[order.job_id].place(sorted(on_node[on_node > 0].tolist(), reverse=True))


def _whole_minute(at: float) -> float:
    return math.ceil(at / MINUTE_S) * MINUTE_S if at < math.inf else at
