"""Job by job: what a peer reports and what we measured, as rows of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eunomia.model.problems import InvalidInput, Problem
from eunomia.reproduction.figure import Figure
from eunomia.reproduction.peers.running import Life, mean
from eunomia.reproduction.table import Row

EXACT = 1e-6  # seconds: what adding floats may be off


@dataclass(slots=True)
class Found:
    """What comparing with one peer brought: rows of the table, notes, and figures."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def compared(
    series: str,
    published: Mapping[str, Life],
    measured: Mapping[str, Life],
    submitted: Mapping[str, float],
    source: str,
    *,
    near: float | None = None,
) -> list[Row]:
    """Return three rows: jobs with the same start, end and stops, mean JCT, and the end of the last job.

    `near` is how far off the mean JCT may be, as a fraction; left out, every job has to be equal. Raises InvalidInput
    for results of jobs that were not run.
    """
    unknown = [name for name in published if name not in measured]
    if unknown:
        rule = f"it has results of {len(unknown)} jobs that were not run, such as {unknown[0]!r}"
        mend = "give trace and results of one run; who asks for more than there is, or than its quota, is never run"
        raise InvalidInput([Problem(file=source, column="job_id", rule=rule, mend=mend)])
    different = [name for name, life in published.items() if not _same(life, measured[name])]
    exact = 0.0 if near is None else None
    return [
        Row(
            series=series,
            quantity="jobs_equal",
            unit="jobs",
            published=len(published),
            measured=len(published) - len(different),
            tolerance=exact,
            source=source,
            note=_first(different, published, measured),
        ),
        Row(
            series=series,
            quantity="jct_mean",
            unit="s",
            published=_jct(published, published, submitted),
            measured=_known(_jct(measured, published, submitted)),
            tolerance=near or 0.0,
            source=source,
        ),
        Row(
            series=series,
            quantity="last_end",
            unit="s",
            published=max(life.end for life in published.values()),
            measured=_known(max(measured[name].end for name in published)),
            tolerance=exact,
            source=source,
        ),
    ]


def _known(value: float) -> float | None:
    """Return a number, or None where a job never ended."""
    return value if math.isfinite(value) else None


def _same(one: Life, other: Life) -> bool:
    return all(
        math.isnan(a) or abs(a - b) <= EXACT  # nan: the peer does not tell
        for a, b in ((one.start, other.start), (one.end, other.end), (one.stops, other.stops))
    )


def _first(different: Sequence[str], published: Mapping[str, Life], measured: Mapping[str, Life]) -> str:
    """Say how the first of the jobs that differ does."""
    if not different:
        return ""
    name = min(different, key=lambda name: published[name].end)
    theirs, ours = published[name], measured[name]
    there, here = (_span(life, known=not math.isnan(theirs.start)) for life in (theirs, ours))
    return f"first to differ: job {name}, {there} there, {here} here"


def _jct(lives: Mapping[str, Life], names: Mapping[str, Life], submitted: Mapping[str, float]) -> float:
    return mean([lives[name].end - submitted[name] for name in names])


def _span(life: Life, *, known: bool) -> str:
    return f"{life.start:.10g} to {life.end:.10g} s, {life.stops:g} stops" if known else f"until {life.end:.10g} s"
