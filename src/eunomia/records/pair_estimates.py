"""What a record says of throughputs of pairs that were estimated before the run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PairEstimateSummary:
    """The rate of a job type beside another one over its rate alone: medians over all partners and types that fit."""

    kept: float
    low: float  # ends of the 80 % interval; equal where the method has none
    high: float
    measurements: int  # pairs of like jobs that were measured

    def describe(self) -> str:
        """Return the estimate in words, after "it" or the name of a job type."""
        interval = f", 80 % between {self.low:.2f} and {self.high:.2f}" if self.low < self.high else ""
        count = f"{self.measurements:,} measurement{'s' * (self.measurements != 1)} of like jobs"
        return f"keeps {self.kept:.2f} of its speed beside another job, estimated from {count}{interval}"
