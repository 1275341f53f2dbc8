"""A trace → a native file, whole or not at all, and the same bytes for the same trace."""

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
from eunomia.traces.table import Trace

Column = tuple[str, ...] | np.ndarray
ENDINGS = (".csv", ".csv.gz", ".parquet")
NEEDS_QUOTES = re.compile(r'[,"\r\n]')


def write_native(trace: Trace, path: Path) -> None:
    """Write the trace as .csv, .csv.gz or .parquet, as the name says.

    Raises InvalidInput for another name, or a place that cannot be written to.
    """
    for ending, packed in BYTES_BY_ENDING.items():
        if path.name.endswith(ending):
            return write_output(path, packed(trace))
    raise refused(
        str(path),
        None,
        None,
        f"the name of a native trace must end in {', '.join(BYTES_BY_ENDING)}",
        "choose one of these endings",
    )


def lost(trace: Trace) -> tuple[str, ...]:
    """Return what the trace's file or the trace says and a native file does not, in phrases after "not written:"."""
    columns = f"columns {', '.join(trace.unread)}"
    date = f"the date of time 0, {trace.began}"
    return (*[columns] * bool(trace.unread), *trace.partly, *[date] * (trace.began is not None))


def _columns(trace: Trace) -> dict[str, Column]:
    """Return the columns that say anything. Absent numbers are nan."""
    blank = ("",) * len(trace)
    always: dict[str, Column] = {
        "job_id": trace.job_id,
        "submitted_s": trace.submitted_s,
        "scale_factor": trace.scale_factor,
        "job_type": blank if trace.job_type is None else trace.job_type,
    }
    deadline_s = np.where(np.isinf(trace.deadline_s), np.nan, trace.deadline_s)
    numbers = {"total_steps": trace.total_steps, "duration_s": trace.duration_s, "deadline_s": deadline_s}
    texts: dict[str, tuple[str, ...]] = {
        "tenant": trace.tenant,
        "app": trace.app,
        "status": trace.status,
        "checkpoint_dir": trace.checkpoint_dir,
        "command": tuple(json.dumps(argv, ensure_ascii=False) if argv else "" for argv in trace.command),
    }
    said: dict[str, Column] = {name: column for name, column in numbers.items() if not np.isnan(column).all()}
    said |= {name: column for name, column in texts.items() if any(column)}
    said |= {name: column for name in ("cpus", "memory_gib") if (column := getattr(trace, name)).any()}
    said |= {"weight": trace.weight} if (trace.weight != 1).any() else {}
    said |= {"retries": trace.retries} if trace.retries.any() else {}
    return always | said


def _csv(trace: Trace) -> bytes:
    columns = _columns(trace)
    cells = [_numbers(column) if isinstance(column, np.ndarray) else map(quoted, column) for column in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*cells, strict=True))]
    return "".join(line + "\n" for line in lines).encode()


def _numbers(column: np.ndarray) -> Iterable[str]:
    """Return the shortest text that reads back as the same number; empty for nan."""
    return ("" if isnan(number) else repr(number).removesuffix(".0") for number in column.tolist())


def quoted(text: str) -> str:
    """Return the text as a cell of CSV."""
    return '"' + text.replace('"', '""') + '"' if NEEDS_QUOTES.search(text) else text


def _gzipped(trace: Trace) -> bytes:
    return gzip.compress(_csv(trace), mtime=0)


def _parquet(trace: Trace) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table({name: _array(column) for name, column in _columns(trace).items()}), sink)
    return sink.getvalue()


def _array(column: Column) -> pa.Array:
    """Return the column with null where a number is absent."""
    return pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else pa.array(column, pa.string())


BYTES_BY_ENDING: dict[str, Callable[[Trace], bytes]] = dict(zip(ENDINGS, (_csv, _gzipped, _parquet), strict=True))
