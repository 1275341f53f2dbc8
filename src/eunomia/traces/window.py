"""The jobs of one window of time of a trace, at a multiple of its load."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.options import number
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import date_at
from eunomia.traces.table import Trace

START = Rule(what="a finite number of seconds, at least 0", least=0.0, fix="leave it out to start at 0")
END = Rule(what="a number of seconds above 0", above=0.0, endless=True, fix="leave it out to read to the end")
LOAD = Rule(
    what="a number from 0.000001 to 1,000,000",
    least=1e-6,
    most=1e6,
    fix="write 1 for the load of the trace, 2 for twice as much",
)
MAX_JOBS = Rule(what="a whole number, at least 1", least=1, whole=True, fix="leave it out for all jobs")


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
