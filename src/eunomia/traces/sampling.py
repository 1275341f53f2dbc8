"""A part of a trace that behaves like the whole: some tenants, a stretch of time, more or fewer jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.options import number
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.generators import SEED
from eunomia.traces.table import Trace, in_order
from eunomia.traces.window import window

RATE = Rule(
    what="a number above 0, at most 100",
    above=0.0,
    most=100.0,
    fix="write 0.1 to keep about a tenth of the jobs, 2 for twice as many",
)
JITTER_S = 1800.0  # a copy comes within half an hour of its job: the hours of the day keep their shape


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
    """Return the jobs of `tenants` (all unless named) submitted in [start_s, end_s), with time counted from start_s.

    `rate` scales how many jobs there are and keeps the shape of days and weeks: below 1 each job stays with that
    probability, above 1 jobs are copied, a copy within half an hour of its job. `load` divides the times instead, which
    keeps the shape of the gaps. Then the first `max_jobs` are taken. The same seed draws the same jobs.
    Raises InvalidInput for a wrong value, or when no job is left.
    """
    number(trace.source, "rate", rate, RATE)
    number(trace.source, "seed", seed, SEED)
    cut = window(_of_tenants(trace, tenants), start_s=start_s, end_s=end_s)
    return window(_scaled(cut, rate, seed), load=load, max_jobs=max_jobs)


def _of_tenants(trace: Trace, tenants: Sequence[str]) -> Trace:
    if not tenants:
        return trace
    here = set(trace.tenant)
    for name in tenants:
        if name not in here:
            raise refused(trace.source, "tenant", name, "no job has this tenant", nearest(name, here - {""}))
    keep = np.array([tenant in tenants for tenant in trace.tenant], dtype=np.bool_)
    note = f"{np.count_nonzero(~keep):,} jobs of others than {', '.join(tenants)} are left out"
    return replace(trace.take(np.flatnonzero(keep)), notes=(*trace.notes, note))


def _scaled(trace: Trace, rate: float, seed: int) -> Trace:
    """Return the trace with each job kept or copied at random, `rate` times on average."""
    if rate == 1:
        return trace
    draws, jitter = np.random.default_rng(seed).spawn(2)
    copies = (np.floor(rate) + (draws.random(len(trace)) < rate % 1)).astype(np.int64)
    rows = np.repeat(np.arange(len(trace)), copies)
    if not rows.size:
        raise refused(trace.source, "rate", rate, "no job is left", "write a greater rate, or another seed")
    which = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)  # 0 for the job itself
    moved = in_order(_moved(trace.take(rows), which, jitter.uniform(-JITTER_S, JITTER_S, len(rows))))
    return replace(moved, notes=(*trace.notes, f"{len(moved):,} jobs stand for {len(trace):,}, drawn with seed {seed}"))


def _moved(trace: Trace, which: Ints, by: np.ndarray) -> Trace:
    """Return the trace with its copies named and moved, each with its deadline; no job comes before or after all."""
    first, last = trace.submitted_s.min(), trace.submitted_s.max()
    submitted_s = np.where(which > 0, np.clip(trace.submitted_s + by, first, last), trace.submitted_s)
    return replace(
        trace,
        job_id=_named(trace.job_id, which),
        submitted_s=submitted_s,
        deadline_s=trace.deadline_s + (submitted_s - trace.submitted_s),
    )


def _named(job_id: Sequence[str], which: Ints) -> tuple[str, ...]:
    """Return the names, (row,): the copies of job a are a~1, a~2 …, without those that jobs have already."""
    taken, names, k = set(job_id), [], 0
    for job, copy in zip(job_id, which.tolist(), strict=True):
        k = k + 1 if copy else 0
        while copy and f"{job}~{k}" in taken:
            k += 1
        names.append(f"{job}~{k}" if copy else job)
    return tuple(names)
