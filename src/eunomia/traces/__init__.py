"""THE PAST: readers of trace formats, and generators of traces that look like them.

A format is a module here with a function `read(path, *, option=…) -> Trace`; to add one, write the file and add its
line to FORMATS.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from eunomia.model.nearest import nearest
from eunomia.traces.generators import GENERATORS, generate
from eunomia.traces.options import known, refused
from eunomia.traces.table import Trace
from eunomia.traces.window import window

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "GENERATORS", "Trace", "generate", "read", "window", "write_native"]

FORMATS = {  # name → module, loaded on use
    "native": "eunomia.traces.native",
    "gavel": "eunomia.traces.gavel",
    "philly": "eunomia.traces.philly",
    "venus": "eunomia.traces.venus",
}


def read(path: Path | str, format: str = "native", **options: object) -> Trace:
    """Return the trace in a file of the named format.

    Raises InvalidInput for an unknown format or option, or with everything that is wrong with the file.
    """
    if format not in FORMATS:
        raise refused(str(path), "format", format, "this format is not known", nearest(format, FORMATS))
    reader: Callable[..., Trace] = import_module(FORMATS[format]).read
    known(str(path), options, list(signature(reader).parameters)[1:])
    return reader(Path(path), **options)


def write_native(trace: Trace, path: Path) -> None:
    """Write the trace in the native format: .csv, .csv.gz or .parquet, as the name says."""
    from eunomia.traces.writing import write_native as write

    write(trace, path)
