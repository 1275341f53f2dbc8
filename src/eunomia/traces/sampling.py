"""Samples of a trace: some tenants, a window of time, more or fewer jobs, another load.

`resample` draws whole days or weeks with replacement, as jobs of one day wait for each other, so that seeds differ
where the jobs are those of one log (H. R. Künsch, "The jackknife and the bootstrap for general stationary
observations", Annals of Statistics 17, 1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.options import number
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import date_at
from eunomia.model.arrays import Floats, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.generators import SEED
from eunomia.traces.table import Trace, in_order

RATE = Rule(
    what="a number above 0, at most 100",
    above=0.0,
    most=100.0,
    fix="write 0.1 to keep about a tenth of the jobs, 2 for twice as many",
)
JITTER_S = 1800.0  # a copy is submitted within half an hour of its job, so daily patterns stay
BLOCK_S = {"days": 86_400.0, "weeks": 604_800.0}
LEAST_BLOCKS = 2
START = Rule(what="a finite number of seconds, at least 0", least=0.0, fix="leave it out to start at 0")
END = Rule(what="a number of seconds above 0", above=0.0, endless=True, fix="leave it out to read to the end")
LOAD = Rule(
    what="a number from 0.000001 to 1,000,000",
    least=1e-6,
    most=1e6,
    fix="write 1 for the load of the trace, 2 for twice as much",
)
MAX_JOBS = Rule(what="a whole number, at least 1", least=1, whole=True, fix="leave it out for all jobs")


def sample(
    trace: Trace,
    *,
    tenants: Sequence[str] = (),
    start_s: float | None = None,
    end_s: float | None = None,
    rate: float = 1.0,
    load: float = 1.0,
    max_jobs: int | None = None,
    seed: int = 0,
) -> Trace:
    """Return the jobs of `tenants` (default all) submitted in [start_s, end_s), with time counted from start_s.

    `rate` scales the number of jobs and keeps daily and weekly patterns: below 1 each job stays with that probability,
    above 1 jobs are copied, a copy within half an hour of its job. `load` divides the times instead, which keeps the
    distribution of gaps. Then the first `max_jobs` are taken. The same seed draws the same jobs.
    Raises InvalidInput for a wrong value, or when no job is left.
    """
    number(trace.source, "rate", rate, RATE)
    number(trace.source, "seed", seed, SEED)
    cut = window(_select_tenants(trace, tenants), start_s=start_s, end_s=end_s)
    return window(_resample(cut, rate, seed), load=load, max_jobs=max_jobs)


def _select_tenants(trace: Trace, tenants: Sequence[str]) -> Trace:
    if not tenants:
        return trace
    known = set(trace.tenant)
    for name in tenants:
        if name not in known:
            raise refused(trace.source, "tenant", name, "no job has this tenant", nearest(name, known - {""}))
    keep = np.array([tenant in tenants for tenant in trace.tenant], dtype=np.bool_)
    note = f"{np.count_nonzero(~keep):,} jobs of others than {', '.join(tenants)} are left out"
    return replace(trace.take(np.flatnonzero(keep)), notes=(*trace.notes, note))


def _resample(trace: Trace, rate: float, seed: int) -> Trace:
    """Return the trace with each job kept or copied at random, `rate` times on average."""
    if rate == 1:
        return trace
    draws, jitter = np.random.default_rng(seed).spawn(2)
    copies = (np.floor(rate) + (draws.random(len(trace)) < rate % 1)).astype(np.int64)
    rows = np.repeat(np.arange(len(trace)), copies)
    if not rows.size:
        raise refused(trace.source, "rate", rate, "no job is left", "write a greater rate, or another seed")
    copy = np.arange(len(rows)) - np.repeat(
        np.cumsum(copies) - copies, copies
    )  # number of each copy; 0 = the job itself
    moved = in_order(_move_copies(trace.take(rows), copy, jitter.uniform(-JITTER_S, JITTER_S, len(rows))))
    return replace(moved, notes=(*trace.notes, f"{len(moved):,} jobs stand for {len(trace):,}, drawn with seed {seed}"))


def _move_copies(trace: Trace, copy: Ints, by_s: Floats) -> Trace:
    """Return the trace with its copies renamed and moved in time with their deadlines, within the span of the trace."""
    first, last = trace.submitted_s.min(), trace.submitted_s.max()
    submitted_s = np.where(copy > 0, np.clip(trace.submitted_s + by_s, first, last), trace.submitted_s)
    return replace(
        trace,
        job_id=_name_copies(trace.job_id, copy),
        submitted_s=submitted_s,
        deadline_s=trace.deadline_s + (submitted_s - trace.submitted_s),
    )


def _name_copies(job_id: Sequence[str], copies: Ints) -> tuple[str, ...]:
    """Return the ids, (row,): the copies of job a are a~1, a~2 …; ids that jobs already have are skipped."""
    taken, names, k = set(job_id), [], 0
    for job, copy in zip(job_id, copies.tolist(), strict=True):
        k = k + 1 if copy else 0
        while copy and f"{job}~{k}" in taken:
            k += 1
        names.append(f"{job}~{k}" if copy else job)
    return tuple(names)


def resample(trace: Trace, unit: str, seed: int) -> Trace:
    """Return as many blocks of a unit (`days` or `weeks`) as the trace has, drawn with replacement, one after another.

    A block holds the jobs submitted within it, counted from 0 s; jobs keep their distance to its start. A job that is
    drawn again has `#2` after its id and its app. The last block counts as whole. Raises InvalidInput for a trace of
    one block.
    """
    length = BLOCK_S[unit]
    block = np.floor(trace.submitted_s / length).astype(np.int64)
    first, last = int(block.min()), int(block.max())
    count = last - first + 1
    if count < LEAST_BLOCKS:
        rule = f"the trace has one of its {unit} only, so nothing can be drawn"
        shorter = "" if unit == "days" else ', write resample = "days"'
        fix = f"use a longer trace{shorter}{',' * bool(shorter)} or leave it out"
        raise refused(trace.source, "workload.resample", unit, rule, fix)
    drawn = np.random.default_rng((seed, 3)).integers(first, last + 1, size=count)
    rows = [np.flatnonzero(block == one) for one in drawn.tolist()]
    keep = np.concatenate(rows)
    if not len(keep):
        rule = f"the drawn {unit} have no job, as most of the trace's are empty"
        raise refused(trace.source, "workload.resample", unit, rule, "choose another seed, or leave resample out")
    shift = np.concatenate(
        [
            np.full(len(found), (position + first - one) * length)
            for position, (one, found) in enumerate(zip(drawn.tolist(), rows, strict=True))
        ]
    )
    taken = trace.take(keep)
    times = [
        int(np.count_nonzero(drawn[: position + 1] == one))  # how often the block has been drawn up to here
        for position, (one, found) in enumerate(zip(drawn.tolist(), rows, strict=True))
        for _ in found
    ]
    return in_order(
        replace(
            taken.submitted_at(taken.submitted_s + shift),
            job_id=_numbered(taken.job_id, times),
            app=_numbered(taken.app, times),
            notes=(*taken.notes, f"The jobs are {count} of its {unit}, drawn from them with seed {seed}."),
        )
    )


def _numbered(names: tuple[str, ...], times: list[int]) -> tuple[str, ...]:
    """Return names with `#2`, `#3` … where they are drawn again; with more # if such a name is there already."""
    drawn, there, mark = list(zip(names, times, strict=True)), set(names), "#"
    while any(f"{name}{mark}{n}" in there for name, n in drawn if n > 1):
        mark += "#"
    return tuple(f"{name}{mark}{n}" if name and n > 1 else name for name, n in drawn)


