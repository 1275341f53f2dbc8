"""Builds the jobs of a scenario from its trace or generator: window, tenants, job types and steps; checks each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from eunomia import traces
from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_table import JobTable
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.setup.stated_throughputs import NOTHING_USED, SpeedOrigins, check_known, origins_of, reference_throughputs
from eunomia.setup.tenants import check_tenant_paths, list_names, notes_on_idle_tenants, owned
from eunomia.throughputs import job_mix
from eunomia.throughputs.throughput_table import Throughputs
from eunomia.traces import Trace
from eunomia.traces.sampling import resample


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs in order of submission, and notes for readers of the results."""

    jobs: Sequence[Job]
    notes: tuple[str, ...]
    began: datetime | None = None  # local date and time at 0 s, if the trace has it
    past: PastSchedule | None = None
    origins: SpeedOrigins = NOTHING_USED  # of the throughputs that the jobs use


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSchedule:
    """The schedule as it was, as far as the trace has it; (job,) each."""

    ran_on: tuple[str, ...]  # accelerator type, "" = unknown
    started_s: Floats  # nan = unknown
    ended_s: Floats  # nan = after the job's duration
    pauses: tuple[tuple[tuple[float, float], ...], ...]  # seconds from the start in which it held nothing


def read_trace(scenario: Scenario) -> Trace:
    """Return the scenario's trace or generated workload, restricted to its window and scaled to its load."""
    work = scenario.workload
    if work.trace is not None:
        trace = _read(scenario.resolve(work.trace), work.format, work.options)
    else:
        assert work.generator is not None
        trace = traces.generate(work.generator, scenario.seed, **work.options)
    if work.resample is None:
        return traces.window(trace, start_s=work.start_s, end_s=work.end_s, load=work.load, max_jobs=work.max_jobs)
    whole = traces.window(trace, start_s=work.start_s, end_s=work.end_s)
    drawn = resample(whole, work.resample, scenario.seed)
    return traces.window(drawn, load=work.load, max_jobs=work.max_jobs)


def _read(path: Path, format: str, options: Mapping[str, Any]) -> Trace:
    """Return the trace in a file or folder. The last one is cached, as the runs of a sweep mostly share a trace."""
    beside = [path.parent / text for text in options.values() if isinstance(text, str)]
    key = (path, format, repr(sorted(options.items())), *map(_file_stats, (path, *beside)))
    if key not in _CACHE:
        trace = traces.read(path, format, **options)
        _CACHE.clear()
        _CACHE[key] = trace
    return _CACHE[key]


