"""Groups of equal machines, as in a scenario's `nodes`: type, count, accelerators, rack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import MACHINES, NONE_HERE, MachineList, machines
from eunomia.traces.writing import quote_cell

REQUIRED = ("type", "accelerators")
OPTIONAL = ("count", "rack")
COUNT = replace(MACHINES, empty=1)


def read(path: Path) -> MachineList:
    """Return the machines. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    count, size = sheet.whole("count", COUNT), sheet.whole("accelerators", ACCELERATORS)
    return machines(sheet, sheet.filled("type"), count, size, sheet.text("rack"))


def write(listed: MachineList, path: Path) -> None:
    """Write the machines as CSV, consecutive equal ones in one line.

    Raises InvalidInput for a path that cannot be written to.
    """
    rows = [
        f"{quote_cell(node.type)},{count},{node.accelerators},{quote_cell(node.rack)}\n"
        for node, count in listed.groups()
    ]
    write_output(path, "".join(["type,count,accelerators,rack\n", *rows]).encode())
