"""A cluster by its numbers of switches, machines and accelerators: the specification of Tiresias' simulator.

A line holds the numbers of switches, of machines at each switch, and of accelerators of each machine (J. Gu et al.,
NSDI 2019, published code). The switch is the rack.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import MACHINES, NONE_HERE, MachineList, machines

REQUIRED = ("num_switch", "num_node_p_switch", "num_gpu_p_node")
OPTIONAL = ("num_cpu_p_node", "mem_p_node")


def read(path: Path, *, type: str = "v100") -> MachineList:
    """Return the machines, all of one accelerator `type`. Raises InvalidInput with everything that is wrong."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    switches, count = sheet.whole("num_switch", MACHINES), sheet.whole("num_node_p_switch", MACHINES)
    size = sheet.whole("num_gpu_p_node", ACCELERATORS)
    sheet.raise_if_any()
    rack_count, rack_size = np.repeat(count, switches), np.repeat(size, switches)
    racks = tuple(f"switch-{k}" for k in range(len(rack_count)))
    return machines(sheet, (str(type),) * len(racks), rack_count, rack_size, racks)
