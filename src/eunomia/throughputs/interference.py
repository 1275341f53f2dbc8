"""What it costs a job that others are near: on the same accelerators, or beside it on the same machine.

Pairs on the same accelerators: as measured where they were; else by stage times where both models have some, else what
half of Gavel's measured pairs keep. Neighbours on a machine: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU
Clusters", ATC 2019, Table 4 (ResNet-50 on 2 GPUs), or the network's share of stage times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eunomia.throughputs.job_type_aliases import Kind
from eunomia.throughputs.stage_times import NETWORK, Stages, kept

KEPT_BY_HALF = 0.581  # median over 1,881 pairs of Gavel's table: speed beside the other / speed alone
WITHIN = 114.8 / 75.6  # Philly, Table 4: images/s on one server alone, and with a neighbour there (PCIe contention)
BETWEEN = 98.0 / 74.1  # on two servers alone, and with neighbours there (network contention)


class Neighbours(Protocol):
    """A source of slowdowns by neighbours."""

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return by what the step time of a gang on so many nodes is multiplied beside others on these; at least 1."""
        ...


@dataclass(frozen=True, slots=True)
class PhillyNeighbours:
    """One slowdown for all models, however many neighbours there are. Single accelerators neither cause nor feel it."""

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return the slowdown of Table 4 when a gang sits beside another gang."""
        if kind[1] == 1 or all(size == 1 for _, size in others):
            return 1.0
        return WITHIN if nodes == 1 else BETWEEN


@dataclass(frozen=True, slots=True)
class StagedNeighbours:
    """Gangs that share a machine share its network; accelerators and CPUs are each job's own."""

    stages: Stages

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return by how much the gangs' network stages overfill an iteration."""
        mine = self.stages.busy(*kind)
        if mine is None or mine[NETWORK] == 0:
            return 1.0
        theirs = [busy[NETWORK] for busy in (self.stages.busy(*other) for other in others) if busy is not None]
        return max(1.0, float(mine[NETWORK] + sum(theirs)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a job keeps of its speed beside a partner that nobody measured it with."""

    stages: Stages | None = None
    otherwise: float = KEPT_BY_HALF

    def kept(self, job_type: str, partner: str, scale_factor: int) -> float:
        """Return the share of its speed alone; it is the same for both."""
        busy = [] if self.stages is None else [self.stages.busy(each, scale_factor) for each in (job_type, partner)]
        known = [each for each in busy if each is not None]
        return kept(known) if len(known) == 2 else self.otherwise
