"""The machines of a cluster as a list, with the notes of its reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.problems import refused
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.topology import Node

NONE_HERE = "a list of machines must hold at least one machine"
TYPE_BY_MODEL = {  # names of the catalogue, where a publisher's name means one of its types
    "P100": "p100",
    "V100": "v100",
    "V100M16": "v100",
    "V100M32": "v100-32gb",
    "T4": "t4",
    "A10": "a10",
}
MACHINES = Rule(
    what="a whole number of machines, at least 0", least=0, most=MOST, whole=True, fix="write 0 for no machine"
)
MOST_MACHINES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OfType:
    """The machines of one accelerator type."""

    type: str
    machines: int
    accelerators: int
    each: str  # accelerators of a machine: 8, or 2 to 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineList:
    """The machines with accelerators, in the order of the file."""

    source: str
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()

    def groups(self) -> tuple[tuple[Node, int], ...]:
        """Return runs of equal machines: (machine, count)."""
        return tuple((node, len(list(run))) for node, run in groupby(self.nodes))

    def by_type(self) -> tuple[OfType, ...]:
        """Return how many machines and accelerators there are of each type, in order of first appearance."""
        by_type: dict[str, list[int]] = {}
        for node in self.nodes:
            by_type.setdefault(node.type, []).append(node.accelerators)
        return tuple(
            OfType(type=name, machines=len(sizes), accelerators=sum(sizes), each=_range(sizes))
            for name, sizes in by_type.items()
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "source": self.source,
            "types": [asdict(group) for group in self.by_type()],
            "machines": len(self.nodes),
            "accelerators": sum(node.accelerators for node in self.nodes),
            "racks": len({node.rack for node in self.nodes if node.rack}),
            "notes": self.notes,
        }

    def only(self, types: str) -> MachineList:
        """Return the machines of the types in a comma-separated list; "" keeps all. Raises InvalidInput."""
        if not isinstance(types, str):
            raise refused(self.source, "only", types, "must be text", "write it in quotes")
        wanted = [name.strip() for name in types.split(",")] if types else []
        types_here = list(dict.fromkeys(node.type for node in self.nodes))
        for name in wanted:
            if name not in types_here:
                raise refused(
                    self.source, "only", name, "no machine has this accelerator type", nearest(name, types_here)
                )
        kept = tuple(node for node in self.nodes if not wanted or node.type in wanted)
        left_out = len(self.nodes) - len(kept)
        note = f"{left_out:,} machines of other types than {', '.join(wanted)} are left out"
        return MachineList(source=self.source, nodes=kept, notes=(*self.notes, *[note] * bool(left_out)))


def _range(sizes: list[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(most) if least == most else f"{least} to {most}"


def catalogue_names(models: Iterable[str]) -> tuple[str, ...]:
    """Return accelerator types as the catalogue spells them, unknown ones in lower case."""
    return tuple(TYPE_BY_MODEL.get(model, model.lower()) for model in models)


def machines(
    sheet: InputTable,
    types: Iterable[str],
    count: Ints,
    accelerators: Ints,
    racks: Iterable[str],
    notes: Iterable[str] = (),
) -> MachineList:
    """Return `count` machines for each row, (row,); machines without accelerators are left out and counted in a note.

    Raises InvalidInput with everything that is wrong with the sheet.
    """
    sheet.raise_if_any()
    if count.sum() > MOST_MACHINES:
        raise refused(
            sheet.file, None, int(count.sum()), f"holds more than {MOST_MACHINES:,} machines", "describe fewer"
        )
    rows = zip(types, count.tolist(), accelerators.tolist(), racks, strict=True)
    nodes = tuple(
        node
        for type, copies, size, rack in rows
        if size
        for node in (Node(type=type, accelerators=size, rack=rack),) * copies
    )
    bare = int(count[accelerators == 0].sum())
    bare_note = [f"{bare:,} machines have no accelerator and are left out"] * bool(bare)
    if not nodes:
        raise refused(sheet.file, None, None, "no machine here has an accelerator", "name another file")
    return MachineList(source=sheet.file, nodes=nodes, notes=(*notes, *bare_note))


def named(sheet: InputTable, name: str, where: Bools) -> tuple[str, ...]:
    """Return a column of types, which may be empty only outside `where`."""
    values = sheet.text(name)
    sheet.refuse(name, sheet.empty(name) & where & (name in sheet.columns), "may not be empty", "name the type")
    return values


def repeated(rows: int, value: int = 1) -> Ints:
    """Return (row,): the same whole number in each row."""
    return np.full(rows, value, dtype=np.int64)
