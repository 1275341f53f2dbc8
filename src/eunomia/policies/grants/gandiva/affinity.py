"""Where units run: they stay, go to machines of their like, move closer together, and grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Bools, Ints
from eunomia.model.topology import Topology
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import LOST, GrantsBuilder, devices_by_job
from eunomia.policies.grants.gandiva.time_slicing import Slicing


class FreeMachines(FreeCapacity):
    """Free accelerators, and the sizes of the gangs that each machine holds."""

    def __init__(self, topology: Topology, free: Bools):
        super().__init__(topology, free)
        self._size = np.zeros(topology.nodes, dtype=np.int64)  # (node,) of all gangs there, 0 = none, -1 = of several

    def settle(self, devices: Ints, size: int) -> None:
        """Take devices for a gang of that size."""
        self.take(devices)
        node, sizes = self.topology.node[devices], self._size
        sizes[node] = np.where((sizes[node] == 0) | (sizes[node] == size), size, -1)

    def place_by_affinity(self, type: int, size: int) -> Ints:
        """Return devices for a gang for which there are enough: one machine by affinity, else the emptiest ones."""
        mine, free = self.topology.node_type == type, self.free_by_node
        nodes = np.flatnonzero(mine & (free >= size))
        if len(nodes):
            # a machine of gangs of this size and no others, an empty one, any other
            affine = np.where(self._size[nodes] == size, 0, np.where(self._size[nodes] == 0, 1, 2))
            nodes = nodes[np.lexsort((nodes, -free[nodes], affine))][:1]
        else:
            nodes = self.emptiest(np.flatnonzero(mine & (free > 0)))
        return self.free_on(nodes, size)


class SlicePlacement:
    """The devices of the units that run, found step by step: `place`, `move`, `grow`."""

    def __init__(self, view: View, slicing: Slicing):
        self.view, self.slicing = view, slicing
        units = slicing.units
        device, first = devices_by_job(view.holder, np.ones(view.jobs, dtype=bool))
        mine = np.split(device, first[1:-1])
        pairs = zip(units.first.tolist(), units.second.tolist(), strict=True)
        self.held = [mine[m] if len(mine[m]) or n < 0 else mine[n] for m, n in pairs]  # (unit,)
        self.size = view.scale_factor[units.first].tolist()
        runs = slicing.type >= 0
        same = slicing.type == np.where(slicing.runs, view.on_type[units.first], -1)
        self.stays = [u for u in slicing.order.tolist() if runs[u] and same[u]]
        self.comes = [u for u in slicing.order.tolist() if runs[u] and not same[u]]
        self.given: dict[int, tuple[int, Ints]] = {}  # unit -> shape, devices
        self._shrink()
        self.machines = FreeMachines(view.topology, view.holder != LOST)
        for u in self.stays:
            self.machines.settle(self.held[u], self.size[u])

    def _shrink(self) -> None:
        """Let grown gangs return to the shape that was asked for where others need their accelerators."""
        types = self.slicing.type
        for j in range(len(self.view.types)):
            taken = sum(len(self.held[u]) for u in self.stays if types[u] == j)
            taken += sum(self.size[u] for u in self.comes if types[u] == j)
            if taken > self.view.capacity[j] or self.slicing.is_contended:
                grown = [u for u in self.stays if types[u] == j and len(self.held[u]) > self.size[u]]
                self.stays = [u for u in self.stays if u not in grown]
                self.comes = grown + self.comes

    def place(self) -> None:
        """Place the units that come: on what they hold, if that is free now and of the right type, else by affinity."""
        later = []
        for u in self.comes:
            here = self.held[u][: self.size[u]]
            right = len(here) == self.size[u] and self.view.topology.type[here[0]] == self.slicing.type[u]
            if right and self.machines.is_free(here):
                self.machines.settle(here, self.size[u])
                self.given[u] = (0, here)
            else:
                later.append(u)
        for u in later:
            found = self.machines.place_by_affinity(int(self.slicing.type[u]), self.size[u])
            self.machines.settle(found, self.size[u])
            self.given[u] = (0, found)

    def move(self, most: int) -> None:
        """Move a few gangs that stay, as asked, to fewer machines."""
        node = self.view.topology.node
        for u in self.stays:
            size, type, here = self.size[u], int(self.slicing.type[u]), self.held[u]
            now = len(set(node[here].tolist())) if most else 1
            if now > 1 and len(here) == size:
                self.machines.give_back(here)
                if 0 < self.machines.spread(type, size) < now:
                    here, most = self.machines.place_by_affinity(type, size), most - 1
                    self.given[u] = (0, here)
                self.machines.settle(here, size)

    def grow(self) -> None:
        """Give free accelerators to gangs that are faster in a wider shape, if no job waits."""
        view, units = self.view, self.slicing.units
        for u in self.slicing.order.tolist() if not self.slicing.is_contended else []:
            m, type = int(units.first[u]), int(self.slicing.type[u])
            here = self.given[u][1] if u in self.given else self.held[u]
            sizes, speed = view.shapes[m], view.shape_throughput[m, :, type]
            if units.second[u] >= 0 or sizes.max() <= len(here):
                continue
            free = np.flatnonzero(self.machines.device_free & (view.topology.type == type))
            now = speed[np.argmax(sizes == len(here))]
            wider = (sizes > len(here)) & (sizes <= len(here) + len(free)) & (speed > now)
            if wider.any():
                shape = int(np.argmax(np.where(wider, speed, 0.0)))
                nodes = view.topology.node
                close = np.lexsort((free, -self.machines.free_by_node[nodes[free]], ~np.isin(nodes[free], nodes[here])))
                more = free[close[: sizes[shape] - len(here)]]
                self.machines.settle(more, int(sizes[shape]))
                self.given[u] = (shape, np.concatenate((here, more)))

    def answer(self, **more: Any) -> Grants:
        """Return the changes: units that start, move, or change partner or shape, and the jobs that stop."""
        units, line, builder = self.slicing.units, sorted(self.given), GrantsBuilder()
        for u in line:
            builder.give(int(units.first[u]), int(self.slicing.type[u]), self.given[u][1])
        goes_on = [u for u in self.stays if u not in self.given]
        named = np.concatenate((units.first[line], units.first[goes_on], units.second[goes_on]))
        return builder.build(
            partner=units.second[line].astype(np.int64),
            shape=np.array([self.given[u][0] for u in line], dtype=np.int64),
            stop=np.setdiff1d(np.flatnonzero(self.view.on_type >= 0), named),  # partners are placed anew
            **more,
        )
