"""Machines of Alibaba's openb cluster, 2023 (Q. Weng et al., USENIX ATC 2023), one a line."""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import NONE_HERE, MachineList, catalogue_names, machines, named, repeated

REQUIRED = ("sn", "gpu", "model")
OPTIONAL = ("cpu_milli", "memory_mib")
UNDISCLOSED = "types g2 and g3 are the publisher's names of undisclosed accelerators"


def read(path: Path) -> MachineList:
    """Return the machines. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    sheet.unique("sn", "give each machine its own")
    size = sheet.whole("gpu", ACCELERATORS)
    types = catalogue_names(named(sheet, "model", size > 0))
    notes = [UNDISCLOSED] * bool({"g2", "g3"} & set(types))
    return machines(sheet, types, repeated(len(sheet)), size, ("",) * len(sheet), notes)
