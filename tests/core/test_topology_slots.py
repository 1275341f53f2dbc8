"""Slots: the accelerators of a machine that its fastest link joins."""

from __future__ import annotations

from eunomia.model.topology import Node, Topology
from eunomia.throughputs.placement_level import ClusterUnits


def test_slots_are_numbered_through_the_cluster_and_end_with_their_machine() -> None:
    nodes = [Node(type="gpu", accelerators=size) for size in (4, 3, 1)]
    assert Topology.of(nodes, accelerators_per_slot=2).slots().tolist() == [0, 0, 1, 1, 2, 2, 3, 4]
    assert Topology.of(nodes).slots().tolist() == [0] * 4 + [1] * 3 + [2]


def test_slots_may_differ_by_type_and_a_type_left_out_has_whole_machines() -> None:
    nodes = [Node(type=name, accelerators=4) for name in ("a100", "v100", "k80")]
    found = Topology.of(nodes, accelerators_per_slot={"v100": 2, "k80": 1})
    assert found.slots().tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6]
    assert found.slot_sizes().tolist() == [4, 2, 1]
    units = ClusterUnits(found)
    assert [units.best(j, 2).slots for j in range(3)] == [1, 1, 2]
    assert [units.place(seats).slots for seats in ((0, 3), (4, 5), (5, 6), (8, 9))] == [1, 1, 2, 2]
