"""Throughputs of gangs on accelerator types: measured tables, the built-in catalogue, and the analytic model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest
from eunomia.throughputs import gavel_json, long_table, scaling_curves
from eunomia.throughputs.catalogue import price_usd_per_hour, resolve
from eunomia.throughputs.measured_table import MeasuredThroughputs, Measurements
from eunomia.throughputs.providers import Catalogued, Linear, Uniform
from eunomia.throughputs.throughput_table import Throughputs, ways_out

__all__ = ["Throughputs", "load", "price_usd_per_hour"]

BUILT_IN = ("catalogue", "uniform", "linear", "auto")
SYNTHETIC = {"uniform": Uniform, "linear": Linear}
READER_BY_ENDING = {
    ".json": gavel_json.read,
    ".json.gz": gavel_json.read,
    ".csv": long_table.read,
    ".csv.gz": long_table.read,
    ".parquet": long_table.read,
}


def load(
    source: str,
    types: Sequence[str],
    *,
    base: Path | None = None,
    capacity: Sequence[int] = (),
    missing: str = "refuse",
    drawn_by: int | None = None,
) -> Throughputs:
    """Return the throughputs of a source on a cluster's accelerator types, in the cluster's order.

    `source` is "catalogue" (built-in accelerator and job types through the analytic model), "uniform" (1 step/s for
    any gang of any job type), "linear" (1 step/s for each accelerator), or the path of a table, relative to `base`:
    Gavel's JSON or a long table (CSV or Parquet). `capacity` are the accelerators of each type: a gang that does not
    fit needs no throughput there. `missing` says what a pair of job type and accelerator type is that a table does
    not have: "refuse", an error when it is asked for; "estimate", as `eunomia calibrate` estimates it; "cannot_run",
    0. With `drawn_by` estimates are drawn from their intervals by this seed. Raises InvalidInput for a source that is
    missing or invalid, and for types that it lacks.
    """
    names = tuple(types)
    if not names:
        problems = Problems("the cluster")
        problems.add("a cluster has at least one accelerator type", "give it nodes")
        problems.raise_if_any()
    if source in SYNTHETIC:
        return Throughputs(names, SYNTHETIC[source](len(names)))
    if source in ("catalogue", "auto"):  # a scenario's auto is uniform only beside a trace that needs no more
        return Throughputs(names, Catalogued(resolve(names)), drawn_by=drawn_by)
    measurements = read_table(source, base)
    if missing == "estimate":
        measurements = _completed(measurements, names)
    elif missing == "cannot_run":
        measurements = _closed(measurements, names)
    _refuse_missing(names, measurements)
    return Throughputs(names, MeasuredThroughputs(names, measurements), tuple(capacity), drawn_by)


def _closed(measurements: Measurements, types: Sequence[str]) -> Measurements:
    """Return the measurements with a rate of 0 for each pair of job type and accelerator type that they do not have."""
    known = {(type_name, job_type) for type_name, job_type, _ in measurements.alone}
    job_types = dict.fromkeys(job_type for _, job_type, _ in measurements.alone)
    absent = {(name, job, 1): 0.0 for name in types for job in job_types if (name, job) not in known}
    return replace(measurements, alone=measurements.alone | absent)


def _completed(measurements: Measurements, types: Sequence[str]) -> Measurements:
    """Return the measurements with an estimate for each pair of job type and accelerator type that they do not have."""
    from eunomia.throughputs.estimators.calibration import as_measurements, calibrate

    known = {(type_name, job_type) for type_name, job_type, _ in measurements.alone}
    job_types = dict.fromkeys(job_type for _, job_type, _ in measurements.alone)
    absent = {(name, job) for name in types for job in job_types} - known
    if not absent:
        return measurements
    rows = calibrate(measurements, types, sorted({size for *_, size in measurements.alone}))
    found = as_measurements(measurements.name, [row for row in rows if (row.type, row.job_type) in absent])
    return replace(
        measurements,
        alone=measurements.alone | found.alone,
        intervals=measurements.intervals | found.intervals,
        estimated=measurements.estimated | found.estimated,
    )


def read_table(source: str, base: Path | None = None) -> Measurements:
    """Return the measurements of a table, for all its accelerator types. Raises InvalidInput as `load` does."""
    path = Path(source) if base is None else base / source
    problems = Problems(source)
    ending = next((ending for ending in READER_BY_ENDING if path.name.endswith(ending)), None)
    if not path.is_file():
        fix = f"give a path that exists, or {nearest(source, BUILT_IN)}"
        problems.add("there is no such file and no such built-in source", fix, value=source)
    elif ending is None:
        problems.add("the name does not say what kind of table it is", f"end it in {', '.join(READER_BY_ENDING)}")
    problems.raise_if_any()
    assert ending is not None
    if ending.startswith(".csv") and scaling_curves.is_published(path):
        return replace(scaling_curves.read(path, source), path=path)
    return replace(READER_BY_ENDING[ending](path, source), path=path)


def _refuse_missing(types: tuple[str, ...], measurements: Measurements) -> None:
    problems = Problems(measurements.name)
    for type_name in types:
        if type_name not in measurements.types:
            known = f"{nearest(type_name, measurements.types)} (types: {', '.join(measurements.types)})"
            fix = f"{known}; or {ways_out(measurements.path, types)}"
            problems.add("the table has no such accelerator type", fix, column="type", value=type_name)
    problems.raise_if_any()
