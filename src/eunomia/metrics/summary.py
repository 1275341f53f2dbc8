"""The fields of summary.json: each metric of the registry computes some of them from the tables of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeAlias

from eunomia.inputs.problems import refused
from eunomia.model.arrays import Array, Floats

Numbers: TypeAlias = dict[str, float | int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTables:
    """What a metric is computed from, after the run. Tables are columns by name; a missing number is nan."""

    jobs: Mapping[str, Array]  # of jobs.csv; only the measured jobs
    apps: Mapping[str, Array]  # of apps.csv; none where no app has several jobs
    tenants: Mapping[str, Array]  # of tenants.csv
    types: tuple[str, ...]
    busy_s: Floats  # (type,) accelerator-seconds in use, of the whole run
    available_s: Floats  # (type,) accelerator-seconds
    prices: Mapping[str, float | None]  # US$ per accelerator-hour by type; None = unknown
    end_s: float
    empty_apps: int  # apps whose search ended without a model


Metric: TypeAlias = Callable[[RunTables], Numbers]


def summarise(tables: RunTables, metrics: Mapping[str, Metric]) -> Numbers:
    """Return the fields of all metrics, in their order; None = no value.

    Raises InvalidInput for a metric that returns no numbers by name, or a field that another one has.
    """
    summary: Numbers = {}
    for name, metric in metrics.items():
        numbers = metric(tables)
        fits = isinstance(numbers, dict) and all(
            (isinstance(field, str) and number is None) or isinstance(number, Real) for field, number in numbers.items()
        )
        if not fits:
            rule, fix = f"the metric returned {numbers!r}", "return a dictionary of numbers by name"
            raise refused(name, "measure.metrics", None, rule, fix)
        if twice := summary.keys() & numbers.keys():
            rule = f"the metric returned {min(twice)!r}, which another metric has"
            raise refused(name, "measure.metrics", None, rule, "choose another name")
        summary |= {field: value(number) for field, number in numbers.items()}
    return summary


def value(number: Real | float | None) -> float | int | None:
    """Return a finite number, or None."""
    if number is None or not math.isfinite(number):
        return None
    return int(number) if isinstance(number, Integral) else float(number)
