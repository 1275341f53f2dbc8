"""Machines of Alibaba's PAI cluster, 2020 (Q. Weng et al., NSDI 2022), one a line."""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import NONE_HERE, MachineList, catalogue_names, machines, named, repeated

REQUIRED = ("machine", "gpu_type", "cap_gpu")
OPTIONAL = ("cap_cpu", "cap_mem")
OTHERS = "type misc is the publisher's name of accelerators of older and other kinds"


def read(path: Path) -> MachineList:
    """Return the machines. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    sheet.unique("machine", "give each machine its own")
    size = sheet.whole("cap_gpu", ACCELERATORS)
    types = catalogue_names(named(sheet, "gpu_type", size > 0))
    return machines(sheet, types, repeated(len(sheet)), size, ("",) * len(sheet), [OTHERS] * ("misc" in types))
