"""Slowdowns by other jobs: on the same accelerators, or on the same machine.

Pairs on the same accelerators: as measured; else by stage times if both models have some; else the median of Gavel's
measured pairs. Neighbours on a machine: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU
Clusters", ATC 2019, Table 4 (ResNet-50 on 2 GPUs), or the network's share of stage times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eunomia.model.speeds import Speeds
from eunomia.throughputs.job_type_facts import Kind
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
class PairNeighbours:
    """Jobs on one machine slow each other as measured pairs on one accelerator do; slowdowns of several add up."""

    speeds: Speeds

    def extra(self, job_type: str, other: str) -> float:
        """Return the slowdown of the first beside the second, less 1: the mean over accelerator types.

        A pair without a measurement, or that does not fit on one accelerator, has the median of measured ones.
        """
        alone = self.speeds.solo_throughput(job_type, 1)
        beside = self.speeds.packed_throughput(job_type, other, 1)
        both = (alone > 0) & (beside > 0)
        kept = float((beside[both] / alone[both]).mean()) if both.any() else MEDIAN_KEPT
        return max(1.0 / kept - 1.0, 0.0)

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return 1 + Σ of the others' parts."""
        return 1.0 + sum(self.extra(kind[0], other) for other, _ in others)


LOADS: dict[str, tuple[float, float, float, float]] = {  # of one worker: CPU and cache, disk, network, PCIe
    "resnet": (0.25, 0.10, 0.05, 0.50),
    "resnext": (0.70, 0.10, 0.25, 0.75),
    "vgg16": (0.30, 0.15, 0.90, 0.40),
    "alexnet": (0.50, 0.90, 0.45, 0.30),
    "ctc": (0.95, 0.30, 0.20, 0.60),
    "seq2seq": (0.35, 0.05, 0.45, 0.25),
    "wlm": (0.30, 0.05, 0.50, 0.20),
    "dssm": (0.60, 0.40, 0.50, 0.35),
}
SERVER_LOADS = (0.15, 0.0, 0.25, 0.0)  # of one parameter server
SENSITIVITY = (0.68, 0.68, 0.68, 0.68)  # by how much tasks slow per load above 1


@dataclass(frozen=True, slots=True)
class SyntheticNeighbours:
    """Eight types of jobs share a machine's CPU and cache, disk, network and PCIe.

    Where the loads of a resource add up to more than 1, the jobs that use it slow by 1 + s (load − 1). Loads are set so
    that pairs of different types slow as Harmony's section 2 reports: they lose a third of their speed on average,
    ResNeXt beside CTC takes 2.04 times as long, and ResNet beside Seq2Seq is not slowed (Y. Bao et al., INFOCOM 2019).
    That is no bound: two AlexNets take 2.36 times as long, two CTCs 2.06, and three jobs longer than two. Other types
    count as ResNet.
    """

    def slowdown(self, kind: Kind, nodes: int, others: Sequence[Kind]) -> float:
        """Return the product over the resources that the job uses."""
        own, factor = LOADS.get(kind[0], LOADS["resnet"]), 1.0
        for q in range(len(SENSITIVITY)):
            load = (
                own[q]
                + SERVER_LOADS[q]
                + sum(LOADS.get(name, LOADS["resnet"])[q] + SERVER_LOADS[q] for name, _ in others)
            )
            factor *= 1.0 + SENSITIVITY[q] * max(load - 1.0, 0.0) * (own[q] > 0)
        return factor


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
