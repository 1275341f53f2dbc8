"""Workloads of Pollux' simulator (A. Qiao et al., OSDI 2021): independent synthetic workloads in one table.

A job names its application and its batch size, and trains to the last epoch that the authors validated. `ITERATIONS`
holds the iterations that they measured for that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import SCALE_FACTOR, SUBMITTED, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import chosen
from eunomia.inputs.table import InputTable
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import interpolate
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("name", "time", "application", "num_replicas", "batch_size")
OPTIONAL = ("set", "workload")  # absent from the files as the authors published them, one for each workload
BATCH = Rule(what="a whole number, at least 1", least=1, most=1e9, whole=True, fix="write the global batch size")
ITERATIONS = {  # application → global batch size → iterations to the last validated epoch (Pollux' artifact)
    "bert": {12: 14774, 24: 7427, 48: 3732, 96: 1885, 192: 940, 384: 480},
    "cifar10": {128: 39062, 256: 20377, 512: 10615, 1024: 5722, 2048: 3178, 4096: 2011},
    "deepspeech2": {20: 28536, 40: 14711, 80: 7683, 160: 4041, 320: 2264, 640: 1423},
    "imagenet": {200: 576525, 400: 292995, 800: 150231, 1600: 78453, 3200: 42123, 6400: 23972, 12800: 14461},
    "ncf": {256: 194174, 512: 97094, 1024: 48625, 2048: 24308, 4096: 12172, 8192: 6122, 16384: 3069, 32768: 1548},
    "yolov3": {8: 103444, 16: 52905, 32: 27430, 64: 14577, 128: 8075, 256: 4809, 512: 3143},
}


def read(path: Path, *, set: str = "", workload: int | str = "") -> Trace:
    """Return the jobs of one workload of one set, by time; without options all of them, all at once.

    Raises InvalidInput with everything that is wrong with the file.
    """
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    for name in ("set", "workload", "name"):
        sheet.filled(name)
    trace = _trace(sheet)
    sheet.raise_if_any()
    keep = chosen(sheet.file, "set", set, sheet.text("set"))
    keep &= chosen(sheet.file, "workload", str(workload), sheet.text("workload"))
    return in_order(trace.take(np.flatnonzero(keep)))


def _trace(sheet: InputTable) -> Trace:
    sets, workloads, names = sheet.text("set"), sheet.text("workload"), sheet.text("name")
    applications = sheet.renamed("application", {name: name for name in ITERATIONS})
    batch = sheet.number("batch_size", BATCH)
    trace = trace_of(
        sheet.file,
        _join_cells(sets, workloads, names),
        sheet.number("time", SUBMITTED),
        sheet.whole("num_replicas", SCALE_FACTOR),
        job_type=tuple(
            f"{name} (batch size {size:.0f})" for name, size in zip(applications, batch.tolist(), strict=True)
        ),
        total_steps=_steps(applications, batch),
        tenant=_join_cells(sets, workloads),
        row=sheet.line,
        unread=sheet.unread(),
        notes=_notes(_join_cells(sets, workloads)),
    )
    _refuse_repeated(sheet, trace.job_id)
    return trace


def _join_cells(*columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the non-empty cells of each row, joined by slashes."""
    return tuple("/".join(filter(None, cells)) for cells in zip(*columns, strict=True))


def _notes(workloads: tuple[str, ...]) -> tuple[str, ...]:
    count = len(frozenset(workloads))
    several = f"the file holds {count:,} workloads, each meant to run alone: name set and workload"
    counted = "steps are the iterations to the last validated epoch at the job's batch size, measured by the authors"
    return (counted, *[several] * (count > 1))


def _refuse_repeated(sheet: InputTable, ids: tuple[str, ...]) -> None:
    again = np.ones(len(ids), dtype=np.bool_)
    again[np.unique(np.array(ids), return_index=True)[1]] = False
    sheet.refuse("name", again, "must be unique in its workload", "give each job of a workload its own")


def _steps(applications: tuple[str, ...], batch: Floats) -> Floats:
    """Return (job,) iterations; their product with the batch size is interpolated between measured ones."""
    steps = np.full(len(batch), np.nan)
    of = np.array(applications)
    for name, measured in ITERATIONS.items():
        rows = of == name
        sizes = np.array(list(measured), dtype=np.float64)
        samples = sizes * np.array(list(measured.values()), dtype=np.float64)
        steps[rows] = interpolate(elementary.log(batch[rows]), elementary.log(sizes), samples) / batch[rows]
    return steps
