"""Slots: the accelerators of a machine that its fastest link joins."""

from __future__ import annotations

from eunomia.model.topology import Node, Topology


def test_slots_are_numbered_through_the_cluster_and_end_with_their_machine() -> None:
    nodes = [Node(type="gpu", accelerators=size) for size in (4, 3, 1)]
    assert Topology.of(nodes, accelerators_per_slot=2).slots().tolist() == [0, 0, 1, 1, 2, 2, 3, 4]
    assert Topology.of(nodes).slots().tolist() == [0] * 4 + [1] * 3 + [2]
