"""On which seats units run: they stay where they are, sit beside their like, move closer together, and grow."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import Ints
from eunomia.model.view import View
from eunomia.policies.grants.gandiva.machines import Machines
from eunomia.policies.grants.gandiva.slicing import Slicing

Given = dict[int, tuple[int, Ints]]  # unit -> shape, devices


class Seating:
    """Scratch paper on which the units that run get their seats."""

    def __init__(self, view: View, slicing: Slicing):
        self.view, self.slicing = view, slicing
        units = slicing.units
        order = np.argsort(view.holder, kind="stable")
        cut = np.searchsorted(view.holder[order], np.arange(view.jobs + 1))
        mine = [order[cut[m] : cut[m + 1]] for m in range(view.jobs)]
        pairs = zip(units.first.tolist(), units.second.tolist(), strict=True)
        self.held = [mine[m] if len(mine[m]) or n < 0 else mine[n] for m, n in pairs]  # (unit,)
        self.size = view.scale_factor[units.first].tolist()
        runs = slicing.type >= 0
        same = slicing.type == np.where(slicing.sits, view.on_type[units.first], -1)
        self.stays = [u for u in slicing.order.tolist() if runs[u] and same[u]]
        self.comes = [u for u in slicing.order.tolist() if runs[u] and not same[u]]
        self.given: Given = {}
        self._shrink()
        free = view.holder != -2
        for u in self.stays:
            free[self.held[u]] = False
        self.machines = Machines(view.topology, free)
        for u in self.stays:
            self.machines.settle(self.held[u], self.size[u])

    def _shrink(self) -> None:
        """Send grown gangs back to the shape that was asked for where others need their seats."""
        types = self.slicing.type
        for j in range(len(self.view.types)):
            taken = sum(len(self.held[u]) for u in self.stays if types[u] == j)
            taken += sum(self.size[u] for u in self.comes if types[u] == j)
            if taken > self.view.capacity[j] or self.slicing.somebody_waits:
                grown = [u for u in self.stays if types[u] == j and len(self.held[u]) > self.size[u]]
                self.stays = [u for u in self.stays if u not in grown]
                self.comes = grown + self.comes

    def seat(self) -> None:
        """Seat who comes: on what it holds, if that is free now and of the right type, else by affinity."""
        later = []
        for u in self.comes:
            here = self.held[u][: self.size[u]]
            right = len(here) == self.size[u] and self.view.topology.type[here[0]] == self.slicing.type[u]
            if right and self.machines.free[here].all():
                self.machines.settle(here, self.size[u])
                self.given[u] = (0, here)
            else:
                later.append(u)
        for u in later:
            found = self.machines.place(int(self.slicing.type[u]), self.size[u])
            self.machines.settle(found, self.size[u])
            self.given[u] = (0, found)

    def move(self, most: int) -> None:
        """Move a few gangs that stay, as asked, to fewer machines."""
        node = self.view.topology.node
        for u in self.stays:
            size, type, here = self.size[u], int(self.slicing.type[u]), self.held[u]
            now = len(np.unique(node[here]))
            if most and now > 1 and len(here) == size:
                self.machines.free[here] = True
                if self.machines.fewest(type, size) < now:
                    here, most = self.machines.place(type, size), most - 1
                    self.given[u] = (0, here)
                self.machines.settle(here, size)

    def grow(self) -> None:
        """Give free accelerators to gangs that are faster in a wider shape, if nobody waits."""
        view, units = self.view, self.slicing.units
        for u in self.slicing.order.tolist() if not self.slicing.somebody_waits else []:
            m, type = int(units.first[u]), int(self.slicing.type[u])
            here = self.given[u][1] if u in self.given else self.held[u]
            free = np.flatnonzero(self.machines.free & (view.topology.type == type))
            sizes, speed = view.shapes[m], view.shape_throughput[m, :, type]
            now = speed[np.argmax(sizes == len(here))]
            wider = (sizes > len(here)) & (sizes <= len(here) + len(free)) & (speed > now)
            if units.second[u] < 0 and wider.any():
                shape = int(np.argmax(np.where(wider, speed, 0.0)))
                nodes = view.topology.node
                close = np.lexsort((free, -self.machines.room()[nodes[free]], ~np.isin(nodes[free], nodes[here])))
                more = free[close[: sizes[shape] - len(here)]]
                self.machines.settle(more, int(sizes[shape]))
                self.given[u] = (shape, np.concatenate((here, more)))

    def answer(self) -> tuple[Rows, Ints, Ints, Ints]:
        """Return rows, the row and the device of each seat, and who stops."""
        units, line = self.slicing.units, sorted(self.given)
        seats = [self.given[u][1] for u in line]
        rows = Rows(
            units.first[line].astype(np.int64),
            self.slicing.type[line].astype(np.int64),
            partner=units.second[line].astype(np.int64),
            shape=np.array([self.given[u][0] for u in line], dtype=np.int64),
        )
        row = np.repeat(np.arange(len(line)), [len(mine) for mine in seats]).astype(np.int64)
        device = np.concatenate(seats).astype(np.int64) if seats else np.empty(0, dtype=np.int64)
        goes_on = [u for u in self.stays if u not in self.given]
        named = np.concatenate((rows.job, units.first[goes_on], units.second[goes_on]))
        stop = np.setdiff1d(np.flatnonzero(self.view.on_type >= 0), named)  # partners sit down anew
        return rows, row, device, stop
