"""The placement `yarn` of Tiresias' simulator under its fifo and fjf, to the letter.

A gang that fits on one machine gets the first machine with enough free accelerators; a wider one the first machines
that are empty, and for its rest the first that has enough. One that cannot be seated so waits: fifo ends the pass with
it, fjf (first job that fits) passes it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo
from eunomia.model.topology import Topology
from eunomia.model.view import View


@dataclass(frozen=True, slots=True)
class FirstMachines:
    """Jobs by submission, each on the first machines that hold it closely."""

    skip: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="tiresias_yarn",
        answer_type="grants",
        objective="as in Tiresias' simulator",
        technique="greedy",
        paper="Gu et al., Tiresias, NSDI 2019 (its simulator)",
        needs=frozenset({"scale_factor", "on_type", "topology", "holder"}),
        mechanism=ENDLESS,
    )

    def decide(self, view: View) -> Grants:
        """Return the jobs that start now, and where."""
        free, started, seats = view.holder == -1, [], []
        for m in np.flatnonzero(view.on_type < 0).tolist():
            found = _first_machines(view.topology, free, int(view.scale_factor[m]))
            if found is not None:
                free[found] = False
                started.append(m)
                seats.append(found)
            elif not self.skip:
                break
        job = np.array(started, dtype=np.int64)
        device = np.concatenate(seats) if seats else NO_INTS
        row, until = np.repeat(np.arange(len(job)), view.scale_factor[job]), np.full(len(job), np.nan)
        return Grants(Rows(job, np.zeros_like(job)), row, device, until)


def _first_machines(topology: Topology, free: Bools, size: int) -> Ints | None:
    """Return devices for a gang, (size,), or None; machines are equally large."""
    count = np.bincount(topology.node[free], minlength=topology.nodes)
    whole, rest = divmod(size, int(topology.size[0]))
    nodes = np.flatnonzero(count == topology.size)[:whole]
    if len(nodes) < whole:
        return None
    if rest:
        last = np.setdiff1d(np.flatnonzero(count >= rest), nodes)[:1]
        if len(last) == 0:
            return None
        nodes = np.append(nodes, last)
    devices = [np.flatnonzero(free & (topology.node == node)) for node in nodes.tolist()]
    return np.concatenate(devices)[:size]
