"""What a running measurement reports, and when it has reported enough."""

from __future__ import annotations

from dataclasses import dataclass, field

from eunomia.job_tuning.measurements import MeasuredShape, rate_of_reports
from eunomia.job_tuning.shapes import JobShape

MARGIN = 10.0  # total steps of a measured job ÷ steps that are measured: it must not end before it is stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsToMeasure:
    """How long a measurement is: steps that do not count, steps that do, and the longest time on its accelerators.

    A report may be read up to `late_s` after it was made: intervals allow for that.
    """

    warm_up: float
    steps: float
    limit_s: float
    late_s: float = 0.0

    @property
    def total(self) -> float:
        """The total steps that the job finds in its environment."""
        return MARGIN * (self.warm_up + self.steps)


@dataclass(slots=True)
class Progress:
    """The reports (s, steps) of one measurement, each count of steps once."""

    shape: JobShape
    wanted: StepsToMeasure
    reports: list[tuple[float, float]] = field(default_factory=list)

    def add(self, at: float, steps: float) -> None:
        """Take in a report; one that goes back begins the measurement anew, as a job does that was started again."""
        if self.reports and steps < self.reports[-1][1]:
            self.reports.clear()
        if not self.reports or steps > self.reports[-1][1]:
            self.reports.append((at, steps))

    @property
    def is_enough(self) -> bool:
        """Whether the steps were reported."""
        counted = [steps for _, steps in self.reports if steps >= self.wanted.warm_up]
        return len(counted) > 1 and counted[-1] - counted[0] >= self.wanted.steps

    def result(self, why_ended: str) -> MeasuredShape:
        """Return the measurement: of the reports so far, or that the job does not run because of `why_ended`."""
        rate = rate_of_reports(self.reports, self.wanted.warm_up, self.wanted.late_s)
        if rate is not None:
            return MeasuredShape(self.shape, rate)
        last = self.reports[-1][1] if self.reports else 0.0
        missing = (
            f"it reported {last:g} steps, and two reports after {self.wanted.warm_up:g} steps are needed"
            if self.reports
            else "it reported no steps: call progress or save of eunomia.lease"
        )
        return MeasuredShape(self.shape, None, f"{why_ended}; {missing}")

    def failed(self, reason: str) -> MeasuredShape:
        """Return that the job does not run in this shape."""
        return MeasuredShape(self.shape, None, reason)
