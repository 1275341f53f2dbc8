"""What is known when a slot begins, as Metis and its baselines see it, and the features of the network.

Each job has a ladder: the sizes that it may have, 0 first, and the decrease of its normalised loss that a slot with
each size is predicted to bring. One decision widens one job by one step of its ladder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eunomia.learning.model_file import Feature
from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats, Ints

LEAST = 1e-4  # decreases well below this are as good as none
WINDOW = 20  # waiting jobs that count as 1
FEATURES = (
    Feature(name="slots_since_arrival", unit="100 slots"),
    Feature(name="progress", unit="share of the total decrease of the loss"),
    Feature(name="decrease_now", unit="normalised loss in this slot, as allocated so far; logarithmic"),
    Feature(name="decrease_of_next", unit="normalised loss in this slot per node of the next step; logarithmic"),
    Feature(name="allocated", unit="share of the nodes"),
    Feature(name="largest", unit="share of the nodes"),
    Feature(name="last_slot", unit="share of the nodes"),
    Feature(name="work_left", unit="100 slots of one node"),
    Feature(name="free", unit="share of the nodes"),
    Feature(name="waiting", unit="jobs without nodes, in 20"),
)
PER_JOB = len(FEATURES) - 2  # the last two are of the cluster


@dataclass(frozen=True, kw_only=True)
class SlotState:
    """Jobs in order of arrival. The first three arrays are (job, step); steps beyond a ladder's end repeat its last."""

    nodes: int
    sizes: Ints
    speed: Floats  # work a slot, in slots of one node; 0 without nodes
    decrease: Floats
    last_step: Ints  # (job,) the ladder's end
    age: Floats  # (job,) slots since arrival
    progress: Floats  # (job,) share of the total decrease of the loss
    held: Ints  # (job,) nodes in the last slot
    work_left: Floats  # (job,) slots of one node

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return len(self.age)

    def allocated(self, step: Ints) -> Ints:
        """Return the nodes of each job on these steps of the ladders, (job,)."""
        return np.asarray(self.sizes[np.arange(self.jobs), step])

    def next_cost(self, step: Ints) -> Ints:
        """Return the nodes that one more step of each job takes, (job,); 0 at a ladder's end."""
        return self.allocated(np.minimum(step + 1, self.last_step)) - self.allocated(step)

    def next_gain(self, step: Ints) -> Floats:
        """Return what one more step adds to each job's decrease, (job,)."""
        rows = np.arange(self.jobs)
        return np.asarray(self.decrease[rows, np.minimum(step + 1, self.last_step)] - self.decrease[rows, step])

    def allowed(self, step: Ints) -> Bools:
        """Return which jobs may take one more step, (job,)."""
        cost = self.next_cost(step)
        return np.asarray((step < self.last_step) & (cost <= self.nodes - self.allocated(step).sum()))

    def encode(self, step: Ints) -> tuple[Floats, Floats]:
        """Return the features of jobs, (job, PER_JOB), and of the cluster, (2,), with jobs on these steps."""
        allocated, rows = self.allocated(step), np.arange(self.jobs)
        now, ahead = self._logarithms
        columns = (
            self.age / 100, self.progress, now[rows, step], ahead[rows, step], allocated / self.nodes,
            self.sizes[rows, self.last_step] / self.nodes, self.held / self.nodes, self.work_left / 100,
        )  # fmt: skip
        free, waiting = self.nodes - allocated.sum(), (allocated == 0).sum()
        return np.stack(columns, axis=1), np.array([free / self.nodes, waiting / WINDOW])

    @cached_property
    def _logarithms(self) -> tuple[Floats, Floats]:
        """The logarithms of each job's decrease on each step, and of what its next step adds per node, (job, step)."""
        steps = np.arange(self.decrease.shape[1])
        after = np.minimum(steps + 1, self.last_step[:, None])
        cost = np.take_along_axis(self.sizes, after, 1) - self.sizes
        more = np.take_along_axis(self.decrease, after, 1) - self.decrease
        return _log(self.decrease), _log(np.divide(more, cost, out=np.zeros(more.shape), where=cost > 0))


def _log(decrease: Floats) -> Floats:
    """Return 0 for decreases of 0 and less, 1 for 1, and the logarithm between."""
    return np.asarray(elementary.log1p(np.maximum(decrease, 0.0) / LEAST) / elementary.log1p(1 / LEAST))
