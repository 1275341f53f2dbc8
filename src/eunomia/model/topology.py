"""The machines and accelerators of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.value_equality import ValueEqual


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine: accelerators of one type, in one rack."""

    type: str
    accelerators: int
    rack: str = ""
    cpus: float = 0.0  # 0 = not declared
    memory_gib: float = 0.0  # 0 = not declared

    def __post_init__(self) -> None:
        if self.accelerators < 1:
            raise ValueError(f"a node of type {self.type!r} has {self.accelerators} accelerators; it needs at least 1")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topology(ValueEqual):
    """All accelerators, up or down, with their machines; the core's state records which are down.

    The accelerators of one node are adjacent: node n has rows first[n] … first[n] + size[n] - 1.
    """

    types: tuple[str, ...]
    type: Ints  # (device,) row of `types`
    node: Ints  # (device,)
    node_type: Ints  # (node,)
    first: Ints  # (node,) its first device
    size: Ints  # (node,) accelerators
    rack: tuple[str, ...]  # (node,)
    cpus_and_memory: Floats | None = None  # (node, 2) CPUs and GiB, 0 = not declared; None: of no node
    accelerators_per_slot: int | tuple[int, ...] = 0  # joined by the fastest link; of all types or (type,); 0 = all

    @classmethod
    def of(cls, nodes: Sequence[Node], accelerators_per_slot: int | Mapping[str, int] = 0) -> Topology:
        """Build the topology of nodes in the given order; types are in order of first appearance.

        accelerators_per_slot: of the machines of all types, or by type; a type left out has 0, whole machines.
        """
        if not nodes:
            raise ValueError("a cluster needs at least one node")
        types = tuple(dict.fromkeys(node.type for node in nodes))
        row = {name: j for j, name in enumerate(types)}
        by_type = accelerators_per_slot
        per_slot = tuple(by_type.get(name, 0) for name in types) if isinstance(by_type, Mapping) else by_type
        size = np.array([node.accelerators for node in nodes], dtype=np.int64)
        node_type = np.array([row[node.type] for node in nodes], dtype=np.int64)
        return cls(
            types=types,
            type=np.repeat(node_type, size),
            node=np.repeat(np.arange(len(nodes)), size),
            node_type=node_type,
            first=np.concatenate(([0], np.cumsum(size)[:-1])).astype(np.int64),
            size=size,
            rack=tuple(node.rack for node in nodes),
            cpus_and_memory=np.array([(node.cpus, node.memory_gib) for node in nodes], dtype=float),
            accelerators_per_slot=per_slot,
        )

    @property
    def devices(self) -> int:
        return len(self.type)

    @property
    def nodes(self) -> int:
        return len(self.size)

    def slots(self) -> Ints:
        """Return the slot of each device, (device,), numbered through the cluster."""
        if self.accelerators_per_slot == 0:
            return self.node
        within = (np.arange(self.devices) - self.first[self.node]) // self.slot_sizes()[self.node]
        begins = (np.diff(self.node, prepend=-1) != 0) | (np.diff(within, prepend=-1) != 0)
        return np.asarray(np.cumsum(begins) - 1)

    def slot_sizes(self) -> Ints:
        """Return the accelerators of a slot of each node, (node,); a machine's own where it is one slot."""
        declared = np.broadcast_to(np.asarray(self.accelerators_per_slot, dtype=np.int64), len(self.types))
        of_node = declared[self.node_type]
        return np.where(of_node > 0, of_node, self.size)

    def room(self, up: Bools) -> Floats:
        """CPUs and GiB of memory of the nodes that are up, shape (2,); inf where a node does not declare it."""
        if self.cpus_and_memory is None:
            return np.full(2, np.inf)
        declared = (self.cpus_and_memory > 0).all(axis=0)
        return np.where(declared, self.cpus_and_memory[up].sum(axis=0), np.inf)

    def capacity(self) -> Floats:
        """Accelerators of each type when nothing is lost, shape (type,)."""
        return np.bincount(self.type, minlength=len(self.types)).astype(np.float64)
