"""Slowdowns by other jobs: on the same accelerators, or on the same machine.

Pairs on the same accelerators: as measured; else by stage times if both models have some; else the median of Gavel's
measured pairs. Neighbours on a machine: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU
Clusters", ATC 2019, Table 4 (ResNet-50 on 2 GPUs), or the network's share of stage times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eunomia.throughputs.job_type_aliases import Kind
from eunomia.throughputs.stage_times import NETWORK, Stages, kept

MEDIAN_KEPT = 0.581  # of 1,881 pairs of Gavel's table: speed beside the other / speed alone
WITHIN = 114.8 / 75.6  # Philly, Table 4: images/s on one server alone, and with a neighbour there (PCIe contention)
BETWEEN = 98.0 / 74.1  # on two servers alone, and with neighbours there (network contention)


class Neighbours(Protocol):
    """A source of slowdowns by neighbours."""

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return the factor on the step time of a gang on `nodes` nodes with these other gangs there; at least 1."""
        ...


@dataclass(frozen=True, slots=True)
class PhillyNeighbours:
    """One slowdown for all models and numbers of neighbours; jobs of 1 accelerator neither cause nor have it."""

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return the slowdown of Table 4 if another gang of several accelerators is on the same machines."""
        if kind[1] == 1 or all(size == 1 for _, size in others):
            return 1.0
        return WITHIN if nodes == 1 else BETWEEN


@dataclass(frozen=True, slots=True)
class StagedNeighbours:
    """Gangs on one machine share its network; accelerators and CPUs are exclusive."""

    stages: Stages

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return the sum of the gangs' network stages over an iteration, at least 1."""
        own = self.stages.busy(*kind)
        if own is None or own[NETWORK] == 0:
            return 1.0
        others_busy = [busy[NETWORK] for busy in (self.stages.busy(*other) for other in others) if busy is not None]
        return max(1.0, float(own[NETWORK] + sum(others_busy)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Modelled speed of a job beside a partner, for pairs that were not measured."""

    stages: Stages | None = None
    otherwise: float = MEDIAN_KEPT

    def kept(self, job_type: str, partner: str, scale_factor: int) -> float:
        """Return the fraction of the speed alone, equal for both jobs."""
        busy = [] if self.stages is None else [self.stages.busy(each, scale_factor) for each in (job_type, partner)]
        known = [each for each in busy if each is not None]
        return kept(known) if len(known) == 2 else self.otherwise
