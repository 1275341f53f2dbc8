"""Virtual clusters and how many machines each has, one a line: the lists of the Helios artifact's simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import MACHINES, NONE_HERE, MachineList, machines

REQUIRED = ("vc", "nodes")
OPTIONAL = ("gpus_per_node",)
EACH = replace(ACCELERATORS, empty=8)
SHARED = "virtual clusters are given by their size alone; all machines are shared"


def read(path: Path, *, type: str = "v100") -> MachineList:
    """Return the machines, all of one accelerator `type`, 8 accelerators each by default.

    Raises InvalidInput with everything that is wrong with the file.
    """
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    sheet.unique("vc", "give each virtual cluster its own")
    count, size, rows = sheet.whole("nodes", MACHINES), sheet.whole("gpus_per_node", EACH), len(sheet)
    notes = [SHARED] + ["accelerators per machine are not said: 8 each"] * ("gpus_per_node" not in sheet.columns)
    return machines(sheet, (str(type),) * rows, count, size, ("",) * rows, notes)
