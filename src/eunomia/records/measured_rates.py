"""Rates that a real run reached, from the steps that its jobs reported: measurements of a throughput table."""

from __future__ import annotations

from collections.abc import Mapping

from eunomia.inputs.problems import refused
from eunomia.model.events import Progressed
from eunomia.records.record import Record
from eunomia.records.replay import walk
from eunomia.throughputs.measured_table import Measurements

Run = tuple[str, int]  # job and number of its start


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
