"""A user's few measurements beside the catalogue: throughputs of all types and sizes, with intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.throughputs import analytic
from eunomia.throughputs.catalogue import Accelerator, resolve
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80
from eunomia.throughputs.estimators.gang_growth import GangGrowth, common_growth, widening
from eunomia.throughputs.estimators.pair_table import UNIT_FACTOR, split_name
from eunomia.throughputs.estimators.type_transfer import NOISE, TransferFacts, TypeTransfer, fit_calibration, traits_of
from eunomia.throughputs.job_type_facts import JobFacts, job_types
from eunomia.throughputs.measured_table import Measurements, nearest_size, relative_rate

Cell = tuple[int, int, int, float]  # job, type, size, rate
COLUMNS = ("type", "job_type", "scale_factor", "steps_per_s", "steps_per_s_p10", "steps_per_s_p90", "origin")


@dataclass(frozen=True, slots=True)
class CalibratedRate:
    """One row of a calibrated table; rates in steps/s of the whole gang, 0 = cannot run."""

    type: str
    job_type: str
    scale_factor: int
    median: float
    low: float
    high: float
    is_measured: bool = False


def calibrate(measured: Measurements, types: Sequence[str], sizes: Sequence[int]) -> list[CalibratedRate]:
    """Estimate the rate of every measured job type on every type and size, those measured included.

    A measured cell keeps its measured rate. Where a job was measured on a type, other sizes there follow from the
    nearest measured one; how gangs grow beside the analytic model, and how surely, is learnt from jobs measured in
    several sizes. A rate of 0 says that the job cannot run: it stays 0, as do sizes to which it is the nearest, and
    nothing is learnt from it. Estimates among the measurements are made anew. Raises InvalidInput for rates far from
    what the catalogue expects of their kind, for a job without a rate above 0, and for types that are not in the
    catalogue.
    """
    measured, zeros = _above_zero(measured)
    names = tuple(dict.fromkeys((*(key[0] for key in (*measured.alone, *zeros)), *types)))
    accelerators = resolve(names)
    jobs = tuple(dict.fromkeys(key[1] for key in measured.alone))
    facts = _facts(jobs, accelerators)
    cells = [(jobs.index(job), names.index(type), size, rate) for (type, job, size), rate in measured.alone.items()]
    _refuse_wrong(measured, facts, cells, jobs, names)
    growth = _Growth(cells, jobs, names, sizes)
    smallest = _smallest_sizes(cells)
    single = np.array([rate / growth.between(m, t, 1, size)[0] for m, t, size, rate in smallest])
    measured_jobs, measured_types = (np.array([cell[axis] for cell in smallest], dtype=np.int64) for axis in (0, 1))
    beliefs = TypeTransfer(facts, fit_calibration(facts, measured_jobs, measured_types, single))
    beliefs.learn(measured_jobs, measured_types, single)
    median, low, high = beliefs.estimate()
    spread = (elementary.log(high) - elementary.log(low)) / (2 * GAUSSIAN_80)
    rows = []
    for m, job in enumerate(jobs):
        known_sizes = [size for own, _, size, _ in cells if own == m]
        for t, name in enumerate(names):
            no_sizes = [size for type, each, size in zeros if (type, each) == (name, job)]
            here = [own for type, each, own in measured.alone if (type, each) == (name, job)]
            for size in sorted({*sizes, *known_sizes, *no_sizes}):
                rate = measured.alone.get((name, job, size))
                is_zero = bool(no_sizes) and nearest_size((*here, *no_sizes), size) in no_sizes
                if is_zero or (rate is None and not _fits(job, accelerators[t], size)):
                    rows.append(CalibratedRate(name, job, size, 0.0, 0.0, 0.0, size in no_sizes))
                    continue
                near = nearest_size(here or known_sizes, size)
                level = float(median[m, t]) * growth.between(m, t, 1, near)[0]
                level = measured.alone[name, job, near] if here else level
                grown, unsure = growth.between(m, t, near, size)
                middle = level * grown if rate is None else rate
                sd = _deviation(float(spread[m, t]), unsure, is_measured=bool(here), is_other_size=near != size)
                factor = elementary.exp(GAUSSIAN_80 * sd)
                ends = middle / factor, middle * factor
                rows.append(CalibratedRate(name, job, size, middle, *ends, is_measured=rate is not None))
    return rows


def _above_zero(measured: Measurements) -> tuple[Measurements, frozenset[tuple[str, str, int]]]:
    """Return the measured rates above 0, and the keys of those of 0. Raises InvalidInput for jobs that have only 0."""
    alone = {key: rate for key, rate in measured.alone.items() if rate > 0 and key not in measured.estimated}
    zeros = frozenset(key for key, rate in measured.alone.items() if rate == 0)
    problems, known = Problems(measured.name), {job for _, job, _ in alone}
    for job in dict.fromkeys(job for _, job, _ in measured.alone):
        if job not in known:
            rule = f"{job} has no measured rate above 0, from which others could be estimated"
            problems.add(rule, "measure it on one type, or leave its rows out", column="steps_per_s")
    problems.raise_if_any()
    return Measurements(measured.name, alone, {}), zeros


def _smallest_sizes(cells: Sequence[Cell]) -> list[Cell]:
    """Return each job's smallest gang on each type: larger ones say how it grows, and nothing more of types."""
    smallest: dict[tuple[int, int], Cell] = {}
    for cell in sorted(cells, key=lambda cell: cell[2]):
        smallest.setdefault(cell[:2], cell)
    return list(smallest.values())


