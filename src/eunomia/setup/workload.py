"""The jobs of a scenario: its trace, cut to the window, with job types and steps filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eunomia import traces
from eunomia.inputs.field_rules import MOST_S
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Bools, Floats
from eunomia.model.job import Job
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.setup.app_checks import demand_speeds_of_searches, refuse_shared_apps
from eunomia.setup.tenants import owned, refuse_strange_paths, without_jobs
from eunomia.throughputs import job_mix
from eunomia.throughputs import load as load_throughputs
from eunomia.throughputs.throughput_table import Throughputs
from eunomia.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs in order of submission, and what a reader of the results must know about them."""

    jobs: tuple[Job, ...]
    notes: tuple[str, ...]


def read_trace(scenario: Scenario) -> Trace:
    """Return the scenario's trace or generated workload, cut to its window and load."""
    work = scenario.workload
    if work.trace is not None:
        trace = _read(scenario.resolve(work.trace), work.format, work.options)
    else:
        assert work.generator is not None
        trace = traces.generate(work.generator, scenario.seed, **work.options)
    return traces.window(trace, start_s=work.start_s, end_s=work.end_s, load=work.load, max_jobs=work.max_jobs)


def _read(path: Path, format: str, options: Mapping[str, Any]) -> Trace:
    """Return the trace in a file or folder. The last is kept: the next run of a sweep mostly wants the same."""
    beside = [path.parent / text for text in options.values() if isinstance(text, str)]
    said = (path, format, repr(sorted(options.items())), *map(_stamps, (path, *beside)))
    if said not in _KEPT:
        trace = traces.read(path, format, **options)
        _KEPT.clear()
        _KEPT[said] = trace
    return _KEPT[said]


