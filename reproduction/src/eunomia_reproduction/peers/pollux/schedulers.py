"""The schedulers of Pollux' artifact other than Pollux, to the letter: asked every minute, they grant seats.

Tiresias: two queues. A job enters the first when it comes, and the end of the second when it has had 16 h of
accelerator time; the first jobs in the queue that fit run, wider ones are passed over; no job is promoted again.

Optimus with an oracle: every job gets one accelerator, in order of submission; then one by one the job that gains most
by another one, (seconds per step now - with one more) · steps left, gets it. A job whose number changes moves.

Both give seats on the machine with the most free accelerators, and on the next such until the gang is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia_reproduction.peers.pollux.training import PolluxJob
from eunomia_reproduction.peers.pollux.world import MINUTE_S

_SEATS = frozenset({"scale_factor", "on_type", "capacity", "topology", "holder"})


def _info(name: str, needs: set[str], **more: dict[str, float]) -> PolicyInfo:
    return PolicyInfo(
        name=name,
        answer_type="grants",
        objective="as in Pollux' artifact",
        technique="greedy",
        paper="Qiao et al., Pollux, OSDI 2021 (its simulator)",
        needs=_SEATS | needs,
        memory_columns=more.get("memory_columns", {}),
    )


@dataclass(frozen=True, slots=True)
class TwoQueues:
    """Tiresias as that simulator has it. `threshold` is in accelerator-seconds."""

    threshold: float = 16 * 3600.0

    info: ClassVar[PolicyInfo] = _info("two_queues", {"service"}, memory_columns={"demoted": -1.0})

    def decide(self, view: View) -> Grants:
        """Return the jobs that start and stop this minute."""
        demoted = view.memory["demoted"].copy()
        demoted[(demoted < 0) & (view.service >= self.threshold)] = view.at
        line = np.lexsort((np.arange(view.jobs), demoted))
        left, runs = int(view.capacity.sum()), np.zeros(view.jobs, dtype=bool)
        for m in line.tolist():
            runs[m] = view.scale_factor[m] <= left
            left -= int(view.scale_factor[m]) * int(runs[m])
        holds = view.on_type >= 0
        starting = [(m, int(view.scale_factor[m]), 0) for m in line.tolist() if runs[m] and not holds[m]]
        return _granted(view, np.flatnonzero(holds & ~runs), starting, {"demoted": demoted})


@dataclass(frozen=True, slots=True)
class OracleOptimus:
    """Optimus as that simulator has it; `present` tells the truth about the jobs of the view, row by row.

    Shape s of a job is a gang of s + 1; a wider one than the job has shapes is never given.
    """

    present: Callable[[], Sequence[PolluxJob]]
    widest: Callable[[PolluxJob], int]

    info: ClassVar[PolicyInfo] = _info("oracle_optimus", set())

    def decide(self, view: View) -> Grants:
        """Return the jobs that start, move and stop this minute."""
        trainings = self.present()
        count = self._counts(trainings, int(view.capacity.sum()))
        held = np.bincount(view.holder[view.holder >= 0], minlength=view.jobs)
        keeps = (held == count) & (held > 0)
        line = np.argsort(count, kind="stable")
        starting = [(m, int(count[m]), int(count[m]) - 1) for m in line.tolist() if count[m] and not keeps[m]]
        return _granted(view, np.flatnonzero((held > 0) & ~keeps), starting, {})

    def _counts(self, trainings: Sequence[PolluxJob], left: int) -> Ints:
        """Return the accelerators of each job, (job,)."""
        count, gain = np.zeros(len(trainings), dtype=np.int64), np.zeros(len(trainings))
        for m, training in enumerate(trainings):
            if left > 0:
                count[m], left = 1, left - 1
                gain[m] = self._gain(training, 1) if left > 0 else 0.0
        while left > 0 and gain.max(initial=0.0) > 0:
            m = int(np.argmax(gain))
            count[m] += 1
            gain[m] = self._gain(trainings[m], int(count[m]))
            left -= 1
        return count

    def _gain(self, training: PolluxJob, accelerators: int) -> float:
        """Return the seconds that one more would save; 0 when it may not have more."""
        if accelerators + 1 > self.widest(training):
            return 0.0
        now, then = training.believed_step_time(accelerators), training.believed_step_time(accelerators + 1)
        return (now - then) * training.remaining_steps()


def _granted(view: View, stop: Ints, starting: Sequence[tuple[int, int, int]], memory: dict[str, Floats]) -> Grants:
    """Return the answer that seats (job, accelerators, shape) in that order once those that stop have left."""
    free = (view.holder == -1) | np.isin(view.holder, stop)
    found = [_take(view, free, size) for _, size, _ in starting]
    job, size, shape = (np.array([row[i] for row in starting], dtype=np.int64) for i in range(3))
    device = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    rows = Rows(job, np.zeros_like(job), shape=shape)
    row, until = np.repeat(np.arange(len(job)), size), np.full(len(job), np.nan)
    return Grants(rows, row, device, until, stop=stop, again_at=view.at + MINUTE_S, memory=memory)


def _take(view: View, free: np.ndarray, size: int) -> Ints:
    """Take seats for a gang, on the machine with the most free ones first."""
    seats: list[int] = []
    while len(seats) < size:
        places = np.flatnonzero(free)
        node = int(np.argmax(np.bincount(view.topology.node[places], minlength=view.topology.nodes)))
        taken = places[view.topology.node[places] == node][: size - len(seats)]
        free[taken] = False
        seats += taken.tolist()
    return np.array(seats, dtype=np.int64)
