"""Throughputs on a cluster's layout, with models of placement and of sharing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.speeds import Speeds, consolidated_throughput, spread_throughput
from eunomia.throughputs.interference import Pairs
from eunomia.throughputs.job_type_facts import Kind
from eunomia.throughputs.measured_table import MeasuredThroughputs
from eunomia.throughputs.placement import Placement
from eunomia.throughputs.placement_level import ClusterUnits, PlacementSpan
from eunomia.throughputs.providers import Uniform
from eunomia.throughputs.throughput_table import Throughputs


@dataclass(frozen=True, slots=True)
class TableSpread:
    """Slowdowns from the source's rates off one machine: Gavel's unconsolidated rows, or the analytic model.

    A gang that no machine holds has these rates in its best place already.
    """

    speeds: Speeds
    name: str = "throughputs"

    def slowdown(
        self, kind: Kind, type: int, place: PlacementSpan, best: PlacementSpan, partner: str | None = None
    ) -> float:
        """Return rate on one machine / rate on several; 1 where unknown, or where one is too small.

        A pair that the source does not know is slowed as the gang alone is.
        """
        if place.nodes <= 1 or best.nodes > 1:
            return 1.0
        rate = float(spread_throughput(self.speeds, *kind, partner)[type])
        if rate > 0:
            return max(float(consolidated_throughput(self.speeds, *kind, partner)[type]) / rate, 1.0)
        return 1.0 if partner is None else self.slowdown(kind, type, place, best)


@dataclass(frozen=True, slots=True)
class PlacedThroughputs:
    """Throughputs on a cluster. Without models of placement and of pairs they are the source's own."""

    speeds: Speeds
    ground: ClusterUnits
    placement: Placement | None = None
    pairs: Pairs | None = None
    _slowdowns: dict[tuple[Kind, int, PlacementSpan, str | None], float] = field(
        default_factory=dict, init=False, repr=False
    )
    _best: dict[tuple[Kind, str | None], Floats] = field(default_factory=dict, init=False, repr=False)

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        return self.speeds.types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the gang in its best place of the empty cluster, (type,)."""
        return self._in_best_place(job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first beside the second in their best place, (type,): measured, else by `pairs`."""
        return self._in_best_place(job_type, scale_factor, partner)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s on several machines, (type,): the fewest where none holds the gang, else two."""
        if self.placement is None:
            return self._stated(spread_throughput, job_type, scale_factor, partner)
        places = [self.ground.apart(type, scale_factor) for type in range(len(self.types))]
        slowdown = [self.slowdown((job_type, scale_factor), type, place, partner) for type, place in enumerate(places)]
        return np.asarray(self._in_best_place(job_type, scale_factor, partner) / np.array(slowdown))

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the slowdown at each PlacementLevel, (level,), on the gang's fastest type."""
        kind, type = (job_type, scale_factor), int(np.argmax(self.solo_throughput(job_type, scale_factor)))
        nodes = max(self.ground.best(type, scale_factor).nodes, 2)
        places = (
            PlacementSpan(),
            PlacementSpan(slots=2),
            PlacementSpan(nodes, 1, nodes),
            PlacementSpan(nodes, 2, nodes),
        )
        return np.maximum.accumulate([self.slowdown(kind, type, place) for place in places])

    def slowdown(self, kind: Kind, type: int, place: PlacementSpan, partner: str | None = None) -> float:
        """Return the factor on a gang's step time at a place, relative to the best place of the empty cluster."""
        if self.placement is None or kind[1] == 1:
            return 1.0
        key = kind, type, place, partner
        factor = self._slowdowns.get(key)
        if factor is None:
            best = self.ground.best(type, kind[1])
            factor = self._slowdowns[key] = self.placement.slowdown(kind, type, place, best, partner)
        return factor

    def _in_best_place(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        if scale_factor == 1 or not isinstance(self.placement, TableSpread):
            return self._stated(consolidated_throughput, job_type, scale_factor, partner)
        key = (job_type, scale_factor), partner
        rates = self._best.get(key)
        if rates is None:
            together, apart = (
                self._stated(rates_of, job_type, scale_factor, partner)
                for rates_of in (consolidated_throughput, spread_throughput)
            )
            nodes = np.array([self.ground.best(type, scale_factor).nodes for type in range(len(self.types))])
            rates = self._best[key] = np.where(nodes > 1, apart, together)
        return rates

    def _stated(self, rates_of: Callable[..., Floats], job_type: str, scale_factor: int, partner: str | None) -> Floats:
        """Return rates of the source, on one machine or spread; of a pair that it does not know, modelled ones."""
        measured = rates_of(self.speeds, job_type, scale_factor, partner)
        if partner is None or self.pairs is None:
            return measured
        mine, other = (rates_of(self.speeds, each, scale_factor) for each in (job_type, partner))
        modelled = np.where(other > 0, mine * self.pairs.kept(job_type, partner, scale_factor), 0.0)
        return np.where(self._is_measured(job_type, partner), measured, modelled)

    def _is_measured(self, job_type: str, partner: str) -> Bools:
        """Return (type,): True where the source's rate of the pair counts, False where it must be modelled."""
        match self.speeds:
            case Throughputs(source=MeasuredThroughputs() as measured):
                return measured.paired(job_type, partner)
            case Throughputs(source=Uniform()):
                return np.zeros(len(self.types), dtype=bool)
        return np.ones(len(self.types), dtype=bool)
