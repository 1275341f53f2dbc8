"""Machines of Alibaba's cluster with spot jobs, 2026, one a line (J. Duan et al., ASPLOS 2026)."""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND
from eunomia.inputs.open_table import read_table
from eunomia.traces.machine_lists.machines import NONE_HERE, MachineList, named
from eunomia.traces.machine_lists.named_nodes import NamedNode, machine_list

REQUIRED = ("node_name", "gpu_model", "gpu_capacity_num", "cpu_num")
OPTIONAL = ()


def read(path: Path) -> MachineList:
    """Return the machines, with their CPUs. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL, NONE_HERE)
    size, cpus = sheet.whole("gpu_capacity_num", ACCELERATORS), sheet.number("cpu_num", DEMAND)
    types, names = named(sheet, "gpu_model", size > 0), sheet.unique("node_name", "give each machine its own")
    sheet.raise_if_any()
    rows = zip(names, types, size.tolist(), cpus.tolist(), strict=True)
    return machine_list(
        path, [NamedNode(name=name, type=kind, accelerators=count, cpus=room) for name, kind, count, room in rows]
    )
