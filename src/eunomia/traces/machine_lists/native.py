"""Groups of machines that are alike, as a scenario's `nodes` says them: type, count, accelerators, rack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import MACHINES, NONE_HERE, MachineList, machines
from eunomia.traces.writing import quoted

REQUIRED = ("type", "accelerators")
OPTIONAL = ("count", "rack")
COUNT = replace(MACHINES, empty=1)


def read(path: Path) -> MachineList:
    """Return the machines. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    count, size = sheet.whole("count", COUNT), sheet.whole("accelerators", ACCELERATORS)
    return machines(sheet, sheet.filled("type"), count, size, sheet.text("rack"))


def write(found: MachineList, path: Path) -> None:
    """Write the machines as CSV, those that are alike and follow each other in one line.

    Raises InvalidInput for a place that cannot be written to.
    """
    rows = [f"{quoted(node.type)},{count},{node.accelerators},{quoted(node.rack)}\n" for node, count in found.groups()]
    content = "".join(["type,count,accelerators,rack\n", *rows]).encode()
    write_output(path, content)