def _deviation(spread: float, unsure: float, *, is_measured: bool, is_other_size: bool) -> float:
    """Return the standard deviation of the logarithm of a rate on a type where its job was measured or not.

    `spread` is that of the level on the type, `unsure` that of the rate over the one of the nearest known size.
    """
    if is_measured:
        return unsure if is_other_size else float(np.sqrt(NOISE))
    return float(np.sqrt(spread * spread + unsure * unsure)) if is_other_size else spread


@dataclass(frozen=True, slots=True)
class CheckedRate:
    """A measured rate beside its estimate from other measurements; steps/s."""

    rate: float
    estimate: CalibratedRate

    @property
    def error(self) -> float:
        """The relative error of the median."""
        return abs(self.estimate.median / self.rate - 1.0)

    @property
    def inside(self) -> bool:
        """Whether the 80 % interval holds the rate."""
        return self.estimate.low <= self.rate <= self.estimate.high


def check_one_by_one(measured: Measurements) -> list[CheckedRate]:
    """Estimate each measurement from all others; those that are their job type's only one are left out."""
    found = []
    for key in measured.alone:
        others = {other: rate for other, rate in measured.alone.items() if other != key}
        found += _checked(Measurements(measured.name, others, {}), {key: measured.alone[key]})
    return found


def errors_by_count(measured: Measurements, draws: int = 8, seed: int = 0) -> list[tuple[int, float, int]]:
    """Return for 1, 2, 4, … measurements of each job type the mean error of those left, and how many these are.

    Which are known is drawn. Sizes that leave nothing to estimate are not there.
    """
    rng, keys, found = np.random.default_rng(seed), list(measured.alone), []
    for count in (1, 2, 4, 8, 16):
        errors: list[float] = []
        for _ in range(draws):
            known: dict[str, list[tuple[str, str, int]]] = {}
            for key in (keys[m] for m in rng.permutation(len(keys))):
                if len(known.setdefault(key[1], [])) < count:
                    known[key[1]].append(key)
            given = {key: measured.alone[key] for each in known.values() for key in each}
            left = {key: rate for key, rate in measured.alone.items() if key not in given}
            errors += [each.error for each in _checked(Measurements(measured.name, given, {}), left)]
        if errors:
            found.append((count, float(np.mean(errors)), len(errors) // draws))
    return found


def _checked(known: Measurements, hidden: Mapping[tuple[str, str, int], float]) -> list[CheckedRate]:
    jobs = {job for _, job, _ in known.alone}
    wanted = {key: rate for key, rate in hidden.items() if key[1] in jobs}
    if not wanted:
        return []
    rows = calibrate(known, [type for type, _, _ in wanted], sorted({size for _, _, size in wanted}))
    return [
        CheckedRate(wanted[key], row)
        for row in rows
        if (key := (row.type, row.job_type, row.scale_factor)) in wanted and row.median > 0
    ]


class _Growth:
    """How the gangs of each measured job grow; see `gang_growth`."""

    def __init__(self, cells: Sequence[Cell], jobs: tuple[str, ...], types: tuple[str, ...], sizes: Sequence[int]):
        self._jobs, self._types = jobs, types
        measured: list[dict[tuple[int, int], float]] = [{} for _ in jobs]
        for m, t, size, rate in cells:
            measured[m][t, size] = elementary.log(rate / _growth(types[t], jobs[m], size))
        every = sorted({1, *sizes, *(cell[2] for cell in cells)})
        common = common_growth(len(types), every, measured)
        self._beliefs = [GangGrowth(every, own, common) for own in measured]
        self._widening = widening(len(types), every, measured)

    def between(self, job: int, type: int, size: int, larger: int) -> tuple[float, float]:
        """Return a rate measured at one size over that at another, and the standard deviation of its logarithm."""
        mean, variance = self._beliefs[job].between(type, size, larger)
        analytic_growth = (_growth(self._types[type], self._jobs[job], each) for each in (size, larger))
        before, after = analytic_growth
        return after / before * elementary.exp(mean), self._widening * float(np.sqrt(variance + 2.0 * NOISE))


def as_csv(rows: Sequence[CalibratedRate]) -> str:
    """Return the rows as a long table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        rates = (f"{each:.6g}" for each in (row.median, row.low, row.high))
        origin = "measured" if row.is_measured else "estimated"
        writer.writerow([row.type, row.job_type, row.scale_factor, *rates, origin])
    return text.getvalue()


def as_measurements(name: str, rows: Sequence[CalibratedRate]) -> Measurements:
    """Return the rows as the table that `as_csv` writes of them."""
    key = {row: (row.type, row.job_type, row.scale_factor) for row in rows}
    return Measurements(
        name,
        {key[row]: row.median for row in rows},
        {},
        {key[row]: (row.low, row.high) for row in rows},
        frozenset(key[row] for row in rows if not row.is_measured),
    )


def _facts(jobs: tuple[str, ...], accelerators: Sequence[Accelerator]) -> TransferFacts:
    known, families = job_types(), tuple(dict.fromkeys(split_name(job)[0] for job in jobs))
    specs = elementary.log(np.array([(each.fp32_tflops, each.bandwidth_gb_s) for each in accelerators]))
    expected = np.empty((len(jobs), len(accelerators)))
    for m, job in enumerate(jobs):
        for t, each in enumerate(accelerators):
            known_job = known.get(job)
            expected[m, t] = specs[t].mean() if known_job is None else _log_rate(known_job, each)
    return TransferFacts(
        family=np.array([families.index(split_name(job)[0]) for job in jobs]),
        job_class=np.zeros(len(jobs), dtype=np.int64),
        has_expected=np.array([float(job in known) for job in jobs]),
        specs=specs,
        type_group=np.arange(len(accelerators)),
        expected=expected,
        traits=_traits([known.get(job) for job in jobs]),
    )


def _traits(jobs: Sequence[JobFacts | None]) -> Floats:
    work = [0.0 if each is None else each.batch_size * each.flops_per_sample for each in jobs]
    traffic = [0.0 if each is None else each.batch_size * each.bytes_per_sample + each.step_bytes for each in jobs]
    return traits_of(np.array(work), np.array(traffic))


def _log_rate(job: object, accelerator: Accelerator) -> float:
    return float(elementary.log(analytic.unlimited_rate(job, accelerator, 1)))  # type: ignore[arg-type]


def _growth(type: str, job: str, size: int) -> float:
    """Return the rate of a gang of that size over that of one accelerator, by the analytic model."""
    return relative_rate(type, job, size) / relative_rate(type, job, 1)


def _fits(job: str, accelerator: Accelerator, size: int) -> bool:
    facts = job_types().get(job)
    return facts is None or analytic.memory_gb(facts, size) <= accelerator.memory_gb


def _refuse_wrong(
    measured: Measurements, facts: TransferFacts, cells: list[Cell], jobs: tuple[str, ...], names: tuple[str, ...]
) -> None:
    problems = Problems(measured.name)
    off: dict[int, list[tuple[float, int]]] = {}
    for place, (m, t, size, rate) in enumerate(cells):
        level = elementary.log(rate / _growth(names[t], jobs[m], size)) - float(facts.expected[m, t])
        off.setdefault(m, []).append((level, place))
    for m, levels in off.items():
        middle = 0.0 if facts.has_expected[m] else float(np.median([level for level, _ in levels]))
        level, place = max(levels, key=lambda each: abs(each[0] - middle))
        if abs(level - middle) > elementary.log(UNIT_FACTOR):
            _, t, size, rate = cells[place]
            factor = elementary.exp(abs(level - middle))
            rule = f"{jobs[m]} on {size} {names[t]} is a factor of {factor:,.0f} off its kind: is it in another unit?"
            problems.add(rule, "give steps/s of the whole gang", column="steps_per_s", value=f"{rate:g}")
    problems.raise_if_any()


def interval_width(rows: Sequence[CalibratedRate]) -> Floats:
    """Return high over low of the rows that can run, (row,)."""
    return np.array([row.high / row.low for row in rows if row.median > 0])
