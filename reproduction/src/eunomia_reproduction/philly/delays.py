"""Table 2: for what gangs wait, counted when jobs are played under Philly's scheduler.

Counted are tries, as the table counts more waits than there were jobs (`tries`); jobs, by what each mostly waited for;
and seconds. A job waits for fair share while its virtual cluster would be over its quota with it, and for fragmentation
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.philly.played import Waited
from eunomia_reproduction.philly.tries import size_class
from eunomia_reproduction.table import FigureRow

CLASSES = {"2-4": 1, "5-8": 2, ">8": 3}  # of `size_class`
FRAGMENTATION = {"2-4": 7567 / 12735, "5-8": 10928 / 14721, ">8": 3117 / 3183}  # of the occurrences of a size
TABLE_2 = "Jeon et al., ATC 2019, Table 2"
OF_TIME = 0.80  # of all waiting, section 3.1


def delays(found: Sequence[Waited], how: str) -> list[FigureRow]:
    """Return by size how much waiting is fragmentation's, beside Table 2; `how` names the play in each series."""
    name = f"Table 2 {how}"
    scattered = {size: [_ratio(one.scattered[k], one.tries[k].sum()) for one in found] for size, k in CLASSES.items()}
    jobs = {size: [_of_jobs(_seconds(one, size)) for one in found] for size in CLASSES}
    some = {size: [_part(_seconds(one, size).sum(axis=1) > 0) for one in found] for size in CLASSES}
    often = {size: [_per_job(one, size) for one in found] for size in CLASSES}
    time = [_ratio(one.seconds[:, 1].sum(), one.seconds[:, :2].sum()) for one in found]
    return [
        *_by_size(f"{name}: tries for fragmentation", "tries", "of the size's", _tries(found), FRAGMENTATION),
        *_by_size(f"{name}: tries beside enough idle accelerators", "tries", "of the size's", scattered),
        *_by_size(f"{name}: jobs that mostly waited for it", "jobs", "of the size's", jobs, FRAGMENTATION),
        _row(f"{name}: waiting for fragmentation", "", "seconds", "of all waiting", time, OF_TIME),
        *_by_size(f"{name}: jobs that waited", "jobs", "of the size's", some),
        *_by_size(f"{name}: tries without a place", "tries", "a job", often),
        _row(f"{name}: preempted", "", "jobs", "of all", [one.preempted for one in found]),
    ]


def orderings(found: Sequence[Waited], how: str) -> list[FigureRow]:
    """Return under how many seeds wider gangs wait more for fragmentation, which should be all that have both."""
    tries, rows = _tries(found), []
    for narrow, wide in pairwise(CLASSES):
        one, other = (np.array(tries[size]) for size in (narrow, wide))
        both = ~np.isnan(one + other)
        rows.append(
            FigureRow(
                series=f"Table 2 {how}: {wide} wait more for fragmentation than {narrow}",
                quantity="seeds",
                unit="",
                published=int(both.sum()),
                measured=int((one < other)[both].sum()),
                tolerance=0.0,
                source=TABLE_2,
            )
        )
    return rows


def _by_size(
    series: str,
    quantity: str,
    unit: str,
    values: Mapping[str, list[float]],
    published: Mapping[str, float] | None = None,
) -> list[FigureRow]:
    beside = published or {}
    return [_row(series, name, quantity, unit, mine, beside.get(name)) for name, mine in values.items()]


def _row(
    series: str, x: str, quantity: str, unit: str, values: list[float], published: float | None = None
) -> FigureRow:
    return FigureRow(
        series=series,
        x=x,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=_mean(values),
        source=TABLE_2,
        note=range_note(_known(values)),
    )


def _tries(found: Sequence[Waited]) -> dict[str, list[float]]:
    """Return by size which part of the tries without a place was fragmentation's, a value for each of `found`."""
    return {size: [_ratio(one.tries[k, 1], one.tries[k].sum()) for one in found] for size, k in CLASSES.items()}


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if not np.isnan(value)]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(_known(values))) if _known(values) else None


def _seconds(one: Waited, name: str) -> Floats:
    """Return what the jobs of a class waited for, (job, cause)."""
    return one.seconds[size_class(one.size) == CLASSES[name], :2]


def _of_jobs(seconds: Floats) -> float:
    """Return which part of the jobs that waited did so mostly for fragmentation; nan = none waited."""
    some = seconds.sum(axis=1) > 0
    return _part(seconds[some, 1] > seconds[some, 0])


def _per_job(one: Waited, name: str) -> float:
    """Return how often a job of a class tried without finding a place; nan = there is none."""
    return _ratio(one.tries[CLASSES[name]].sum(), (size_class(one.size) == CLASSES[name]).sum())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _part(these: np.ndarray) -> float:
    return float(these.mean()) if len(these) else float("nan")
