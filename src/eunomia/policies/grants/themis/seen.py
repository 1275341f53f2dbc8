"""What an auction goes by: seats on offer, who holds what, and how long every gang would need where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.grants.themis.ground import BEYOND, MACHINE, RACK, SLOT, Gangs, Ground, ground_of
from eunomia.policies.grants.themis.rho import cluster_time, finish_time_fairness
from eunomia.policies.grants.themis.surviving import surviving

HOLDS = 1e300  # an app that holds seats does so until further notice


@dataclass(frozen=True, slots=True)
class Seen:
    """A view, made ready. Axes: job m, type j, app a, device d."""

    view: View
    ground: Ground
    gangs: Gangs
    offered: Bools  # (device,) free, or held by a lease that has ended
    ended: Bools  # (job,) holds seats, but its lease has ended
    wants: Bools  # (job,) seats, and some machine could give them to it
    held: Bools  # (job,) holds seats for some time yet
    here: Floats  # (job,) seconds still needed where it sits
    work: Floats  # (job,) accelerator-seconds still needed on its fastest type
    least: Floats  # (app,) seconds that the longest of its jobs, paused ones too, still needs on its fastest type
    paused: Floats  # (app,) accelerator-seconds that its paused jobs still need on their fastest types
    elapsed: Floats  # (app,) since it came
    idle: Floats  # (app,) seconds since it held seats, or since it came
    ideal: Floats  # (app,) T_id

    def overdue(self, patience_s: float) -> Ints:
        """Return a gang of each app that has held nothing for so long, (gang,), of the longest first.

        Leases end one by one, and who bids for all that is free with others forfeits it: without that an app whose
        gangs are wide, or that is always among the worst-off, might never sit.
        """
        app = self.view.app
        holds = np.bincount(app, self.view.on_type >= 0, len(self.idle)) > 0
        late = self.in_turn(np.flatnonzero(self.wants & ((self.idle >= patience_s) & ~holds)[app]))
        first = late[np.unique(app[late], return_index=True)[1]]
        return np.asarray(first[np.argsort(-self.idle[app[first]], kind="stable")])

    def in_turn(self, job: Ints) -> Ints:
        """Return these jobs app by app: which weigh most first, of equals those that have done least."""
        view = self.view
        left = np.divide(view.remaining[job], view.total[job], out=np.zeros(len(job)), where=view.total[job] > 0)
        return np.asarray(job[np.lexsort((-left, -view.weight[job], view.app[job]))])

    def rho(self) -> tuple[Floats, Floats]:
        """Return ρ of each app with what it holds, and with all that it could use, (app,) each."""
        best = self.gangs.time.min(axis=1, initial=np.inf)
        can = np.isfinite(best)
        common, size = (self.view.app, self.elapsed, self.ideal, self.least, self.paused), self.view.scale_factor
        now = finish_time_fairness(*common, self.held, self.here, self.work, size)
        return now, finish_time_fairness(*common, can, np.where(can, best, 0.0), self.work, size)

    def worst_first(self) -> Ints:
        """Return the apps that want seats, the largest ρ first; who holds nothing is told apart by its best ρ."""
        now, at_best = self.rho()
        asking = np.flatnonzero(np.bincount(self.view.app[self.wants], minlength=len(now)))
        return asking[np.lexsort((asking, -at_best[asking], -now[asking]))]

    def by_unit(self, free: Bools) -> Ints:
        """Return how many of the devices that are `free` are in each unit, (unit,)."""
        return np.bincount(self.ground.unit[free], minlength=len(self.ground.node))


def last_held(view: View) -> Floats:
    """Return when each app held seats last, (app,): now, when its last job left them, or else when it came.

    The policy remembers of each job until when its app held any; what ended since the last answer, ended now.
    """
    last = view.apps.submitted.copy()
    np.maximum.at(last, view.app, np.minimum(view.memory["held_until"], view.at))
    last[view.app[view.on_type >= 0]] = view.at
    return np.asarray(last)


def ended_leases(view: View) -> Bools:
    """Return who holds seats although its lease has ended, (job,)."""
    return np.asarray((view.on_type >= 0) & (view.until <= view.at))


def offers(view: View, ended: Bools) -> Bools:
    """Return which devices are free, or held by a lease that has ended, (device,)."""
    if view.jobs == 0:
        return np.asarray(view.holder == -1)
    return np.asarray((view.holder == -1) | ((view.holder >= 0) & ended[np.maximum(view.holder, 0)]))


def look(view: View, ended: Bools, offered: Bools) -> Seen:
    """Return what an auction goes by."""
    apps, size, ground, jobs = view.apps, view.scale_factor, ground_of(view.topology), surviving(view)
    n, usable, sits = len(apps.names), jobs.usable[: view.jobs], view.on_type >= 0
    can = usable.any(axis=1)
    time = np.divide(view.remaining[:, None], usable, out=np.full(usable.shape, np.inf), where=usable > 0)
    alone = cluster_time(jobs.app, n, jobs.total, jobs.size, apps.service, int(view.capacity.sum()))
    m = np.flatnonzero(sits)
    here = np.zeros(view.jobs)
    here[m] = time[m, view.on_type[m]] * view.slowdown[m, levels(ground, view.holder, view.jobs)[m]]
    return Seen(
        view=view,
        ground=ground,
        gangs=_gangs(view, np.ascontiguousarray(time), ended),
        offered=offered,
        ended=ended,
        wants=can & (ended | ~sits),
        held=sits & ~ended,
        here=here,
        work=jobs.time[: view.jobs] * size,
        least=jobs.longest(n),
        paused=jobs.paused_work(n),
        elapsed=view.at - apps.submitted,
        idle=view.at - last_held(view),
        ideal=alone * apps.mean_rivals,
    )


def _gangs(view: View, time: Floats, ended: Bools) -> Gangs:
    seated = np.flatnonzero(view.holder >= 0)
    device = seated[ended[view.holder[seated]]]
    device = device[np.argsort(view.holder[device], kind="stable")]
    own = np.zeros(view.jobs + 1, dtype=np.int64)
    own[1:] = np.cumsum(np.bincount(view.holder[device], minlength=view.jobs))
    return Gangs(view.scale_factor, time, np.ascontiguousarray(view.slowdown), view.on_type, own, device)


@kernel()
def levels(ground: Ground, holder: Ints, jobs: int) -> Ints:
    """Return how far apart each gang sits, (job,); 0 while it waits. holder (device,)."""
    first, level = np.full(jobs, -1, dtype=np.int64), np.full(jobs, SLOT, dtype=np.int64)
    for device in range(len(holder)):
        m, here = holder[device], ground.unit[device]
        if m < 0 or here == first[m]:
            continue
        if first[m] < 0:
            first[m] = here
            continue
        node, other = ground.node[here], ground.node[first[m]]
        if ground.rack[node] != ground.rack[other]:
            level[m] = BEYOND
        elif node != other:
            level[m] = max(level[m], RACK)
        else:
            level[m] = max(level[m], MACHINE)
    return level
