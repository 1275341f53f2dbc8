"""Hosts of Alibaba's Lingjun cluster, 2023, and the switches above each (J. Cao et al., SIGCOMM 2024), one a line.

Every host has 8 accelerators, whose kind is not named. The switch above a host (ASW) is its rack.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import NONE_HERE, MachineList, machines, repeated

REQUIRED = ("ip", "DSW", "PSW", "ASW")
OPTIONAL = ()
PER_HOST = 8
NOTES = (
    f"the list says neither how many accelerators a host has nor which: {PER_HOST} each, as the paper says, of the "
    "type that is asked for",
    "the switch above a host (ASW) is its rack; the aggregation above racks (PSW) has no place in a cluster here",
)


def read(path: Path, *, type: str = "v100") -> MachineList:
    """Return the hosts, all of one accelerator `type`. Raises InvalidInput with everything that is wrong."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    sheet.unique("ip", "give each machine its own")
    racks, rows = sheet.filled("ASW"), len(sheet)
    return machines(sheet, (str(type),) * rows, repeated(rows), repeated(rows, PER_HOST), racks, NOTES)
