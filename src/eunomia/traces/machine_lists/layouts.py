"""Lists of machines whose columns are fields of a machine: one reader, and a layout for each format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.field_rules import ACCELERATORS, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Ints
from eunomia.traces.machine_lists.machines import (
    MACHINES,
    NONE_HERE,
    MachineList,
    catalogue_names,
    machines,
    named,
    repeated,
)
from eunomia.traces.writing import quote_cell


@dataclass(frozen=True, kw_only=True)
class MachineLayout:
    """Which columns of a table, a line per machine or group of equal ones, are which fields. "" = not in the file."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    name: str = ""
    names: str = "machine"  # what the name names
    type: str = ""  # without it all machines have the type that the option `type` says
    models: bool = False  # types are a publisher's names of models, empty where there are no accelerators
    count: str = ""  # equal machines; 1 where it is not said
    size: str = ""  # accelerators of a machine; `each` where it is not said
    each: int = 8
    rack: str = ""
    notes: tuple[str, ...] = ()
    notes_by_type: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader with their defaults."""
        return {} if self.type else {"type": "v100"}

    def read(self, path: Path, **given: Any) -> MachineList:
        """Return the machines. Raises InvalidInput with everything that is wrong with the file."""
        sheet = read_table(path)
        sheet.expect(self.required, self.optional, NONE_HERE)
        if self.name:
            sheet.unique(self.name, f"give each {self.names} its own")
        count, size = (
            self._whole(sheet, self.count, MACHINES, 1),
            self._whole(sheet, self.size, ACCELERATORS, self.each),
        )
        if not self.type:
            types = (str((self.options | given)["type"]),) * len(sheet)
        else:
            types = catalogue_names(named(sheet, self.type, size > 0)) if self.models else sheet.filled(self.type)
        racks = sheet.filled(self.rack) if self.rack in self.required else sheet.text(self.rack)
        notes = [*self.notes, *dict.fromkeys(note for type, note in self.notes_by_type.items() if type in types)]
        if self.size in self.optional and self.size not in sheet.columns:
            notes.append(f"accelerators per machine are not said: {self.each} each")
        return machines(sheet, types, count, size, racks, notes)

    def _whole(self, sheet: InputTable, column: str, rule: Rule, empty: int) -> Ints:
        if not column:
            return repeated(len(sheet), empty)
        return sheet.whole(column, replace(rule, empty=empty) if column in self.optional else rule)


NATIVE = MachineLayout(  # groups of equal machines, as in a scenario's `nodes`
    required=("type", "accelerators"), optional=("count", "rack"),
    type="type", count="count", size="accelerators", rack="rack",
)  # fmt: skip
OPENB = MachineLayout(  # machines of Alibaba's openb cluster, 2023 (Q. Weng et al., USENIX ATC 2023)
    required=("sn", "gpu", "model"), optional=("cpu_milli", "memory_mib"),
    name="sn", type="model", models=True, size="gpu",
    notes_by_type=dict.fromkeys(
        ("g2", "g3"), "types g2 and g3 are the publisher's names of undisclosed accelerators"
    ),
)  # fmt: skip
PAI = MachineLayout(  # machines of Alibaba's PAI cluster, 2020 (Q. Weng et al., NSDI 2022)
    required=("machine", "gpu_type", "cap_gpu"), optional=("cap_cpu", "cap_mem"),
    name="machine", type="gpu_type", models=True, size="cap_gpu",
    notes_by_type={"misc": "type misc is the publisher's name of accelerators of older and other kinds"},
)  # fmt: skip
LINGJUN = MachineLayout(  # hosts of Alibaba's Lingjun cluster, 2023, with their switches (J. Cao et al., SIGCOMM 2024)
    required=("ip", "DSW", "PSW", "ASW"), name="ip", rack="ASW",
    notes=(
        "the list says neither how many accelerators a host has nor which: 8 each, as the paper says, of the "
        "type that is asked for",
        "the switch above a host (ASW) is its rack; the aggregation above racks (PSW) has no place in a cluster here",
    ),
)  # fmt: skip
PARTITIONS = MachineLayout(  # virtual clusters by their number of machines: the Helios artifact's simulator
    required=("vc", "nodes"), optional=("gpus_per_node",),
    name="vc", names="virtual cluster", count="nodes", size="gpus_per_node",
    notes=("virtual clusters are given by their size alone; all machines are shared",),
)  # fmt: skip


def write(listed: MachineList, path: Path) -> None:
    """Write the machines as CSV in the native layout, consecutive equal ones in one line.

    Raises InvalidInput for a path that cannot be written to.
    """
    rows = [
        f"{quote_cell(node.type)},{count},{node.accelerators},{quote_cell(node.rack)}\n"
        for node, count in listed.groups()
    ]
    write_output(path, "".join(["type,count,accelerators,rack\n", *rows]).encode())