def _file_stats(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time in ns and size in bytes of a file, or of every file in a folder; they change with a write."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.is_file() else []
    stats = [(str(file), file.stat()) for file in files if file.is_file()]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


_CACHE: dict[tuple[object, ...], Trace] = {}


def workload_of(scenario: Scenario, topology: Topology, speeds: Throughputs) -> Workload:
    """Return the jobs. Raises InvalidInput naming every row that can never run."""
    trace, job_type, total_steps, notes = _checked(scenario, topology, speeds)
    origins = _origins(scenario, topology, speeds, trace, job_type)
    past = None
    if any(trace.ran_on) or not np.isnan(trace.started_s).all():
        past = PastSchedule(ran_on=trace.ran_on, started_s=trace.started_s, ended_s=trace.ended_s, pauses=trace.pauses)
    return Workload(
        jobs=_jobs(scenario, trace, job_type, total_steps),
        notes=(*notes, *origins.sentences),
        began=trace.began,
        past=past,
        origins=origins,
    )


def submissions(scenario: Scenario, topology: Topology, speeds: Throughputs) -> Floats:
    """Return when jobs may start, (job,), without building the jobs. Raises InvalidInput as `workload_of`."""
    return _checked(scenario, topology, speeds)[0].may_start_s


def _checked(
    scenario: Scenario, topology: Topology, speeds: Throughputs
) -> tuple[Trace, tuple[str, ...], Floats, tuple[str, ...]]:
    """Return the trace, job types, total steps, (job,), and notes, after checking that every job can run."""
    unowned = _by_eligibility(read_trace(scenario))
    check_tenant_paths(unowned)
    _check_app_owners(unowned)
    trace, tenant_notes = owned(unowned, scenario.workload.missing_vc, scenario.seed)
    notes = [*trace.notes, *tenant_notes, *notes_on_idle_tenants(scenario, trace)]
    notes += _notes_on_eligibility(trace)
    job_type = trace.job_type
    if job_type is None:
        job_type, note = _draw_types(scenario, trace, speeds)
        notes.append(note)
    _check_searched_models(scenario, job_type, speeds)
    kinds, kind = _kinds(job_type, trace)
    rows = np.arange(len(trace)), np.flatnonzero(np.isnan(trace.total_steps))
    needed, by_duration = (_needed(scenario, kinds, kind[each]) for each in rows)
    check_known(scenario, speeds, needed, by_duration)
    total_steps = _total_steps(scenario, trace, job_type, speeds)
    _check_types(trace, kinds, kind, speeds, topology)
    _check_durations(trace, total_steps, np.array([speeds.solo_throughput(*key).max() for key in kinds])[kind])
    return trace, job_type, total_steps, tuple(notes)


def _by_eligibility(trace: Trace) -> Trace:
    """Return the jobs in the order in which they become eligible to start."""
    if np.isnan(trace.eligible_s).all() or bool((np.diff(trace.may_start_s) >= 0).all()):
        return trace
    return trace.take(np.argsort(trace.may_start_s, kind="stable"))


def _notes_on_eligibility(trace: Trace) -> list[str]:
    later = int(np.count_nonzero(trace.eligible_s > trace.submitted_s))
    said = f"{later:,} jobs became eligible to start later than they were submitted, and wait from then on."
    return [said] * bool(later)


def _check_app_owners(trace: Trace) -> None:
    """Raise InvalidInput for every app whose jobs belong to several tenants."""
    owners: dict[str, dict[str, int]] = {}  # app → tenant → first row
    for m, (app, tenant) in enumerate(zip(trace.app, trace.tenant, strict=True)):
        if app and tenant:
            owners.setdefault(app, {}).setdefault(tenant, m)
    problems = Problems(trace.source)
    for app, first in owners.items():
        if len(first) > 1:
            rule = f"its jobs belong to several tenants ({list_names(first)}), and an app is one user's"
            fix = "give the jobs of each tenant an app of their own, or all of them one tenant"
            problems.add(rule, fix, row=int(trace.row[list(first.values())[1]]), column="app", value=app)
    problems.raise_if_any()


def _check_searched_models(scenario: Scenario, job_type: Iterable[str], speeds: Throughputs) -> None:
    """Raise InvalidInput where the generator `searches` draws models that have no throughputs."""
    if scenario.workload.generator != "searches" or not speeds.job_types:
        return
    missing = sorted(set(job_type) - set(speeds.job_types))
    if missing:
        rule = f"the generator searches draws models that it has no throughputs for ({list_names(missing)})"
        fix = 'write [throughputs] source = "linear", which every model can use, or name a table that has them'
        source = scenario.throughputs.source
        raise scenario.refused(("throughputs", "source"), rule, fix, source)


def _draw_types(scenario: Scenario, trace: Trace, speeds: Throughputs) -> tuple[tuple[str, ...], str]:
    if not speeds.job_types:  # uniform: all jobs are alike
        return ("any",) * len(trace.job_id), "The trace names no job types and all speeds are 1: every job is 'any'."
    mix = scenario.workload.job_types
    rng = np.random.default_rng((scenario.seed, 1))
    job_type = job_mix.assign(mix, trace.scale_factor, rng, speeds)
    note = f"The trace names no job types; they were drawn with seed {scenario.seed} from {job_mix.describe(mix)}."
    return job_type, note


def _total_steps(scenario: Scenario, trace: Trace, job_type: tuple[str, ...], speeds: Throughputs) -> Floats:
    """Return total steps, (job,); where the trace has only durations, duration × throughput on the reference type."""
    steps = trace.total_steps.copy()
    rows = np.flatnonzero(np.isnan(steps))
    if len(rows) == 0:
        return steps
    rate = np.ones(len(rows))
    if not speeds.job_types:  # all types have the same throughput
        sizes, place = np.unique(trace.scale_factor[rows], return_inverse=True)
        rate = np.array([speeds.solo_throughput("", size)[0] for size in sizes.tolist()])[place.reshape(-1)]
    else:
        reference, column = reference_throughputs(scenario, speeds)
        kinds = list(zip((job_type[m] for m in rows.tolist()), trace.scale_factor[rows].tolist(), strict=True))
        rate_by_kind = {each: float(reference.solo_throughput(*each)[column]) for each in dict.fromkeys(kinds)}
        _check_reference(scenario, trace, rows, kinds, rate_by_kind)
        rate = np.array([rate_by_kind[each] for each in kinds])
    steps[rows] = trace.duration_s[rows] * rate
    return steps


def _check_reference(
    scenario: Scenario,
    trace: Trace,
    rows: Ints,
    kinds: Sequence[tuple[str, int]],
    rate_by_kind: Mapping[tuple[str, int], float],
) -> None:
    """Raise InvalidInput for jobs that cannot run on the type on which durations are counted, one problem a kind.

    `rows` are those of the jobs that have durations, `kinds` their job types and sizes, (row,).
    """
    problems, counts = Problems(trace.source), Counter(kinds)
    first = dict(zip(reversed(kinds), reversed(rows.tolist()), strict=True))
    source, name = scenario.throughputs.source, scenario.throughputs.reference_type
    for kind in (kind for kind, rate in rate_by_kind.items() if rate == 0):
        jobs = f"{counts[kind]:,} jobs" if counts[kind] > 1 else "the job"
        rule = f"cannot run on {name}, which durations are counted on: its throughput there is 0 in {source!r} ({jobs}"
        fix = "choose another reference_type, or give total_steps, or correct the table"
        problems.add(f"{rule}, {kind[1]} accelerators each)", fix, row=int(trace.row[first[kind]]), column="job_type",
                     value=kind[0])  # fmt: skip
    problems.raise_if_any()


def _kinds(job_type: Iterable[str], trace: Trace) -> tuple[list[tuple[str, int]], Ints]:
    """Return the different pairs of job type and scale factor, and the place there of each job's, (job,)."""
    place_of: dict[tuple[str, int], int] = {}
    pairs = zip(job_type, trace.scale_factor.tolist(), strict=True)
    kind = np.array([place_of.setdefault(pair, len(place_of)) for pair in pairs], dtype=np.int64)
    return list(place_of), kind


def _check_types(
    trace: Trace, kinds: Sequence[tuple[str, int]], kind: Ints, speeds: Throughputs, topology: Topology
) -> None:
    """Raise InvalidInput for gangs wider than the cluster, and for jobs that no type in it can run."""
    problems = Problems(trace.source)
    capacity = topology.capacity()
    runs: list[Bools] = [speeds.solo_throughput(*pair) > 0 for pair in kinds]
    can_run = np.array([types.any() for types in runs])
    fits = np.array([(types & (capacity >= size)).any() for types, (_, size) in zip(runs, kinds, strict=True)])
    for m in np.flatnonzero(~fits[kind]).tolist():
        name, size = kinds[kind[m]]
        if not can_run[kind[m]]:
            rule = "has throughput 0 on every accelerator type of the cluster: it cannot run there"
            fix = "add a type that can run it, or leave the job out"
            problems.add(rule, fix, row=int(trace.row[m]), column="job_type", value=name)
        else:
            widest = int(capacity.max())
            rule = f"the gang is wider than every accelerator type that it can run on (at most {widest} of one type)"
            fix = "enlarge the cluster, or leave the job out (of a generator: set multi_accelerator = false)"
            problems.add(rule, fix, row=int(trace.row[m]), column="scale_factor", value=size)
    problems.raise_if_any()


def _check_durations(trace: Trace, total_steps: Floats, fastest: Floats) -> None:
    """Raise InvalidInput for jobs that exceed the longest allowed duration even on their `fastest` type, (job,)."""
    lasts_s = total_steps / fastest
    problems = Problems(trace.source)
    for m in np.flatnonzero(~(lasts_s <= MOST_S)).tolist():
        by_steps = not np.isnan(trace.total_steps[m])
        column, given = ("total_steps", trace.total_steps[m]) if by_steps else ("duration_s", trace.duration_s[m])
        rule = f"takes {lasts_s[m]:.3g} s on the fastest type of the cluster, and a job may take {MOST_S:g} s at most"
        fix = "give it fewer steps" if by_steps else "give it a shorter duration"
        problems.add(rule, f"{fix}, or leave the job out", row=int(trace.row[m]), column=column, value=float(given))
    problems.raise_if_any()


def _needed(scenario: Scenario, kinds: Sequence[tuple[str, int]], kind: Ints) -> dict[tuple[str, int], int]:
    """Return how many jobs, whose places in `kinds` are given, need each throughput, by job type and least size."""
    needed: dict[tuple[str, int], int] = {}
    for place, count in zip(*np.unique(kind, return_counts=True), strict=True):
        name, size = kinds[place]
        least = (name, 1 if scenario.workload.elastic == "halves" else size)
        needed[least] = needed.get(least, 0) + int(count)
    return needed


def _origins(
    scenario: Scenario, topology: Topology, speeds: Throughputs, trace: Trace, job_type: tuple[str, ...]
) -> SpeedOrigins:
    """Return how the throughputs that the jobs use are known."""
    kinds, kind = _kinds(job_type, trace)
    elastic = scenario.workload.elastic == "halves"
    every = [(name, n) for name, size in kinds for n in (size, *(_halves(size) if elastic else ()))]
    timed = np.isnan(trace.total_steps)
    by_steps = {kinds[k] for k in kind[~timed].tolist()}
    given = {} if elastic else {each: scenario.throughputs.reference_type for each in kinds if each not in by_steps}
    return origins_of(speeds, every, given, topology.capacity().tolist())


def _jobs(scenario: Scenario, trace: Trace, job_type: tuple[str, ...], total_steps: Floats) -> JobTable:
    columns: dict[str, Array | tuple[Any, ...]] = {
        "job_id": trace.job_id,
        "total_steps": total_steps,
        "submitted": trace.may_start_s,
        "sequence": np.arange(len(trace)),
        "scale_factor": trace.scale_factor,
        "job_type": job_type,
        "tenant": trace.tenant,
        "app": trace.app,
        "weight": trace.weight,
        "deadline": trace.deadline_s,
        "cpus": trace.cpus,
        "memory_gib": trace.memory_gib,
        "retries": trace.retries,
        "command": trace.command,
        "checkpoint_dir": trace.checkpoint_dir,
    }
    if not (trace.interruptible.all() and scenario.workload.interruptible):
        columns["interruptible"] = trace.interruptible & scenario.workload.interruptible
        if (window_s := scenario.workload.restart_within_s) > 0:
            columns["restart_within_s"] = np.full(len(trace.interruptible), window_s)
    if not np.isnan(trace.eligible_s).all():
        columns["not_eligible_s"] = trace.may_start_s - trace.submitted_s
    if scenario.world.replay_status:
        columns["status"] = trace.status
        columns["retries"] = np.where([status == "failed" for status in trace.status], 0, trace.retries)
    if scenario.workload.elastic == "halves":
        columns["other_shapes"] = tuple(map(_halves, trace.scale_factor.tolist()))
    return JobTable({name: column for name, column in columns.items() if isinstance(column, np.ndarray) or any(column)})


def _halves(size: int) -> tuple[int, ...]:
    """Return a half, a quarter … of a gang, rounded down, to 1."""
    smaller = []
    while size > 1:
        size //= 2
        smaller.append(size)
    return tuple(smaller)
