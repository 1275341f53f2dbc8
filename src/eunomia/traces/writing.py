"""Writes a trace as a native file, whole or not at all; the same trace gives the same bytes."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from io import BytesIO
from math import isnan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import is_date
from eunomia.traces.native import BEGAN
from eunomia.traces.table import Trace

Column = tuple[str, ...] | np.ndarray
ENDINGS = (".csv", ".csv.gz", ".parquet")
NEEDS_QUOTES = re.compile(r'[,"\r\n]')


def write_native(trace: Trace, path: Path) -> None:
    """Write the trace as .csv, .csv.gz or .parquet, as the name says.

    Raises InvalidInput for another name, or a path that cannot be written to.
    """
    for ending, encode in WRITER_BY_ENDING.items():
        if path.name.endswith(ending):
            return write_output(path, encode(trace))
    rule = f"the name of a native trace must end in {', '.join(ENDINGS)}"
    raise refused(str(path), None, None, rule, "choose one of these endings")


def list_losses(trace: Trace, ending: str = ".csv") -> tuple[str, ...]:
    """Return what a native file with this ending cannot hold of the trace and its file, after "not written:"."""
    columns = f"columns {', '.join(trace.unread)}"
    date = f"the date of time 0, {trace.began}"
    return (
        *[columns] * bool(trace.unread),
        *trace.partly,
        *[date] * (trace.began is not None and ending != ".parquet"),
    )


def _columns(trace: Trace) -> dict[str, Column]:
    """Return the required columns and those that are not all at their defaults. Absent numbers are nan."""
    blank = ("",) * len(trace)
    required: dict[str, Column] = {
        "job_id": trace.job_id,
        "submitted_s": trace.submitted_s,
        "scale_factor": trace.scale_factor,
        "job_type": blank if trace.job_type is None else trace.job_type,
    }
    deadline_s = np.where(np.isinf(trace.deadline_s), np.nan, trace.deadline_s)
    numbers = {"total_steps": trace.total_steps, "duration_s": trace.duration_s, "deadline_s": deadline_s,
               "started_s": trace.started_s, "ended_s": trace.ended_s,
               "eligible_s": trace.eligible_s}  # fmt: skip
    texts: dict[str, tuple[str, ...]] = {
        "tenant": trace.tenant,
        "app": trace.app,
        "status": trace.status,
        "checkpoint_dir": trace.checkpoint_dir,
        "ran_on": trace.ran_on,
        "command": tuple(json.dumps(argv, ensure_ascii=False) if argv else "" for argv in trace.command),
        "pauses": tuple(json.dumps(spans) if spans else "" for spans in trace.pauses),
    }
    optional: dict[str, Column] = {name: column for name, column in numbers.items() if not np.isnan(column).all()}
    optional |= {name: column for name, column in texts.items() if any(column)}
    optional |= {name: column for name in ("cpus", "memory_gib") if (column := getattr(trace, name)).any()}
    optional |= {"weight": trace.weight} if (trace.weight != 1).any() else {}
    if not trace.interruptible.all():
        optional["interruptible"] = tuple("true" if can else "false" for can in trace.interruptible.tolist())
    optional |= {"retries": trace.retries} if trace.retries.any() else {}
    return required | optional


def _csv(trace: Trace) -> bytes:
    columns = _columns(trace)
    cells = [
        _format_numbers(column) if isinstance(column, np.ndarray) else map(quote_cell, column)
        for column in columns.values()
    ]
    lines = [",".join(columns), *map(",".join, zip(*cells, strict=True))]
    return "".join(line + "\n" for line in lines).encode()


def _format_numbers(column: np.ndarray) -> Iterable[str]:
    """Return the shortest text of each number that parses to it; empty for nan."""
    return ("" if isnan(number) else repr(number).removesuffix(".0") for number in column.tolist())


def quote_cell(text: str) -> str:
    """Return the text as a cell of CSV, quoted where needed."""
    return '"' + text.replace('"', '""') + '"' if NEEDS_QUOTES.search(text) else text


def _gzipped(trace: Trace) -> bytes:
    return gzip.compress(_csv(trace), mtime=0)


def _parquet(trace: Trace) -> bytes:
    sink = BytesIO()
    table = pa.table({name: _array(column) for name, column in _columns(trace).items()})
    if trace.began is not None and is_date(trace.began):
        table = table.replace_schema_metadata({BEGAN: trace.began.isoformat(sep=" ")})
    pq.write_table(table, sink)
    return sink.getvalue()


def _array(column: Column) -> pa.Array:
    """Return the column with null where a number is absent."""
    return pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else pa.array(column, pa.string())


WRITER_BY_ENDING: dict[str, Callable[[Trace], bytes]] = dict(zip(ENDINGS, (_csv, _gzipped, _parquet), strict=True))