def window(
    trace: Trace,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    load: float = 1.0,
    max_jobs: int | None = None,
) -> Trace:
    """Return the first `max_jobs` jobs submitted in [start_s, end_s), with time counted from start_s.

    Submission times are divided by `load`; durations stay, and deadlines, starts and the times at which jobs become
    eligible keep their distance to the submission.
    Raises InvalidInput for a wrong bound, or when no job is left.
    """
    start, end = 0.0 if start_s is None else start_s, inf if end_s is None else end_s
    for name, value, rule in (
        ("start_s", start, START),
        ("end_s", end, END),
        ("load", load, LOAD),
        ("max_jobs", 1 if max_jobs is None else max_jobs, MAX_JOBS),
    ):
        number(trace.source, name, value, rule)
    inside = np.flatnonzero((trace.submitted_s >= start) & (trace.submitted_s < end))
    kept = inside[:max_jobs]
    if not len(kept):
        why = f"no job is submitted in [{start:.15g}, {end:.15g})"
        raise refused(trace.source, "start_s", f"{start:.15g}", why, _suggest_window(trace))
    part = trace if len(kept) == len(trace) else trace.take(kept)
    return _rescale(_with_note(part, len(trace) - len(kept), start, end), start, load)


def _rescale(trace: Trace, start: float, load: float) -> Trace:
    if start == 0 and load == 1:
        return trace  # without rounding errors
    began = None if trace.began is None or load != 1 else date_at(start, trace.began)  # scaled time has no date
    return replace(trace.submitted_at((trace.submitted_s - start) / load), began=began)


def _with_note(trace: Trace, left_out: int, start: float, end: float) -> Trace:
    if not left_out:
        return trace
    note = f"{left_out:,} jobs are left out: {len(trace):,} jobs of [{start:.15g} s, {end:.15g} s) are used"
    return replace(trace, notes=(*(f"{earlier} (in the whole trace)" for earlier in trace.notes), note))


def _suggest_window(trace: Trace) -> str:
    if not len(trace):
        return "use a trace that holds jobs"
    return f"choose a window within the trace, {trace.submitted_s[0]:.15g} s to {trace.submitted_s[-1]:.15g} s"
