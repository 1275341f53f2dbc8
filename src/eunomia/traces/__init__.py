"""Readers of trace formats, and generators of synthetic traces.

A format is a layout in `layouts`, or a module with a function `read(path, *, option=…) -> Trace`; to add one, write it
and add its line to FORMATS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eunomia.model.registry import Registry
from eunomia.traces.format_detection import read_as
from eunomia.traces.generators import GENERATORS, generate
from eunomia.traces.sampling import window
from eunomia.traces.table import Trace

__all__ = ["FORMATS", "GENERATORS", "Trace", "generate", "read", "window", "write_native"]

FORMATS: Registry[Any] = Registry(
    {  # name → module, or its layout, loaded on use
        "native": "eunomia.traces.native",
        "gavel": "eunomia.traces.gavel",
        "philly": "eunomia.traces.philly",
        "philly-log": "eunomia.traces.philly_log",
        "venus": "eunomia.traces.venus",
        "philly-deadlines": "eunomia.traces.layouts:PHILLY_DEADLINES",
        "helios": "eunomia.traces.layouts:HELIOS",
        "rfold": "eunomia.traces.layouts:RFOLD",
        "outcomes": "eunomia.traces.layouts:OUTCOMES",
        "itp": "eunomia.traces.layouts:ITP",
        "pai": "eunomia.traces.layouts:PAI",
        "openb": "eunomia.traces.openb",
        "alibaba-2026": "eunomia.traces.alibaba_2026",
        "lingjun": "eunomia.traces.layouts:LINGJUN",
        "kalos": "eunomia.traces.kalos",
        "muri": "eunomia.traces.layouts:MURI",
        "pollux": "eunomia.traces.pollux",
        "shockwave": "eunomia.traces.shockwave",
        "tiresias": "eunomia.traces.tiresias",
        "swf": "eunomia.traces.swf",
        "slurm": "eunomia.traces.slurm",
        "kubernetes": "eunomia.traces.kubernetes",
        "ray": "eunomia.traces.ray",
    }
)


def read(path: Path | str, format: str = "native", **options: object) -> Trace:
    """Return the trace in a file of the named format, or in the one file of a folder that has the format.

    The format "auto" is detected from the first line. Raises InvalidInput for an unknown format or option, or with
    everything that is wrong with the file.
    """
    trace: Trace = read_as(path, format, FORMATS, options)
    return trace


def write_native(trace: Trace, path: Path | str) -> None:
    """Write the trace in the native format: .csv, .csv.gz or .parquet, as the name says."""
    from eunomia.traces.writing import write_native as write

    write(trace, Path(path))
