"""What was measured of one application: step times by placement, and statistical efficiency by batch size and epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.rounding import interpolate
from eunomia_reproduction.peers.pollux.scattered import Scattered

MOST_NODES = 16  # of the measurements
Placement = tuple[int, ...]  # accelerators on each machine that is used


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Training runs at one batch size, one row an epoch."""

    progress: Floats  # (epoch,) steps of the smallest batch size that the epoch's end is worth
    iteration: Floats  # (epoch,) steps of this batch size
    grad_sqr: Floats  # (epoch,) squared norm of the gradient
    grad_var: Floats  # (epoch,) variance of the gradient


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """One application. Batch sizes are samples; times are seconds of one step."""

    name: str
    validation: Mapping[int, Validation]  # by global batch size, ascending
    placed: Mapping[Placement, tuple[Floats, Floats]]  # batch size of one accelerator (b,), times (b, 2)
    elsewhere: Scattered  # times (2,) by machines, accelerators and batch size of one accelerator
    max_local_batch: int
    _known: dict[tuple[Placement, int], tuple[float, float]] = field(default_factory=dict)

    @property
    def least_batch(self) -> int:
        """The smallest global batch size, in whose steps progress is counted."""
        return min(self.validation)

    @property
    def most_batch(self) -> int:
        """The largest global batch size."""
        return max(self.validation)

    @property
    def min_local_batch(self) -> int:
        """The smallest batch of one accelerator that was measured."""
        return int(min(batch[0] for batch, _ in self.placed.values()))

    @property
    def last_epoch(self) -> int:
        """The epoch, counted from 0, after which training is complete."""
        return min(len(run.progress) for run in self.validation.values()) - 1

    def end_of_epoch(self, epoch: int) -> float:
        """Return the progress at which the epoch, counted from 0, is complete."""
        return float(min(run.progress[epoch] for run in self.validation.values()))

    def iterations(self, batch: int, epoch: int) -> float:
        """Return the steps of this batch size until the end of the epoch, counted from 0."""
        return self._between(batch, "iteration", epoch)

    def gain(self, batch: int, epoch: int) -> float:
        """Return how many steps of the smallest batch size one step of this batch size is worth in that epoch."""
        sqr, var = self._between(batch, "grad_sqr", epoch), self._between(batch, "grad_var", epoch)
        return (var + sqr) / (var / (batch / self.least_batch) + sqr)

    def step_time(self, placement: Sequence[int], local_batch: int) -> tuple[float, float]:
        """Return the seconds of one step, and those of it spent in synchronisation."""
        key = _canonical(placement), local_batch
        if key not in self._known:
            self._known[key] = self._look_up(*key)
        return self._known[key]

    def _look_up(self, placement: Placement, local_batch: int) -> tuple[float, float]:
        if placement in self.placed:
            batch, times = self.placed[placement]
            found = [float(interpolate(local_batch, batch, times[:, column])) for column in (0, 1)]
        else:
            at = (min(len(placement), MOST_NODES), sum(placement), local_batch)
            found = self.elsewhere.at(np.array(at, dtype=np.float64)).tolist()
        return found[0], found[1]

    def _between(self, batch: int, column: str, epoch: int) -> float:
        """Return a column of the validation runs, linear between the batch sizes on either side."""
        sizes = list(self.validation)
        low, high = max(s for s in sizes if s <= batch), min(s for s in sizes if s >= batch)
        below, above = (float(getattr(self.validation[size], column)[epoch]) for size in (low, high))
        return below if low == high else ((batch - low) * above + (high - batch) * below) / (high - low)


def _canonical(placement: Sequence[int]) -> Placement:
    """Return the rotation that comes first: machines stand in a ring."""
    return min((*placement[i:], *placement[:i]) for i in range(len(placement)))


@dataclass(frozen=True, slots=True)
class Batch:
    """How a global batch is split: what one accelerator takes at once, and how often before a step."""

    local: int
    accumulated: int  # further passes before a step

    def total(self, accelerators: int) -> int:
        """Return the samples of one step."""
        return accelerators * self.local * (self.accumulated + 1)


def split(profile: Profile, batch: int, accelerators: int, *, at_least: int = 0) -> Batch:
    """Return how `batch` samples are split; `at_least` passes are accumulated besides."""
    each = math.ceil(batch / accelerators - 1e-8)
    accumulated = max(math.ceil(each / profile.max_local_batch - 1e-8) - 1, at_least)
    local = math.ceil(each / (accumulated + 1) - 1e-8)
    return Batch(min(local, profile.most_batch // (accelerators * (accumulated + 1))), accumulated)


def seconds_per_step(profile: Profile, placement: Sequence[int], batch: Batch) -> float:
    """Return the seconds of one step with its accumulated passes, which do not synchronise."""
    step, synchronisation = profile.step_time(placement, batch.local)
    return step + (step - synchronisation) * batch.accumulated
