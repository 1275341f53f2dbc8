"""Machines that are lost and return: one by one, or a whole rack with its switch.

Times between losses and times to repair are exponential, or repairs take a fixed time. A machine is back when
no cause of its outage lasts: its own fault and its rack's may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.rounding import drawn
from eunomia.model.topology import Topology

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often a unit in service is lost, and how long it stays out of service."""

    per_hour: float = 0.0
    repair_s: float = HOUR_S
    fixed: bool = True  # repairs take repair_s; else it is their mean

    def until_loss(self, rng: np.random.Generator) -> float:
        """Return seconds of service until the next loss; the rate is above 0."""
        return float(drawn(rng.exponential(HOUR_S / self.per_hour)))

    def until_repair(self, rng: np.random.Generator) -> float:
        """Return seconds out of service."""
        return self.repair_s if self.fixed else float(drawn(rng.exponential(self.repair_s)))


@dataclass(frozen=True, slots=True)
class Fault:
    """A machine or a rack is lost, or returns."""

    unit: int  # row: machines first, then racks
    down: bool


class Outages:
    """All the units of a cluster that can be lost, each with a random stream of its own."""

    def __init__(self, topology: Topology, node: Rate, rack: Rate, seed: np.random.SeedSequence):
        names = dict.fromkeys(topology.rack)
        members = [[n for n, mine in enumerate(topology.rack) if mine == name] for name in names]
        self._nodes_of = [[n] for n in range(topology.nodes)] + (members if rack.per_hour else [])
        self._rates = [node] * topology.nodes + [rack] * len(members)
        self._rng = [np.random.default_rng(each) for each in seed.spawn(len(self._nodes_of))]
        self._faults = [0] * topology.nodes  # (node,) causes of its outage

    @property
    def away(self) -> int:
        """Machines that are out of service now."""
        return sum(faults > 0 for faults in self._faults)

    def first(self) -> list[tuple[float, Fault]]:
        """Return the first loss of each unit that can be lost."""
        units = [unit for unit in range(len(self._nodes_of)) if self._rates[unit].per_hour > 0]
        return [(self._rates[unit].until_loss(self._rng[unit]), Fault(unit, True)) for unit in units]

    def take_down(self, nodes: Sequence[int]) -> list[int]:
        """Take machines out of service until `bring_up`; return those that were in service."""
        gone = [node for node in nodes if self._faults[node] == 0]
        for node in nodes:
            self._faults[node] += 1
        return gone

    def bring_up(self, nodes: Sequence[int]) -> list[int]:
        """End such an outage; return the machines that return, having no other cause to stay out of service."""
        for node in nodes:
            self._faults[node] -= 1
        return [node for node in nodes if self._faults[node] == 0]

    def happen(self, at: float, fault: Fault) -> tuple[list[int], float, Fault]:
        """Begin or end a fault; return the machines that are lost or return, and the unit's next fault."""
        rate, rng, changed = self._rates[fault.unit], self._rng[fault.unit], []
        for node in self._nodes_of[fault.unit]:
            before = self._faults[node]
            self._faults[node] += 1 if fault.down else -1
            if before == 0 or self._faults[node] == 0:
                changed.append(node)
        wait = rate.until_repair(rng) if fault.down else rate.until_loss(rng)
        return changed, at + wait, Fault(fault.unit, not fault.down)
