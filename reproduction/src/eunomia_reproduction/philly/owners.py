"""Owners of the jobs of a synthetic workload: four of Philly's virtual clusters at a time, as unevenly loaded as there.

Counted in the trace (data/traces/philly): the GPU-time of the 57,202 jobs that passed and were submitted from
2017-10-03 to 2017-11-14, by virtual cluster and size. Of jobs that did not pass the trace names few owners. Weights are
those of ASTRAEA's artifact (`experiment.tenancy`). 795a4c, with three such jobs, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.setup.tenants import PHILLY as WEIGHT
from eunomia_reproduction.philly.tries import size_class

GPU_HOURS: Mapping[str, tuple[float, ...]] = {  # by size: 1, 2 to 4, 5 to 8, more
    "0e4a51": (12705.0, 55989.0, 0.0, 0.0),
    "103959": (1525.0, 22981.0, 0.0, 0.0),
    "11cb48": (4780.0, 8893.0, 258.0, 457.0),
    "2869ce": (112.0, 11.0, 40974.0, 10253.0),
    "6214e9": (36458.0, 10099.0, 4437.0, 0.0),
    "6c71a0": (28672.0, 388.0, 26268.0, 0.0),
    "7f04ca": (5222.0, 21029.0, 46367.0, 3445.0),
    "b436b2": (3706.0, 3738.0, 3924.0, 20379.0),
    "e13805": (1642.0, 816.0, 2327.0, 57.0),
    "ed69ec": (6881.0, 0.0, 0.0, 0.0),
    "ee9e8c": (4694.0, 13036.0, 122145.0, 20095.0),
}


@dataclass(frozen=True, slots=True)
class DrawnOwners:
    """Some virtual clusters, and which part of each size's work is theirs."""

    names: tuple[str, ...]
    part: Floats  # (class, name) rows add up to 1

    @classmethod
    def drawn(cls, count: int, rng: np.random.Generator) -> DrawnOwners:
        """Draw so many of Philly's virtual clusters."""
        return cls.among(sorted(rng.choice(list(GPU_HOURS), count, replace=False).tolist()))

    @classmethod
    def among(cls, names: Sequence[str]) -> DrawnOwners:
        """Return these virtual clusters; a size that none of them runs is owned as all of their work is."""
        hours = np.array([GPU_HOURS[name] for name in names]).T
        hours = np.where(hours.sum(axis=1, keepdims=True) > 0, hours, hours.sum(axis=0))
        return cls(tuple(names), hours / hours.sum(axis=1, keepdims=True))

    @property
    def weights(self) -> dict[str, float]:
        """Return the weights by which they share a cluster."""
        return {name: WEIGHT[name] for name in self.names}

    def of(self, scale_factor: Ints | Sequence[int], rng: np.random.Generator) -> list[str]:
        """Draw the owner of each job from its size."""
        upto = np.cumsum(self.part, axis=1)[size_class(np.asarray(scale_factor))]
        place = (rng.random((len(upto), 1)) >= upto[:, :-1]).sum(axis=1)
        return [self.names[k] for k in place.tolist()]
