"""What an auction goes by: seats on offer, who holds what, and how long every gang would need where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.topology import Topology
from eunomia.model.view import View
from eunomia.policies.grants.themis.rho import cluster_time, finish_time_fairness

ALONE, MACHINE, RACK, BEYOND = range(4)  # levels of the slowdown: how far apart a gang sits


@dataclass(frozen=True, slots=True)
class Seen:
    """A view, made ready. Axes: job m, type j, app a, node n."""

    view: View
    offered: Bools  # (device,) free, or held by a lease that has ended
    ended: Bools  # (job,) holds seats, but its lease has ended
    wants: Bools  # (job,) seats, and some machine could give them to it
    held: Bools  # (job,) holds seats for some time yet
    time: Floats  # (job, type) seconds still needed on seats close together; inf = it cannot run there
    level: Ints  # (job,) how far apart it sits; 0 while it waits
    work: Floats  # (job,) accelerator-seconds still needed on its fastest type
    elapsed: Floats  # (app,) since it came
    ideal: Floats  # (app,) T_id
    rack: Ints  # (node,)

    def overdue(self, patience_s: float, kept_for: Bools) -> tuple[int, int]:
        """Return the gang for which seats are kept, and their type; -1 = none. kept_for (job,): it was so already.

        Leases end one by one: without that a wide gang would never find enough seats free at once.
        """
        view = self.view
        room = np.bincount(view.topology.type[self.offered], minlength=len(view.types))
        lacks = (~np.isfinite(self.time) | (room < view.scale_factor[:, None])).all(axis=1)
        waits = self.wants & ~self.ended
        late = np.flatnonzero(waits & kept_for)
        if len(late) == 0:
            late = np.flatnonzero(waits & lacks & (view.wait >= patience_s))
        if len(late) == 0:
            return -1, -1
        job = int(late[np.argmax(view.wait[late])])
        return job, int(np.argmin(self.time[job]))

    def rho(self) -> tuple[Floats, Floats]:
        """Return ρ of each app with what it holds, and with all that it could use, (app,) each."""
        view, m = self.view, np.arange(self.view.jobs)
        here = self.time[m, np.maximum(view.on_type, 0)] * view.slowdown[m, self.level]
        best = self.time.min(axis=1)
        can = np.isfinite(best)
        common = view.app, self.elapsed, self.ideal
        now = finish_time_fairness(*common, self.held, here, self.work, view.scale_factor)
        all_of_it = finish_time_fairness(*common, can, np.where(can, best, 0.0), self.work, view.scale_factor)
        return now, all_of_it

    def apart(self, nodes: Ints, size: int) -> int:
        """Return the level of a gang on these nodes."""
        if len(nodes) == 1:
            return ALONE if size == 1 else MACHINE
        return RACK if (self.rack[nodes] == self.rack[nodes[0]]).all() else BEYOND


def look(view: View) -> Seen:
    """Return what an auction goes by."""
    apps, size = view.apps, view.scale_factor
    sits = view.on_type >= 0
    ended = sits & (view.until <= view.at)
    usable = np.where(size[:, None] <= view.capacity, view.throughput, 0.0)
    speed = usable.max(axis=1, initial=0.0)
    can = speed > 0
    time = np.divide(view.remaining[:, None], usable, out=np.full(usable.shape, np.inf), where=usable > 0)
    total = np.divide(view.total, speed, out=np.zeros(view.jobs), where=can)
    devices = int(view.capacity.sum())
    alone = cluster_time(view.app, len(apps.names), total, size, apps.service, devices)
    names = {name: row for row, name in enumerate(dict.fromkeys(view.topology.rack))}
    rack = np.array([names[name] for name in view.topology.rack], dtype=np.int64)
    return Seen(
        view=view,
        offered=(view.holder == -1) | ((view.holder >= 0) & _of(ended, view.holder)),
        ended=ended,
        wants=can & (ended | ~sits),
        held=sits & ~ended,
        time=time,
        level=_levels(view.holder, view.topology, rack, size),
        work=np.where(can, size * np.where(can, time.min(axis=1, initial=np.inf), 0.0), 0.0),
        elapsed=view.at - apps.submitted,
        ideal=alone * apps.mean_rivals,
        rack=rack,
    )


def _of(flags: Bools, holder: Ints) -> Bools:
    if len(flags) == 0:
        return np.zeros(len(holder), dtype=bool)
    return np.asarray(flags[np.maximum(holder, 0)])


def _levels(holder: Ints, topology: Topology, rack: Ints, size: Ints) -> Ints:
    """Return how far apart each gang sits, (job,)."""
    device = np.flatnonzero(holder >= 0)
    level = np.where(size == 1, ALONE, MACHINE)
    for places, farther in ((topology.node, RACK), (rack[topology.node], BEYOND)):
        low, high = np.full(len(size), np.iinfo(np.int64).max), np.full(len(size), -1)
        np.minimum.at(low, holder[device], places[device])
        np.maximum.at(high, holder[device], places[device])
        level = np.where(high > low, farther, level)
    return np.where(np.isin(np.arange(len(size)), holder[device]), level, 0)
