"""Gandiva's packing as it was published beside Gavel: pairs drawn from the published random stream, and kept too long.

A pair is kept while what its two jobs keep of their speeds, summed up over all types, is at least 1: with three types
that is a third of what would pay. It is split where there is a type on which it does not fit. Two jobs are drawn at a
time, as often as there are jobs to draw from; two of different sizes are put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Bools, Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.gandiva import Gandiva

KEPT = 1.0  # least sum over types and both jobs of the parts of their speeds


@dataclass(frozen=True)
class PublishedGandiva:
    """Equal time, in pairs where the cluster is too small; one object serves one run, since it keeps drawing."""

    seed: int = 0
    _random: Random = field(init=False, repr=False, compare=False)

    info: ClassVar[PolicyInfo] = Gandiva.info

    def __post_init__(self) -> None:
        object.__setattr__(self, "_random", Random(self.seed))

    def decide(self, view: View) -> Shares:
        """Return an equal share for each combination; memory holds the first row of each pair, for both of it."""
        pairs = _kept(view)
        if view.scale_factor.sum() > view.capacity.sum():
            shown = pairs = pairs + self._drawn(view, pairs)
        else:
            shown = []
        paired = {m for pair in shown for m in pair}
        alone = [m for m in range(view.jobs) if m not in paired]
        first = np.array(alone + [m for m, _ in shown], dtype=np.int64)
        second = np.array([-1] * len(alone) + [n for _, n in shown], dtype=np.int64)
        share = view.capacity / len(first) / view.scale_factor[first][:, None]
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        x = np.where(_runs(view, first, second), share, 0.0)
        row, kind = np.nonzero(x)
        order = np.argsort(first[row], kind="stable")
        row, kind = row[order], kind[order]
        pair = np.full(view.jobs, -1.0)
        for number, (m, n) in enumerate(pairs):
            pair[[m, n]] = number
        return Shares(x[row, kind], Rows(first[row], kind, partner=second[row]), memory={"pair": pair})

    def _drawn(self, view: View, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return new pairs of the jobs that are in none."""
        taken = {m for pair in pairs for m in pair}
        free, drawn = [m for m in range(view.jobs) if m not in taken], list[tuple[int, int]]()
        for _ in range(len(free)):
            if len(free) < 2:
                break
            m, n = self._random.sample(free, 2)
            if view.scale_factor[m] != view.scale_factor[n]:
                continue
            free.remove(m)
            free.remove(n)
            drawn.append((min(m, n), max(m, n)))
        return drawn


def _kept(view: View) -> list[tuple[int, int]]:
    """Return the pairs of the last answer without those that are split now or have lost one."""
    rows: dict[float, list[int]] = {}
    for m, number in enumerate(view.memory["pair"].tolist()):
        if number >= 0:
            rows.setdefault(number, []).append(m)
    return [(two[0], two[1]) for two in rows.values() if len(two) == 2 and _together(view, two[0], two[1]) >= KEPT]


def _together(view: View, m: int, n: int) -> float:
    """Return what two jobs keep of their speeds, summed up over the types; 0 where a type has no room for them."""
    mine, other = (
        view.packed_throughput[view.job_class[m], view.job_class[n]],
        view.packed_throughput[view.job_class[n], view.job_class[m]],
    )
    if (mine <= 0).any() or (other <= 0).any():
        return 0.0
    return float((mine / view.throughput[m] + other / view.throughput[n]).sum())


def _runs(view: View, first: Ints, second: Ints) -> Bools:
    """Return (combination, type) where it can run."""
    can, both = view.throughput[first] > 0, second >= 0
    k, other = view.job_class[first[both]], view.job_class[second[both]]
    can[both] &= (
        (view.throughput[second[both]] > 0)
        & (view.packed_throughput[k, other] > 0)
        & (view.packed_throughput[other, k] > 0)
    )
    return can
