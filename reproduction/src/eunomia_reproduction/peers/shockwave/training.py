"""The truth about one job of Shockwave's simulator: steps, and a batch size that changes while it trains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from eunomia_reproduction.peers.shockwave.regimes import (
    LARGEST,
    SAMPLES,
    SMALLEST,
    foreseen,
    grown,
    is_critical,
    steps_per_epoch,
)

Rates = Mapping[tuple[str, int, int], float]  # steps/s by model, batch size and accelerators
OVERTIME = 1.5  # a job that has run for so many times its foreseen duration is taken as done


@dataclass(kw_only=True)
class BatchScalingJob:
    """One job. `total` and `done` count steps of the present batch size."""

    name: str
    model: str
    mode: str
    accelerators: int
    submitted: float
    batch: int
    total: int
    weight: float
    rates: Rates
    done: int = 0
    ran: float = 0.0  # seconds
    wants_larger: bool = False
    wants_smaller: bool = False

    def __post_init__(self) -> None:
        self.first_batch = self.batch
        self.longest = int(int(self.foreseen_duration) * OVERTIME)

    @cached_property
    def foreseen_duration(self) -> float:
        """Seconds that it is foreseen to train."""
        epochs = self._epochs(self.total)
        batches = foreseen(self.model, self.mode, self.batch, self.accelerators, epochs)
        return sum(SAMPLES[self.model] / batch / self._rate(batch) for batch in batches)

    @property
    def rate(self) -> float:
        """Steps/s now."""
        return self._rate(self.batch)

    @property
    def over(self) -> bool:
        """Say whether it is done, or has run for longer than it may."""
        return self.done >= self.total or self.ran > self.longest

    def look(self) -> None:
        """Ask for another batch size if it is time; it changes when the job next ends a round."""
        epoch = self._epochs(self.done)
        if self.mode == "gns":
            larger = max(grown(self.model, self.first_batch, self.accelerators, e) for e in (epoch, epoch + 1))
            self.wants_larger |= larger > self.batch and self.batch != LARGEST[self.model]
        elif self.mode == "accordion" and self.model != "Transformer":
            critical, at_first = is_critical(self.model, self.first_batch, epoch), self.batch == self.first_batch
            self.wants_larger |= at_first and not critical and self.batch != LARGEST[self.model]
            self.wants_smaller |= critical and not at_first and self.batch != SMALLEST[self.model]

    def change(self) -> None:
        """Take the batch size that was asked for; epochs done and epochs in all stay, steps are counted anew."""
        wanted = self._wanted()
        self.wants_larger = self.wants_smaller = False
        if wanted == self.batch or (self.model, wanted, self.accelerators) not in self.rates:
            return
        factor, each = self.batch / wanted, steps_per_epoch(self.model, wanted)
        epochs, begun = self._epochs(self.total), self._epochs(self.done)
        total = math.ceil(self.total * factor)
        self.total = total if math.ceil(total / each) == epochs else each * epochs
        self.done, self.batch = begun * each, wanted

    def _wanted(self) -> int:
        """Return the batch size that was asked for, or the present one."""
        may_grow = self.model != "Transformer" and self.first_batch != LARGEST[self.model]
        if not may_grow or not (self.wants_larger or self.wants_smaller):
            return self.batch
        if self.mode == "gns":
            return 2 * self.batch
        return LARGEST[self.model] if self.wants_larger else self.first_batch

    def _epochs(self, steps: int) -> int:
        return math.ceil(steps / steps_per_epoch(self.model, self.batch))

    def _rate(self, batch: int) -> float:
        return self.rates[self.model, batch, self.accelerators]
