"""Table 2: for what gangs wait, counted when jobs are played under Philly's scheduler.

Counted are tries, as the table counts more waits than there were jobs; delays, one for each start (`tries`); jobs, by
what each mostly waited for; and seconds. A job waits for fair share while its virtual cluster would be over its quota
with it, and for fragmentation otherwise. Beside these stand the parts for which enough accelerators were idle: those
need no quotas, which were not published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from eunomia.failures.philly_reasons import REASONS
from eunomia.model.arrays import Floats, Ints
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.philly.played import Waited
from eunomia_reproduction.philly.tries import size_class
from eunomia_reproduction.ratio_rows import with_ends
from eunomia_reproduction.table import FigureRow

CLASSES = {"2-4": 1, "5-8": 2, ">8": 3}  # of `size_class`
OCCURRENCES = {"2-4": 12735, "5-8": 14721, ">8": 3183}
FRAGMENTATION = {"2-4": 7567 / 12735, "5-8": 10928 / 14721, ">8": 3117 / 3183}  # of the occurrences of a size
TABLE_2 = "Jeon et al., ATC 2019, Table 2"
OF_TIME = 0.80  # of all waiting, section 3.1


def delays(found: Sequence[Waited], how: str) -> list[FigureRow]:
    """Return by size how much waiting is fragmentation's, beside Table 2; `how` names the play in each series."""
    name = f"Table 2 {how}"
    tallies = [one.tally for one in found]
    idle = "beside enough idle accelerators"
    jobs = {size: [_of_jobs(_seconds(one, size)) for one in found] for size in CLASSES}
    some = {size: [_part(_seconds(one, size).sum(axis=1) > 0) for one in found] for size in CLASSES}
    often = {size: [_per_job(one, size) for one in found] for size in CLASSES}
    time = [_ratio(one.seconds[:, 1].sum(), one.seconds[:, :2].sum()) for one in found]
    gangs = [_ratio(one.scattered[1:].sum(), one.tries[1:].sum()) for one in tallies]
    started = [_ratio(one.overtaking, one.starts) for one in tallies]
    tries = {size: [one.tries[k] for one in tallies] for size, k in CLASSES.items()}  # (cause,) each, as those below
    scattered = {size: [one.scattered[k] for one in tallies] for size, k in CLASSES.items()}
    waits = {size: [one.delays[k] for one in tallies] for size, k in CLASSES.items()}
    waits_scattered = {size: [one.delays_scattered[k] for one in tallies] for size, k in CLASSES.items()}
    size_s = "of the size's"
    return [
        *_by_size(f"{name}: tries for fragmentation", "tries", size_s, _tries(found), FRAGMENTATION),
        *_by_size(f"{name}: tries {idle}", "tries", size_s, _parts(scattered, tries), FRAGMENTATION),
        *_row(f"{name}: tries {idle}", "all gangs", "tries", "of all", gangs, OF_TIME),
        *_by_size(f"{name}: tries over the quota {idle}", "tries", size_s, _parts(scattered, tries, cause=0)),
        *_by_size(f"{name}: delays for fragmentation", "delays", size_s, _parts(waits, waits, cause=1), FRAGMENTATION),
        *_by_size(f"{name}: delays {idle}", "delays", size_s, _parts(waits_scattered, waits), FRAGMENTATION),
        *_by_size(f"{name}: jobs that mostly waited for it", "jobs", size_s, jobs, FRAGMENTATION),
        *_row(f"{name}: waiting for fragmentation", "", "seconds", "of all waiting", time, OF_TIME),
        *_by_size(f"{name}: jobs that waited", "jobs", size_s, some),
        *_by_size(f"{name}: tries without a place", "tries", "a job", often),
        *_row(f"{name}: starts that overtake a job of their virtual cluster", "", "starts", "of all", started),
        *_row(f"{name}: preempted", "", "jobs", "of all", [one.preempted for one in found]),
    ]


def if_one_a_start(scale_factor: Ints) -> list[FigureRow]:
    """Return how many delays there were if each start has one: jobs of these sizes, (job,), and Table 7's trials."""
    failed = np.array([reason.trials_by_size for reason in REASONS]).sum(axis=0)
    sizes = size_class(scale_factor)
    rows = []
    for name, classes, trials in (("2-4", (1,), failed[1]), (">4", (2, 3), failed[2])):
        jobs = int(np.isin(sizes, classes).sum())
        rows.append(
            FigureRow(
                series="Table 2: delays if each start has one",
                x=name,
                quantity="delays",
                unit="",
                published=sum(count for size, count in OCCURRENCES.items() if CLASSES[size] in classes),
                measured=jobs + int(trials),
                source=TABLE_2,
                note=f"{jobs:,} jobs of the trace up to 2017-11-14 and {int(trials):,} failed trials of Table 7",
            )
        )
    return rows


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
    return [row for name, mine in values.items() for row in _row(series, name, quantity, unit, mine, beside.get(name))]


def _row(
    series: str, x: str, quantity: str, unit: str, values: list[float], published: float | None = None
) -> list[FigureRow]:
    row = FigureRow(
        series=series,
        x=x,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=_mean(values),
        source=TABLE_2,
        note=range_note(_known(values)),
    )
    return with_ends(row, _known(values))


def _tries(found: Sequence[Waited]) -> dict[str, list[float]]:
    """Return by size which part of the tries without a place was fragmentation's, a value for each of `found`."""
    tries = {size: [one.tally.tries[k] for one in found] for size, k in CLASSES.items()}
    return _parts(tries, tries, cause=1)


def _parts(
    these: Mapping[str, list[Floats]], of: Mapping[str, list[Floats]], cause: int | None = None
) -> dict[str, list[float]]:
    """Return by size what part these counts, (cause,) each, are of others; with `cause`, those of one cause."""
    picked = slice(None) if cause is None else slice(cause, cause + 1)
    return {
        size: [_ratio(some[picked].sum(), whole.sum()) for some, whole in zip(these[size], of[size], strict=True)]
        for size in these
    }


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
    return _ratio(one.tally.tries[CLASSES[name]].sum(), (size_class(one.size) == CLASSES[name]).sum())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _part(these: np.ndarray) -> float:
    return float(these.mean()) if len(these) else float("nan")
