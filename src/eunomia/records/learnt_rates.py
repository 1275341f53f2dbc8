"""What was learnt of throughputs: what a scheduler has, in words and as rows, and what the jobs of a run reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.core.belief import Belief
from eunomia.inputs.problems import refused
from eunomia.model.events import Progressed
from eunomia.records.record import Record
from eunomia.records.replay import walk
from eunomia.throughputs.estimators.calibration import CalibratedRate
from eunomia.throughputs.estimators.learnt_throughputs import MOST_FAILED, LearntThroughputs
from eunomia.throughputs.measured_table import Measurements

Run = tuple[str, int]  # job and number of its start


def describe_throughput(belief: Belief, job_type: str, size: int) -> str | None:
    """Return what is believed of a gang's speed and what that rests on, after "it runs at"; None before it is learnt.

    For example "2 steps/s on v100, measured over 60 s; 4.1 on k80, estimated".
    """
    found = belief.learnt.get((job_type, size))
    if found is None:
        return None
    said = list[str]()
    for j in np.flatnonzero(found.rates > 0).tolist():
        on = f"{found.rates[j]:,.3g}{'' if said else ' steps/s'} on {belief.speeds.types[j]}"
        basis = "to be tried at the upper end of its interval" if found.tried[j] else "estimated"
        if found.failed[j] >= MOST_FAILED:
            basis = f"estimated, not tried any more after {MOST_FAILED} starts without progress"
        said.append(f"{on}, {f'measured over {found.measured_s[j]:,.0f} s' if found.measured_s[j] > 0 else basis}")
    return "; ".join(said) or None


def learnt_rows(learnt: LearntThroughputs, job_types: Sequence[str] = ()) -> list[CalibratedRate]:
    """Return a row for each job type and size that was asked about, and of each accelerator type.

    Those of `job_types` that no job asked about have one of a single accelerator.
    """
    for name in job_types:
        if not learnt.sizes(name):
            learnt.rates(name, 1)
    rows = list[CalibratedRate]()
    for job_type, size in learnt.known():
        found = learnt.rates(job_type, size)
        columns = (each.tolist() for each in (found.median, found.low, found.high, found.measured_s > 0))
        for name, *values in zip(learnt.types, *columns, strict=True):
            rows.append(CalibratedRate(name, job_type, size, *values))
    return rows


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


def measured_rates(record: Record) -> Measurements:
    """Return steps/s of gangs alone on their accelerators, by (type, job type, scale factor).

    A start of a job counts from its first report of steps to its last, so that loading does not; several starts of a
    kind count by their seconds. Jobs beside another job are left out. Raises InvalidInput where no start of any job
    reported steps twice.
    """
    first: dict[Run, tuple[float, float]] = {}  # seconds and steps of the first report
    last: dict[Run, tuple[float, float]] = {}
    kinds: dict[Run, tuple[str, str, int]] = {}
    running: Mapping[str, Run] = {}
    for moment, scheduler in walk(record):
        for event in moment.events:
            if isinstance(event, Progressed):
                for job_id, steps in zip(event.job_ids, event.steps, strict=True):
                    if job_id in running:
                        first.setdefault(running[job_id], (moment.at, float(steps)))
                        last[running[job_id]] = moment.at, float(steps)
        state, running = scheduler.state, {}
        for row in state.running().tolist():
            if state.jobs.partner[row] < 0:
                job = state.submitted[row]
                run = running[job.job_id] = job.job_id, int(state.jobs.epoch[row])
                kinds[run] = (
                    state.topology.types[state.jobs.on_type[row]],
                    job.job_type,
                    int(state.jobs.lease_size[row]),
                )
    done: dict[tuple[str, str, int], tuple[float, float]] = {}
    for run, (begun, before) in first.items():
        ended, after = last[run]
        if ended > begun and after > before:
            seconds, steps = done.get(kinds[run], (0.0, 0.0))
            done[kinds[run]] = seconds + ended - begun, steps + after - before
    if not done:
        rule = "no start of a job that ran alone reported its steps twice, so there is no rate"
        raise refused(str(record.path), "steps", "none", rule, "call progress or save of eunomia.lease more often")
    return Measurements(
        str(record.path), {kind: steps / seconds for kind, (seconds, steps) in sorted(done.items())}, {}
    )
