"""Tables of measured shapes: what a search has measured so far, and measured steps from elsewhere.

Columns `workers, servers, type, steps_per_s`; optional those that a search writes. A rate of 0 says that the job does
not run in that shape. Several rows of one shape are repetitions: their mean counts.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.open_table import read_table
from eunomia.job_tuning.shapes import JobShape
from eunomia.metrics.statistics import estimate
from eunomia.model.arrays import Floats

CONFIDENCE = 0.95
PARTS = 8  # of a measurement, at most: fewer and longer ones vary less with the time at which a report is read
FILE = "measurements.csv"
NEEDED = ("workers", "servers", "type", "steps_per_s")
WRITTEN = ("steps_per_s_low", "steps_per_s_high", "steps", "seconds", "reason")
WORKERS = Rule(what="a whole number, at least 1", least=1, most=MOST, whole=True, fix="write the number of workers")
SERVERS = Rule(
    what="a whole number, at least 0", least=0, most=MOST, whole=True, fix="write 0 for no parameter servers"
)
RATE = Rule(what="a finite number of steps per second, at least 0", least=0.0, fix="write 0 where it does not run")
OPTIONAL = Rule(what="a finite number, at least 0", least=0.0, empty=np.nan, fix="leave it empty if it is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRate:
    """A measured speed; `low` and `high` are the ends of its 95 % interval, None where there is no such end."""

    steps_per_s: float
    low: float | None = None
    high: float | None = None
    steps: float | None = None  # that were measured
    seconds: float | None = None


def rate_of_reports(reports: Sequence[tuple[float, float]], warm_up: float, late_s: float = 0.0) -> StepRate | None:
    """Return the rate from the first report (s, steps) after `warm_up` steps to the last; None without two of them.

    The steps are cut into at most `PARTS` parts of about equal length at reports; the interval is Student's of the
    parts' seconds per step, and at least as wide as reports allow that were read up to `late_s` after they were made.
    """
    counted = [(at, steps) for at, steps in reports if steps >= warm_up]
    if len(counted) < 2 or counted[-1][1] <= counted[0][1] or counted[-1][0] <= counted[0][0]:
        return None
    (begun, first), (ended, last) = counted[0], counted[-1]
    cuts = [counted[0]]
    for at, steps in counted[1:]:
        if steps - cuts[-1][1] >= (last - first) / PARTS and at > cuts[-1][0]:
            cuts.append((at, steps))
    cuts[-1] = counted[-1]  # the rest belongs to the last part
    pieces = np.array(cuts)
    low, high = interval_of_rates(np.diff(pieces[:, 1]) / np.diff(pieces[:, 0]))
    steps, seconds = last - first, ended - begun
    if late_s > 0:
        low, high = _widened(steps, seconds, late_s, low, high)
    return StepRate(steps_per_s=steps / seconds, low=low, high=high, steps=steps, seconds=seconds)


def _widened(
    steps: float, seconds: float, late_s: float, low: float | None, high: float | None
) -> tuple[float, float | None]:
    """Return the ends of an interval where the steps may have taken `late_s` more or less; None, None = no interval."""
    least = steps / (seconds + late_s)
    if seconds <= late_s or (low is not None and high is None):
        return least if low is None else min(low, least), None
    most = steps / (seconds - late_s)
    return (least, most) if low is None or high is None else (min(low, least), max(high, most))


def interval_of_rates(rates: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the interval of several measured rates, (part,), above 0; None, None for a single one."""
    found = estimate(1.0 / rates, CONFIDENCE)
    if found is None or found.half is None:
        return None, None
    low, high = found.mean - found.half, found.mean + found.half
    return 1.0 / high, 1.0 / low if low > 0 else None


@dataclass(frozen=True, slots=True)
class MeasuredShape:
    """A shape and its rate; without a rate it does not run, for a reason."""

    shape: JobShape
    rate: StepRate | None
    reason: str = ""


def read_measurements(path: Path) -> list[MeasuredShape]:
    """Return the shapes of a table in order of first appearance. Raises InvalidInput with everything that is wrong."""
    table = read_table(path).stripped()
    table.expect(NEEDED, ("measurement", *WRITTEN), f"the table must hold at least one row of {', '.join(NEEDED)}")
    workers, servers = table.whole("workers", WORKERS).tolist(), table.whole("servers", SERVERS).tolist()
    types, rates = table.filled("type", "give the type of its accelerators"), table.number("steps_per_s", RATE)
    more = [table.number(name, OPTIONAL).tolist() for name in WRITTEN[:-1]]
    reasons = table.text("reason")
    table.raise_if_any()
    rows: dict[JobShape, list[int]] = {}
    for m, key in enumerate(zip(workers, servers, types, strict=True)):
        rows.setdefault(JobShape(*key), []).append(m)
    found = []
    for shape, own in rows.items():
        running = [m for m in own if rates[m] > 0]
        if not running:
            found.append(MeasuredShape(shape, None, reasons[own[0]] or "the table says that it does not run"))
        elif len(own) == 1:
            low, high, steps, seconds = (None if np.isnan(column[own[0]]) else column[own[0]] for column in more)
            rate = StepRate(steps_per_s=float(rates[own[0]]), low=low, high=high, steps=steps, seconds=seconds)
            found.append(MeasuredShape(shape, rate))
        else:
            low, high = interval_of_rates(rates[running])
            mean = len(running) / float(np.add.reduce(1.0 / rates[running]))
            found.append(MeasuredShape(shape, StepRate(steps_per_s=mean, low=low, high=high)))
    return found


def write_measurements(path: Path, measured: Sequence[MeasuredShape]) -> None:
    """Replace the table by these rows, in one step."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("measurement", *NEEDED, *WRITTEN))
    for number, one in enumerate(measured, 1):
        rate = one.rate or StepRate(steps_per_s=0.0)
        numbers = (rate.steps_per_s, rate.low, rate.high, rate.steps, rate.seconds)
        rest = ("" if value is None else repr(value) for value in numbers)
        writer.writerow((number, one.shape.workers, one.shape.servers, one.shape.type, *rest, one.reason))
    write_whole(path, text.getvalue().encode(), durable=True)