def _stamps(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when a file, or one in a folder, is written again."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.is_file() else []
    stats = [(str(file), file.stat()) for file in files if file.is_file()]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


_KEPT: dict[tuple[object, ...], Trace] = {}


def workload_of(scenario: Scenario, topology: Topology, speeds: Throughputs) -> Workload:
    """Return the jobs. Raises InvalidInput naming every row that can never run."""
    trace, job_type, total_steps, notes = _checked(scenario, topology, speeds)
    return Workload(jobs=_jobs(scenario, trace, job_type, total_steps), notes=notes)


def submissions(scenario: Scenario, topology: Topology, speeds: Throughputs) -> Floats:
    """Return the jobs' submission times, (job,), without making the jobs. Raises InvalidInput as `workload_of`."""
    return _checked(scenario, topology, speeds)[0].submitted_s


def _checked(
    scenario: Scenario, topology: Topology, speeds: Throughputs
) -> tuple[Trace, tuple[str, ...], Floats, tuple[str, ...]]:
    """Return the trace, and of each job its type and total steps, and the notes; all can run."""
    read = read_trace(scenario)
    refuse_strange_paths(read)
    refuse_shared_apps(read)
    trace, spread = owned(read, scenario.workload.missing_vc, scenario.seed)
    notes = [*trace.notes, *spread, *without_jobs(scenario, trace)]
    job_type = trace.job_type
    if job_type is None:
        job_type, note = _drawn_types(scenario, trace, speeds)
        notes.append(note)
    demand_speeds_of_searches(scenario, job_type, speeds)
    total_steps = _steps(scenario, trace, job_type, speeds)
    _refuse_impossible(trace, job_type, speeds, topology)
    _refuse_endless(trace, job_type, total_steps, speeds)
    notes += _extrapolated(trace, job_type, speeds)
    return trace, job_type, total_steps, tuple(notes)


def _drawn_types(scenario: Scenario, trace: Trace, speeds: Throughputs) -> tuple[tuple[str, ...], str]:
    if not speeds.job_types:  # uniform: all jobs are alike
        return ("any",) * len(trace.job_id), "The trace names no job types and all speeds are 1: every job is 'any'."
    named = scenario.workload.job_types
    rng = np.random.default_rng((scenario.seed, 1))
    drawn = job_mix.assign(named, trace.scale_factor, rng, speeds)
    return (
        drawn,
        f"The trace names no job types; they were drawn with seed {scenario.seed} from {job_mix.describe(named)}.",
    )


def _steps(scenario: Scenario, trace: Trace, job_type: tuple[str, ...], speeds: Throughputs) -> Floats:
    """Return total steps, from the duration on the reference type where the trace gives only that."""
    steps = trace.total_steps.copy()
    lacking = np.flatnonzero(np.isnan(steps))
    if len(lacking) == 0:
        return steps
    rate = np.ones(len(lacking))
    if not speeds.job_types:  # all types are alike: the first is as good a reference as any
        sizes, place = np.unique(trace.scale_factor[lacking], return_inverse=True)
        rate = np.array([speeds.alone("", size)[0] for size in sizes.tolist()])[place.reshape(-1)]
    else:
        reference = load_throughputs(
            scenario.throughputs.source, [scenario.throughputs.reference_type], base=scenario.base
        )
        known: dict[tuple[str, int], float] = {}
        problems = Problems(trace.source)
        for i, m in enumerate(lacking.tolist()):
            key = (job_type[m], int(trace.scale_factor[m]))
            if key not in known:
                known[key] = float(reference.alone(*key)[0])
            rate[i] = known[key]
            if rate[i] == 0:
                problems.add(
                    f"cannot run on {scenario.throughputs.reference_type}, which durations are counted on",
                    "choose another reference_type, or give total_steps",
                    row=int(trace.row[m]),
                    column="job_type",
                    value=key[0],
                )
        problems.raise_if_any()
    steps[lacking] = trace.duration_s[lacking] * rate
    return steps


def _refuse_impossible(trace: Trace, job_type: tuple[str, ...], speeds: Throughputs, topology: Topology) -> None:
    """Raise InvalidInput for gangs wider than the cluster, and for jobs that no type in it can run."""
    problems = Problems(trace.source)
    capacity = topology.capacity()
    verdicts: dict[tuple[str, int], tuple[bool, bool]] = {}
    for m, key in enumerate(zip(job_type, trace.scale_factor.tolist(), strict=True)):
        if key not in verdicts:
            runs: Bools = speeds.alone(*key) > 0
            verdicts[key] = bool(runs.any()), bool((runs & (capacity >= key[1])).any())
        able, fits = verdicts[key]
        row = int(trace.row[m])
        if not able:
            rule = "has throughput 0 on every accelerator type of the cluster"
            problems.add(
                rule, "add a type that can run it, or leave the job out", row=row, column="job_type", value=key[0]
            )
        elif not fits:
            widest = int(capacity.max())
            rule = f"the gang is wider than every accelerator type that it can run on (at most {widest} of one type)"
            fix = "enlarge the cluster, or leave the job out (of a generator: set multi_accelerator = false)"
            problems.add(rule, fix, row=row, column="scale_factor", value=key[1])
    problems.raise_if_any()


def _refuse_endless(trace: Trace, job_type: tuple[str, ...], total_steps: Floats, speeds: Throughputs) -> None:
    """Raise InvalidInput for jobs whose steps take longer than a duration may be, even on their fastest type."""
    keys = list(zip(job_type, trace.scale_factor.tolist(), strict=True))
    fastest = {key: float(speeds.alone(*key).max()) for key in set(keys)}
    lasts_s = total_steps / np.array([fastest[key] for key in keys])
    problems = Problems(trace.source)
    for m in np.flatnonzero(~(lasts_s <= MOST_S)).tolist():
        by_steps = not np.isnan(trace.total_steps[m])
        column, given = ("total_steps", trace.total_steps[m]) if by_steps else ("duration_s", trace.duration_s[m])
        rule = f"takes {lasts_s[m]:.3g} s on the fastest type of the cluster, and a job may take {MOST_S:g} s at most"
        fix = "give it fewer steps" if by_steps else "give it a shorter duration"
        problems.add(rule, f"{fix}, or leave the job out", row=int(trace.row[m]), column=column, value=float(given))
    problems.raise_if_any()


def _extrapolated(trace: Trace, job_type: tuple[str, ...], speeds: Throughputs) -> list[str]:
    kinds = set(zip(job_type, trace.scale_factor.tolist(), strict=True))
    guessed = {kind for kind in kinds if speeds.extrapolated(*kind)}
    if not guessed:
        return []
    jobs = sum(kind in guessed for kind in zip(job_type, trace.scale_factor.tolist(), strict=True))
    sizes = ", ".join(str(size) for size in sorted({size for _, size in guessed}))
    return [f"Throughputs of {jobs:,} jobs were not measured but extrapolated by the analytic model (sizes {sizes})."]


def _jobs(scenario: Scenario, trace: Trace, job_type: tuple[str, ...], total_steps: Floats) -> tuple[Job, ...]:
    as_it_was = scenario.world.replay_status
    ended = [status if as_it_was else "" for status in trace.status]
    halves = scenario.workload.elastic == "halves"
    columns = zip(
        trace.job_id,
        total_steps.tolist(),
        trace.submitted_s.tolist(),
        trace.scale_factor.tolist(),
        job_type,
        trace.tenant,
        trace.app,
        trace.weight.tolist(),
        trace.deadline_s.tolist(),
        trace.cpus.tolist(),
        trace.memory_gib.tolist(),
        trace.retries.tolist(),
        ended,
        trace.command,
        trace.checkpoint_dir,
        strict=True,
    )
    return tuple(
        Job(
            job_id=name,
            total_steps=steps,
            submitted=submitted,
            sequence=m,
            scale_factor=size,
            job_type=kind,
            other_shapes=_halves(size) if halves else (),
            tenant=tenant,
            app=app,
            weight=weight,
            deadline=deadline,
            cpus=cpus,
            memory_gib=memory_gib,
            retries=0 if status == "failed" else retries,
            status=status,
            command=command,
            checkpoint_dir=folder,
        )
        for m, (
            name, steps, submitted, size, kind, tenant, app, weight, deadline, cpus, memory_gib, retries, status,
            command, folder,
        ) in enumerate(columns)
    )  # fmt: skip


def _halves(size: int) -> tuple[int, ...]:
    """Return a half, a quarter … of a gang, rounded down, to 1."""
    smaller = []
    while size > 1:
        size //= 2
        smaller.append(size)
    return tuple(smaller)
