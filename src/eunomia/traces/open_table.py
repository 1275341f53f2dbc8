"""A table in a file, whichever way it is written."""

from __future__ import annotations

from pathlib import Path

from eunomia.traces.delimited import read_csv
from eunomia.traces.parquet import read_parquet
from eunomia.traces.sheet import Sheet


def read_sheet(path: Path) -> Sheet:
    """Return the sheet of a Parquet file (name ends in .parquet), else of comma-separated text, gzip or not.

    Raises InvalidInput for a file that cannot be read; what is wrong in it the sheet notes.
    """
    return read_parquet(path) if path.suffix == ".parquet" else read_csv(path)
