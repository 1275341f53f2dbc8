"""Machines with their names, as cluster managers list them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eunomia.inputs.problems import refused
from eunomia.model.topology import Node
from eunomia.throughputs.catalogue import recognise
from eunomia.traces.machine_lists.machines import MOST_MACHINES, MachineList

UNNAMED = "gpu"  # type of accelerators whose type is not said


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNode:
    """One machine. `type` is as the cluster manager names it, "" if it does not."""

    name: str
    type: str
    accelerators: int
    cpus: float = 0.0
    memory_gib: float = 0.0
    note: str = ""  # why it may not be in use: its state


def type_name(device_name: str) -> str:
    """Return the catalogue's name of a device, else its own in lower case; `gpu` for none."""
    found = recognise(device_name) if device_name else None
    return found.name if found is not None else device_name.strip().casefold() or UNNAMED


def machine_list(path: Path, nodes: Sequence[NamedNode]) -> MachineList:
    """Return the machines with accelerators, equal ones together. Raises InvalidInput if there is none."""
    kept = [node for node in nodes if node.accelerators]
    if not kept:
        raise refused(str(path), None, None, "no machine here has an accelerator", "name another file")
    if len(kept) > MOST_MACHINES:
        raise refused(str(path), None, len(kept), f"holds more than {MOST_MACHINES:,} machines", "describe fewer")
    return MachineList(source=str(path), nodes=as_nodes(kept), notes=tuple(_notes(nodes)))


def as_nodes(nodes: Iterable[NamedNode], unnamed: str = UNNAMED) -> tuple[Node, ...]:
    """Return the machines of the simulation, sorted so that equal ones are together."""
    plain = (
        Node(
            type=type_name(node.type or unnamed),
            accelerators=node.accelerators,
            cpus=node.cpus,
            memory_gib=node.memory_gib,
        )
        for node in nodes
    )
    return tuple(sorted(plain, key=lambda node: (node.type, -node.accelerators, node.cpus, node.memory_gib)))


def distinct(nodes: Iterable[NamedNode]) -> tuple[NamedNode, ...]:
    """Return one machine for each name: lists name a machine once for each partition."""
    by_name: dict[str, NamedNode] = {}
    for node in nodes:
        earlier = by_name.setdefault(node.name, node)
        if node.accelerators > earlier.accelerators:
            by_name[node.name] = replace(node, note=earlier.note or node.note)
    return tuple(by_name.values())


def _notes(nodes: Sequence[NamedNode]) -> Iterable[str]:
    """Return notes on machines without accelerators, without a type, and out of use."""
    counts = {
        "machines have no accelerator and are left out": sum(not node.accelerators for node in nodes),
        f"machines do not name their accelerator type: it is {UNNAMED} here": sum(
            bool(node.accelerators) and not node.type for node in nodes
        ),
        "machines are down, drained or not ready; they count as in use": sum(
            bool(node.accelerators and node.note) for node in nodes
        ),
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]
