"""Best-placed gangs first.

    while a gang fits:  start the waiting job m that needs the fewest nodes over its least,
                        argmin_m  nodes(m, now) / ⌈ z[m] / largest node ⌉,  ties by submission

on the type it is fastest on among those where it is best placed. No job is stopped. z scale factor (job,). With
`shrink=true` waiting jobs that have smaller sizes run on the widest that fits, once no whole gang does.

Example (examples/two_jobs.json). Text takes two v100s of the machine of three. That leaves one v100 on each of two
machines: image could be there on two machines, which is twice the least, or on one machine of k80s, which is the least.
It takes the k80s, though it is four times slower there.

Reference: the greedy baseline called Gandiva in K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling",
NSDI 2020, section 8: highest placement preference first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, GrantsBuilder, shapes_of


@dataclass(frozen=True)
class Locality:
    """Jobs with the best placement run first.

    Use it when gangs slow down a lot on several machines, and a job must not be stopped once it runs.

    The worst-off is a wide gang: seats on few machines are seldom free for it, and whatever comes free is taken by
    smaller gangs that fit it well. Nothing is kept for it.
    """

    shrink: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="locality",
        answer_type="grants",
        objective="gangs on as few nodes as possible",
        technique="greedy placement",
        paper="Mahajan et al., Themis, NSDI 2020 (its Gandiva baseline)",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True),
        needs=frozenset({"scale_factor", "throughput", "on_type", "topology", "holder"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        also_needs(self, {"shapes"} if self.shrink else ())

    def decide(self, view: View) -> Grants:
        """Return seats for waiting gangs, the best placed first, until none fits."""
        free, given = FreeCapacity(view.topology, view.holder == FREE), GrantsBuilder()
        waiting, size = np.flatnonzero(view.on_type < 0), view.scale_factor.copy()
        while len(waiting):
            m, j = self._best(view, free, waiting, size)
            if m >= 0:
                found = free.place(j, int(size[m]))
                assert found is not None  # `_best` counted the free seats
                given.give(m, j, found)
                waiting = waiting[waiting != m]
            elif self.shrink and free.free.any():
                size = np.where(view.shapes < size[:, None], view.shapes, 0).max(axis=1)
                waiting = waiting[size[waiting] > 0]
            else:
                break
        job = np.array(given.jobs, dtype=np.int64)
        return given.build(shape=shapes_of(view, job, given.sizes()))

    def _best(self, view: View, free: FreeCapacity, waiting: Ints, size_of: Ints) -> tuple[int, int]:
        """Return the best-placed job and its type, or (-1, -1). Jobs of one size and type are placed alike."""
        largest = np.zeros(len(view.types), dtype=np.int64)
        np.maximum.at(largest, view.topology.node_type, view.topology.size)
        best, choice = (np.inf, np.inf, -np.inf), (-1, -1)
        sizes = size_of[waiting]
        for size in np.unique(sizes).tolist():
            if size > free.free.max():
                break
            for j in range(len(view.types)):
                can = waiting[(sizes == size) & (view.throughput[waiting, j] > 0)]
                nodes = free.spread(j, size) if len(can) else 0
                if nodes:
                    worse = nodes / -(-size // int(largest[j]))
                    rank = (worse, float(can[0]), -float(view.throughput[can[0], j]))
                    if rank < best:
                        best, choice = rank, (int(can[0]), j)
        return choice
