"""What the agents of apps know at an auction: their gangs, what is on offer, and their finish-time fairness ρ.

    ρ = T_sh / T_id,   T_sh = elapsed + max( max_j t_j,  Σ_j z_j t_j / Σ_j z_j held )

T_id is that of `model.finish_time`: the longest job max_j total_j, the work ended + Σ_j z_j total_j, the demand Σ_j
z_j.

j are the jobs of an app that have not ended: running, pending, or paused by their user. t_j are the seconds that job
j still needs where it runs, on its fastest type if it is pending; total_j the seconds in all on its fastest type, z_j
its gang, of an elastic job that runs what it holds, `ended` the accelerator-seconds attained by jobs that have ended.
All declared steps count, also of trials that will be given up; a pause changes nothing of T_id, and of T_sh only the
accelerators held. The paper's first term has no value for a pending job; here such a job needs at least its best
time, so that an app never looks worse because one more of its jobs runs on its fastest type. An app of one job has ρ
= (elapsed + t) / T_id. An app that holds nothing never finishes: its ρ is RHO_MAX, so that logarithms are finite.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3 and its appendix
on apps of many jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.finish_time import SHARE, IdealTime, ideal_time
from eunomia.model.sorting import sorted_places
from eunomia.model.view import View
from eunomia.placement.grants_builder import FREE, devices_by_job, held_by
from eunomia.placement.levels import Levels, closest, gang_levels, level_on, levels_of
from eunomia.policies.grants.themis.shapes import GangSizes, gang_sizes, held_width, speed_at

RHO_MAX = 1e6
HOLDS = 1e300  # an app that holds accelerators does so until further notice


class Gangs(NamedTuple):
    """What jobs need, and the devices of those whose leases have ended."""

    size: Ints  # (job,) of the whole gang
    sizes: Ints  # (job, shape) on which it can run, the whole gang first; 0 = no more
    least: Ints  # (job,) the smallest of them
    time: Floats  # (job, shape, type) seconds still needed within a slot; inf = it cannot run there
    width: Ints  # (job,) accelerators that it holds
    now: Floats  # (job,) seconds still needed on so many, within a slot, of the type on which it runs
    slowdown: Floats  # (job, level)
    type: Ints  # (job,) on which it runs
    own: Ints  # (job + 1,) where its entries of `device` begin
    device: Ints  # (entry,) of leases that have ended, in order


class UnfinishedJobs(NamedTuple):
    """Jobs that have not ended, on nodes in service: those of the view, then those that users paused. 0 s = never."""

    jobs: int  # of the view
    app: Ints  # (job,)
    size: Ints  # (job,)
    usable: Floats  # (job, type) steps/s; 0 = no gang of that size can run there
    time: Floats  # (job,) seconds still needed on its fastest type
    total: Floats  # (job,) seconds needed there in all

    def longest(self, apps: int) -> Floats:
        """Return the seconds that each app needs at least, (app,): no job ends sooner than at its best."""
        longest = np.zeros(apps)
        np.maximum.at(longest, self.app, self.time)
        return longest

    def paused_work(self, apps: int) -> Floats:
        """Return the accelerator-seconds that paused jobs still need, (app,)."""
        paused = slice(self.jobs, None)
        return np.asarray(np.bincount(self.app[paused], self.time[paused] * self.size[paused], apps), dtype=float)


@dataclass(frozen=True)
class AuctionState:
    """A view, made ready; what bids alone are made of is computed when it is read first.

    Axes: job m, type j, app a, device d.
    """

    view: View
    levels: Levels
    gangs: Gangs
    offered: Bools  # (device,) free, or held by a lease that has ended
    ended: Bools  # (job,) holds devices, but its lease has ended
    wants: Bools  # (job,) devices, and the cluster could give them to it
    held: Bools  # (job,) holds devices under a lease that continues
    here: Floats  # (job,) seconds still needed where it runs
    elapsed: Floats  # (app,) since it was submitted
    idle: Floats  # (app,) seconds since it held devices, or since it was submitted
    sizes: GangSizes
    reading: IdealTime  # of T_id

    @cached_property
    def unfinished(self) -> UnfinishedJobs:
        """The jobs that have not ended."""
        return unfinished_jobs(self.view, self.sizes)

    @cached_property
    def work(self) -> Floats:
        """The accelerator-seconds that each job still needs on its fastest type, (job,)."""
        jobs = self.unfinished
        return jobs.time[: self.view.jobs] * jobs.size[: self.view.jobs]

    @cached_property
    def least(self) -> Floats:
        """The seconds that the longest job of each app, paused ones too, still needs on its fastest type, (app,)."""
        return self.unfinished.longest(len(self.elapsed))

    @cached_property
    def paused(self) -> Floats:
        """The accelerator-seconds that the paused jobs of each app still need on their fastest types, (app,)."""
        return self.unfinished.paused_work(len(self.elapsed))

    @cached_property
    def ideal(self) -> Floats:
        """T_id of each app, (app,)."""
        apps, jobs = self.view.apps, self.unfinished
        in_all = app_totals(jobs.app, len(self.elapsed), jobs.total, jobs.size, apps.service)
        return ideal_time(*in_all, apps.mean_rivals, float(self.view.capacity.sum()), self.reading)

    def overdue(self, patience_s: float) -> Ints:
        """Return one gang of each app that has held nothing for so long, (gang,), the longest wait first.

        Leases end one by one, and an app that bids with others for all that is free forfeits it: without this, an app
        of wide gangs, or one that is always among the worst-off, might never run.
        """
        app = self.view.app
        holds = np.bincount(app, self.view.on_type >= 0, len(self.idle)) > 0
        late = self.by_priority(np.flatnonzero(self.wants & ((self.idle >= patience_s) & ~holds)[app]))
        first = late[np.flatnonzero(np.diff(app[late], prepend=-1))]
        return np.asarray(first[np.argsort(-self.idle[app[first]], kind="stable")])

    def by_priority(self, job: Ints) -> Ints:
        """Return these jobs app by app: the largest weight first, of equals the one that has done least."""
        view, app = self.view, self.view.app[job]
        if (app[1:] > app[:-1]).all():
            return job  # one of each app
        left = np.divide(view.remaining[job], view.total[job], out=np.zeros(len(job)), where=view.total[job] > 0)
        return np.asarray(job[np.lexsort((-left, -view.weight[job], app))])

    def rho(self) -> tuple[Floats, Floats]:
        """Return ρ of each app with what it holds, and with all that it could use, (app,) each."""
        best = self.gangs.time[:, 0].min(axis=1, initial=np.inf)
        can = np.isfinite(best)
        common, gangs = (self.view.app, self.elapsed, self.ideal, self.least, self.paused), self.gangs
        now = finish_time_fairness(*common, self.held, self.here, self.work, gangs.width)
        return now, finish_time_fairness(*common, can, np.where(can, best, 0.0), self.work, gangs.size)

    def worst_first(self) -> Ints:
        """Return the apps that want devices, the largest ρ first; of apps that hold nothing, the largest best ρ."""
        now, at_best = self.rho()
        asking = np.flatnonzero(np.bincount(self.view.app[self.wants], minlength=len(now)))
        return asking[np.lexsort((asking, -at_best[asking], -now[asking]))]

    def by_unit(self, free: Bools) -> Ints:
        """Return how many of the devices that are `free` are in each unit, (unit,)."""
        return np.bincount(self.levels.unit[free], minlength=len(self.levels.node))


def ended_leases(view: View) -> Bools:
    """Return the jobs that hold devices although their leases have ended, (job,)."""
    return np.asarray((view.on_type >= 0) & (view.lease_end <= view.at))


def offers(view: View, ended: Bools) -> Bools:
    """Return which devices are free, or held by a lease that has ended, (device,)."""
    return np.asarray((view.holder == FREE) | held_by(view.holder, ended))


def unfinished_jobs(view: View, sizes: GangSizes) -> UnfinishedJobs:
    """Return the jobs of a view, on all that they can use, and those of its apps that are paused."""
    paused = view.apps.paused
    size = np.concatenate((sizes.size[:, 0], paused.scale_factor))
    resting = np.where(paused.scale_factor[:, None] <= view.capacity, paused.throughput, 0.0)
    usable = np.concatenate((sizes.speed[:, 0], resting))
    speed = usable.max(axis=1, initial=0.0)
    steps = np.concatenate((view.remaining, paused.remaining)), np.concatenate((view.total, paused.total))
    time, total = (np.divide(some, speed, out=np.zeros(len(size)), where=speed > 0) for some in steps)
    return UnfinishedJobs(view.jobs, np.concatenate((view.app, paused.app)), size, usable, time, total)


def read_state(view: View, ended: Bools, offered: Bools, ideal: IdealTime = SHARE) -> AuctionState:
    """Return what an auction of the devices `offered`, (device,), goes by; `ended` (job,) leases are over.

    `ideal` is the reading of T_id.
    """
    sizes, levels, runs, width = gang_sizes(view), levels_of(view.topology), view.on_type >= 0, held_width(view)
    time = _seconds(view.remaining[:, None, None], sizes.speed)
    m = np.flatnonzero(runs)
    now, here = np.zeros(view.jobs), np.zeros(view.jobs)
    rigid = sizes.size.shape[1] == 1
    on = view.on_type[m]
    now[m] = time[m, 0, on] if rigid else _seconds(view.remaining[m], speed_at(sizes, width)[m, on])
    here[m] = now[m] * view.slowdown[m, gang_levels(levels, view.holder, view.jobs)[m]]
    device, own = devices_by_job(view.holder, ended)
    whole = np.ascontiguousarray(sizes.size[:, 0])
    least = whole if rigid else np.where(sizes.size > 0, sizes.size, sizes.size[:, :1]).min(axis=1)
    columns = sizes.size, least, np.ascontiguousarray(time), width, now, np.ascontiguousarray(view.slowdown)
    return AuctionState(
        view=view,
        levels=levels,
        gangs=Gangs(whole, *columns, view.on_type, own, device),
        offered=offered,
        ended=ended,
        wants=sizes.speed.any(axis=(1, 2)) & (ended | ~runs),
        held=runs & ~ended,
        here=here,
        elapsed=view.at - view.apps.submitted,
        idle=view.at - _last_held(view),
        sizes=sizes,
        reading=ideal,
    )


def _seconds(steps: Floats, speed: Floats) -> Floats:
    """Return steps ÷ speed, inf where that is 0."""
    return np.asarray(np.divide(steps, speed, out=np.full(speed.shape, np.inf), where=speed > 0))


def _last_held(view: View) -> Floats:
    """Return when each app held devices last, (app,): now, when its last job left them, or else its submission.

    The policy remembers of each job until when its app held any; what ended since the last answer, ended now.
    """
    last = view.apps.submitted.copy()
    np.maximum.at(last, view.app, np.minimum(view.memory["held_until"], view.at))
    last[view.app[view.on_type >= 0]] = view.at
    return np.asarray(last)


def no_contention(view: View, ended: Bools) -> bool:
    """Say whether all jobs run, and no place is better for those whose leases have ended, (job,).

    Then each app's best bid keeps the devices of its gangs, these fit together, and no app forfeits anything.
    """
    if not (view.on_type >= 0).all():
        return False
    m = np.flatnonzero(ended)
    sizes, type = gang_sizes(view, m), view.on_type[m]
    usable = sizes.speed[:, 0]
    here = usable[np.arange(len(m)), type]
    if not ((here > 0) & (here == usable.max(axis=1)) & (held_width(view)[m] == sizes.size[:, 0])).all():
        return False
    if (view.slowdown[m] == 1).all():
        return True
    level = gang_levels(levels_of(view.topology), view.holder, view.jobs)
    return bool((view.slowdown[m, level[m]] <= view.slowdown[m].min(axis=1)).all())


@kernel()
def app_totals(app: Ints, apps: int, total: Floats, size: Ints, service: Floats) -> tuple[Floats, Floats, Floats]:
    """Return longest job, work and demand of each app, (app,) each; ended jobs count with their `service` (app,).

    app, total, size are (job,).
    """
    longest, work, width = np.zeros(apps), service.copy(), np.zeros(apps)
    for m in range(len(app)):
        longest[app[m]] = max(longest[app[m]], total[m])
        work[app[m]] += total[m] * size[m]
        width[app[m]] += size[m]
    return longest, work, width


@kernel()
def finish_time_fairness(
    app: Ints,
    elapsed: Floats,
    ideal: Floats,
    least: Floats,
    paused: Floats,
    runs: Bools,
    time: Floats,
    work: Floats,
    size: Ints,
) -> Floats:
    """Return ρ, (app,). elapsed, ideal, least (app,) seconds; runs, time, work, size (job,), where it runs.

    least is what the longest job needs at its best, paused (app,) accelerator-seconds that paused jobs need.
    """
    apps = len(elapsed)
    longest, left, held = least.copy(), paused.copy(), np.zeros(apps)
    for m in range(len(app)):
        a = app[m]
        if runs[m]:
            longest[a] = max(longest[a], time[m])
            held[a] += size[m]
        left[a] += time[m] * size[m] if runs[m] else work[m]
    rho = np.empty(apps)
    for a in range(apps):
        rho[a] = fairness(elapsed[a], ideal[a], longest[a], left[a], held[a])
    return rho


@kernel()
def fairness(elapsed: float, ideal: float, longest: float, left: float, held: float) -> float:
    """Return ρ of an app whose longest job needs `longest` and that has `left` to do on `held` accelerators."""
    if held == 0:
        return RHO_MAX
    return min((elapsed + max(longest, left / held)) / ideal, RHO_MAX)


@kernel()
def own_place(levels: Levels, gangs: Gangs, job: int, free: Ints, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the devices of a gang's ended lease; return how many entries, 0 = they are not free."""
    n = 0
    for device in gangs.device[gangs.own[job] : gangs.own[job + 1]]:
        u = levels.unit[device]
        if n == 0 or unit[n - 1] != u:
            unit[n], count[n] = u, 0
            n += 1
        count[n - 1] += 1
        if count[n - 1] > free[u]:
            return 0
    return n


