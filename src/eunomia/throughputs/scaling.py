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

from pathlib import Path

from eunomia.inputs.problems import Problems
from eunomia.throughputs.columns import Columns, header_of, layout_of, number, read_columns, whole
from eunomia.throughputs.measured import Measurements, Rates

LAYOUTS = {
    "elasticflow": ("gpu_type", "model", "global_batch_size"),
    "muri": ("model_name", "batch_size", "num_gpu", "iteration_time"),
}
MURI_TYPE = "v100"  # the paper's cluster; the table does not say
MS = 1e-3


def is_published(path: Path) -> bool:
    """Say whether a CSV is one of these tables."""
    return layout_of(header_of(path), LAYOUTS) is not None


def read(path: Path, name: str) -> Measurements:
    """Return the measurements of a file. Raises InvalidInput with everything that is wrong with it."""
    problems = Problems(name)
    table = read_columns(path, LAYOUTS, problems)
    rates = _elasticflow(table, problems) if table.layout == "elasticflow" else _muri(table, problems)
    if not rates and not problems.count:
        problems.add("the table holds no throughput", "give at least one measurement above 0")
    problems.raise_if_any()
    return Measurements(name, rates, {})


def _elasticflow(table: Columns, problems: Problems) -> Rates:
    sizes = [column for column in table.header if column not in LAYOUTS["elasticflow"]]
    for column in sizes:
        if not (column.isascii() and column.isdigit() and int(column) > 0):
            problems.add("is a number of accelerators", "leave the column out", row=1, column=column, value=column)
    problems.raise_if_any()
    rates: Rates = {}
    for row in table.rows:
        job_type = f"{row.values['model']} (batch size {whole(row, 'global_batch_size', problems)})"
        for column in sizes:
            rate = number(row, column, problems, zero=True) if row.values[column] else 0.0
            if rate:
                rates[row.values["gpu_type"].casefold(), job_type, int(column)] = rate
    return rates


def _muri(table: Columns, problems: Problems) -> Rates:
    rates: Rates = {}
    for row in table.rows:
        size, batch = whole(row, "num_gpu", problems), whole(row, "batch_size", problems)
        job_type = f"{row.values['model_name']} (batch size {batch})"
        rates[MURI_TYPE, job_type, size] = size / (number(row, "iteration_time", problems) * MS)
    return rates
