"""Job by job: what a peer reports and what we measured, as rows of the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.figure import Figure
from eunomia_reproduction.peers.running import Life, mean
from eunomia_reproduction.run_cache import failures
from eunomia_reproduction.table import FigureRow

EXACT = 1e-6  # seconds: what adding floats may be off


@dataclass(slots=True)
class JobComparison:
    """What comparing with one peer brought: rows of the table, notes, figures, and what could not be compared."""

    rows: list[FigureRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    failed: dict[str, InvalidInput] = field(default_factory=dict)  # by the name of the run or case, why

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """Keep what is wrong with the files of one run or case, and continue with the next."""
        try:
            yield
        except InvalidInput as error:
            self.failed[name] = error

    def settled(self) -> JobComparison:
        """Return this with a row for all that could not be compared. Raises InvalidInput where nothing could be."""
        if self.failed and not self.rows:
            problems = [problem for error in self.failed.values() for problem in error.problems]
            raise InvalidInput(problems, sum(error.count for error in self.failed.values()))
        messages = {name: " | ".join(str(error).splitlines()) for name, error in self.failed.items()}
        self.rows, self.failed = [*failures(messages), *self.rows], {}
        return self


def compared(
    series: str,
    published: Mapping[str, Life],
    measured: Mapping[str, Life],
    submitted: Mapping[str, float],
    source: str,
    *,
    near: float | None = None,
    checked: bool = True,
    odd: Mapping[str, str] | None = None,
) -> list[FigureRow]:
    """Return three rows: jobs with the same start, end and stops, mean JCT, and the end of the last job.

    A job that ended here and has no result there is one that differs; `odd` says so of others, by name. `near` is how
    far off the mean JCT may be, as a fraction; left out, every job has to be equal. With `near`, or not `checked`,
    every job needs a result there and no more. Raises InvalidInput for results of jobs that were not run.
    """
    unknown = [name for name in published if name not in measured]
    if unknown:
        rule = f"it has results of {len(unknown)} jobs that were not run, such as {unknown[0]!r}"
        fix = "give trace and results of one run; a job larger than the cluster or its quota never runs"
        raise InvalidInput([Problem(file=source, column="job_id", rule=rule, fix=fix)])
    odd = odd or {}
    missing = [name for name, life in measured.items() if name not in published and not math.isnan(life.end)]
    different = [name for name, life in published.items() if not _same(life, measured[name]) or name in odd]
    exact = 0.0 if near is None and checked else None
    return [
        FigureRow(
            series=series,
            quantity="jobs_equal",
            unit="jobs",
            published=len(published) + len(missing),
            measured=len(published) - len(different),
            tolerance=0.0 if missing else exact,
            source=source,
            note=_first([*different, *missing], published, measured, odd)
            + (f"; {len(missing)} ended here and have no result there" if missing else ""),
        ),
        FigureRow(
            series=series,
            quantity="jct_mean",
            unit="s",
            published=_jct(published, published, submitted),
            measured=_known(_jct(measured, published, submitted)),
            tolerance=(near or 0.0) if checked else None,
            source=source,
            note="over the jobs that have a result there" if missing else "",
        ),
        FigureRow(
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


def _first(
    different: Sequence[str], published: Mapping[str, Life], measured: Mapping[str, Life], odd: Mapping[str, str]
) -> str:
    """Say how the first of the jobs that differ does."""
    if not different:
        return ""
    name = min(different, key=lambda name: published.get(name, measured[name]).end)
    theirs, ours = published.get(name), measured[name]
    if theirs is not None and _same(theirs, ours):
        return f"first to differ: job {name}, {odd[name]}"
    known = not math.isnan(next(iter(published.values())).start)
    there, here = (_span(life, known=known) for life in (theirs, ours))
    return f"first to differ: job {name}, {there} there, {here} here"


def _jct(lives: Mapping[str, Life], names: Mapping[str, Life], submitted: Mapping[str, float]) -> float:
    return mean([lives[name].end - submitted[name] for name in names])


def _span(life: Life | None, *, known: bool) -> str:
    if life is None or math.isnan(life.end):
        return "not ended"
    return f"{life.start:.10g} to {life.end:.10g} s, {life.stops:g} stops" if known else f"until {life.end:.10g} s"