@kernel()
def best_place(
    levels: Levels, gangs: Gangs, job: int, free: Ints, own: bool, unit: Ints, count: Ints
) -> tuple[int, int, float, bool]:
    """Fill unit and count with the place where a gang ends soonest; its own comes before all others if `own`.

    Return how many entries, 0 = there is none, the type, the seconds needed there, and whether it is its own.
    """
    n, stays = own_place(levels, gangs, job, free, unit, count) if own else 0, np.inf
    if n > 0:
        stays = gangs.now[job] * gangs.slowdown[job, level_on(levels, unit, n)]
        if gangs.width[job] == gangs.size[job]:  # it has all that it can use
            return n, gangs.type[job], stays, True
    n, best, shortest = new_place(levels, gangs, job, free, 0, stays, unit, count)
    if n == 0 and stays < np.inf:
        return own_place(levels, gangs, job, free, unit, count), gangs.type[job], stays, True
    return n, best, shortest, False


@kernel()
def new_place(
    levels: Levels, gangs: Gangs, job: int, free: Ints, narrowest: int, below: float, unit: Ints, count: Ints
) -> tuple[int, int, float]:
    """Fill unit and count with the place where a job ends soonest, before `below` seconds have passed.

    It has the sizes from column `narrowest` of `Gangs.sizes` on. Return how many entries, 0 = there is none, the type,
    and the seconds needed there.
    """
    best, size, shortest = -1, 0, below
    for s in range(narrowest, gangs.sizes.shape[1]):
        if gangs.sizes[job, s] == 0:
            break
        for j in sorted_places(gangs.time[job, s]):
            if gangs.time[job, s, j] < shortest:
                n = closest(levels, j, gangs.sizes[job, s], free, unit, count)
                time = gangs.time[job, s, j] * gangs.slowdown[job, level_on(levels, unit, n)]
                if n > 0 and time < shortest:
                    best, size, shortest = j, gangs.sizes[job, s], time
    if best < 0:
        return 0, best, shortest
    return closest(levels, best, size, free, unit, count), best, shortest
