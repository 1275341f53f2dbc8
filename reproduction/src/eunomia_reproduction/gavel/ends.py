"""Whether the jobs of a run end as they did there."""

from __future__ import annotations

from collections.abc import Mapping

from eunomia_reproduction.gavel.reference import Run
from eunomia_reproduction.gavel.simulate import GavelRun
from eunomia_reproduction.table import FigureRow

SAME_S = 0.01  # a JCT is the same up to this


def ends_of(one: Run, played: GavelRun) -> tuple[int, int, str]:
    """Return how many jobs ended there or here, how many of them alike, and which is the first that did not."""
    ended = one.jct.keys() | played.jct.keys()
    both = one.jct.keys() & played.jct.keys()
    different = ended - {name for name in both if _same(one.jct[name], played.jct[name])}
    if not different:
        return len(ended), len(ended), ""
    name = min(different, key=int)
    note = f"first to differ: job {name}, {_describe(name, one.jct)} there, {_describe(name, played.jct)} here"
    return len(ended), len(ended) - len(different), note


def _describe(name: str, jct: Mapping[str, float | None]) -> str:
    if name not in jct:
        return "not ended"
    return "dropped" if jct[name] is None else f"{jct[name]} s"


def no_jobs(series: str, source: str) -> FigureRow:
    """Return the row of a run whose `jct` names no job."""
    note = "jct names no job, so that none is compared"
    return FigureRow(series=series, quantity="jobs with the same JCT", unit="jobs", source=source, note=note)


def _same(there: float | None, here: float | None) -> bool:
    if there is None or here is None:
        return there is here
    return abs(there - here) <= SAME_S
