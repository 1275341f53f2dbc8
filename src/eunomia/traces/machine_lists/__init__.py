"""Readers of published lists of machines, on which to replay a trace.

A format is a layout in `layouts`, or a module here with `REQUIRED` and `OPTIONAL` columns and
`read(path, *, option=…) -> MachineList`; to add one, write it and add its line to NODE_FORMATS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eunomia.model.registry import Registry
from eunomia.traces.format_detection import is_in_format, read_as, read_first_line
from eunomia.traces.machine_lists.machines import MachineList

__all__ = ["NODE_FORMATS", "MachineList", "is_machine_list", "read_nodes"]

NODE_FORMATS: Registry[Any] = Registry(
    {  # name → module, or its layout, loaded on use
        "native": "eunomia.traces.machine_lists.layouts:NATIVE",
        "openb": "eunomia.traces.machine_lists.layouts:OPENB",
        "pai": "eunomia.traces.machine_lists.layouts:PAI",
        "alibaba-2026": "eunomia.traces.machine_lists.alibaba_2026",
        "lingjun": "eunomia.traces.machine_lists.layouts:LINGJUN",
        "partitions": "eunomia.traces.machine_lists.layouts:PARTITIONS",
        "switches": "eunomia.traces.machine_lists.switches",
        "daily": "eunomia.traces.machine_lists.daily",
        "slurm-nodes": "eunomia.traces.machine_lists.slurm_nodes",
        "kubernetes-nodes": "eunomia.traces.machine_lists.kubernetes_nodes",
    }
)


def is_machine_list(path: Path) -> bool:
    """Say whether the first line of a file is that of a list of machines."""
    line = None if path.is_dir() else read_first_line(path)
    return any(is_in_format(place, line) for place in NODE_FORMATS.values())


def read_nodes(path: Path | str, format: str = "auto", *, only: str = "", **options: object) -> MachineList:
    """Return the machines in a file, or in the one file of a folder that is such a list; `only` names types to keep.

    The format "auto" is detected from the first line. Raises InvalidInput for an unknown format or option, or with
    everything that is wrong with the file.
    """
    machines: MachineList = read_as(path, format, NODE_FORMATS, options)
    return machines.only(only)
