"""A number of ours with its 95 % interval, computed from kept rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eunomia.metrics.statistics import estimate, paired
from eunomia.model import elementary
from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.ratio_rows import HIGH, LOW


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and the ends of its 95 % interval; None where the rows say nothing of it."""

    value: float
    low: float | None = None
    high: float | None = None


class Quantity(Protocol):
    """What a claim speaks of."""

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows it is computed from."""

    def measured(self, kept: KeptRows) -> Measured:
        """Return the number. Raises InvalidInput when a row is missing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kept row. Its interval is in rows of the same name whose quantity ends in `, low` and `, high`."""

    experiment: str
    series: str
    quantity: str
    x: float | int | str = ""

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows it is computed from."""
        return (self.experiment,)

    def measured(self, kept: KeptRows) -> Measured:
        """Return the number. Raises InvalidInput when the row is missing."""
        value = kept.value(self.experiment, (self.series, str(self.x), self.quantity))
        low, high = (kept.get(self.experiment, (self.series, str(self.x), self.quantity + end)) for end in (LOW, HIGH))
        return Measured(value, low, high)


@dataclass(frozen=True, slots=True)
class SeedRows:
    """A row for each seed, with the seed as x: their mean, with the interval of Student's t."""

    experiment: str
    series: str
    quantity: str

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows it is computed from."""
        return (self.experiment,)

    def by_seed(self, kept: KeptRows) -> dict[int, float]:
        """Return the value under each seed, from seed 0 on. Raises InvalidInput when there is none."""
        key = (self.series, "0", self.quantity)
        found = {0: kept.value(self.experiment, key)}
        while (value := kept.get(self.experiment, (self.series, str(len(found)), self.quantity))) is not None:
            found[len(found)] = value
        return found

    def measured(self, kept: KeptRows) -> Measured:
        """Return the mean and its interval. Raises InvalidInput when a row is missing."""
        mean = estimate(np.array(list(self.by_seed(kept).values())))
        assert mean is not None  # by_seed has a value at least
        return Measured(mean.mean, mean.low, mean.high)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity over another. Paired by seed: the geometric mean, with the interval of the mean logarithm."""

    above: Row | SeedRows
    below: Row | SeedRows

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows it is computed from."""
        return tuple(dict.fromkeys((*self.above.experiments, *self.below.experiments)))

    def measured(self, kept: KeptRows) -> Measured:
        """Return the ratio; an interval only of two quantities by seed. Raises InvalidInput when a row is missing."""
        if not (isinstance(self.above, SeedRows) and isinstance(self.below, SeedRows)):
            return Measured(self.above.measured(kept).value / self.below.measured(kept).value)
        both = paired(self.above.by_seed(kept), self.below.by_seed(kept))
        assert both is not None  # seed 0 is of both
        log = both.log_ratio
        assert log is not None  # durations, costs and speeds are above 0
        ends = (log.low, log.high)
        low, high = (None if end is None else float(elementary.exp(end)) for end in ends)
        return Measured(float(elementary.exp(log.mean)), low, high)
