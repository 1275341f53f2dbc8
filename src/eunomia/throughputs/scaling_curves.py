"""Published scaling curves as tables of throughputs: ElasticFlow's iterations/s and Muri's iteration times.

| columns | steps/s |
| --- | --- |
| `gpu_type, model, global_batch_size, 1, 2, 4, …` | ElasticFlow's, as given: a step is the whole gang's batch |
| `model_name, batch_size, num_gpu, iteration_time, …` | Muri's: gang / iteration time, on v100 |

A job type is `model (batch size n)` with the batch of the table.

D. Gu et al., "ElasticFlow", ASPLOS 2023: the global batch is constant, so the curves bend and may fall. Y. Zhao et al.,
"Muri", SIGCOMM 2022: the batch of each accelerator is constant. 0 and empty mean "not measured".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import InvalidInput
from eunomia.inputs.table import InputTable
from eunomia.throughputs.long_table import ABOVE_0, AT_LEAST_0, COUNT, layout_of, read_layout
from eunomia.throughputs.measured_table import Measurements, Rates

LAYOUTS = {
    "elasticflow": ("gpu_type", "model", "global_batch_size"),
    "muri": ("model_name", "batch_size", "num_gpu", "iteration_time"),
}
MURI_TYPE = "v100"  # the paper's cluster; the table does not say
MS = 1e-3
_RATE = replace(AT_LEAST_0, empty=0.0)


def is_published(path: Path) -> bool:
    """Return whether a file is one of these tables."""
    try:
        return layout_of(read_table(path).stripped().columns, LAYOUTS) is not None
    except InvalidInput:
        return False


def read(path: Path, name: str) -> Measurements:
    """Return the measurements of a file. Raises InvalidInput with everything that is wrong with it."""
    layout, table = read_layout(path, name, LAYOUTS)
    rates = _elasticflow(table) if layout == "elasticflow" else _muri(table)
    if not rates and not table.count:
        table.note(None, None, None, "the table holds no throughput", "give at least one measurement above 0")
    table.raise_if_any()
    return Measurements(name, rates, {})


def _elasticflow(table: InputTable) -> Rates:
    sizes = [column for column in table.columns if column not in LAYOUTS["elasticflow"]]
    for column in sizes:
        if not (column.isascii() and column.isdigit() and int(column) > 0):
            table.note(table.header_line, column, column, "is a number of accelerators", "leave the column out")
    table.raise_if_any()
    job_types = _job_types(table, "model", "global_batch_size")
    types = [type.casefold() for type in table.text("gpu_type")]
    columns = [table.number(column, _RATE).tolist() for column in sizes]
    return {
        (type, job_type, int(size)): rate
        for type, job_type, *row in zip(types, job_types, *columns, strict=True)
        for size, rate in zip(sizes, row, strict=True)
        if rate > 0
    }


def _muri(table: InputTable) -> Rates:
    sizes, times = table.whole("num_gpu", COUNT).tolist(), table.number("iteration_time", ABOVE_0).tolist()
    job_types = _job_types(table, "model_name", "batch_size")
    return {
        (MURI_TYPE, job_type, size): size / (time * MS)
        for job_type, size, time in zip(job_types, sizes, times, strict=True)
    }


def _job_types(table: InputTable, model: str, batch: str) -> list[str]:
    batches = table.whole(batch, COUNT).tolist()
    return [f"{name} (batch size {size})" for name, size in zip(table.text(model), batches, strict=True)]
