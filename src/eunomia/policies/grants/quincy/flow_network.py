"""The flow network of one decision: pools of accelerators (machine, rack, type) and the options of each gang.

With `fair` each tenant is a pool of its own, which holds its max-min part:

    F[u] = max( ⌈A[u]⌉, the widest gang of u )
    A[u] = min(λ S[u], D[u]),   λ the largest number with Σ_u A[u] ≤ what there is

S[u] the part by weight of tenant u, D[u] accelerators of its jobs that can run. All tenants that want more have parts
in proportion to their weights. The widest gang counts since it would never run else. Whole bounds keep the corners of
the linear program whole where all gangs are single accelerators: tenants hold gangs as racks hold machines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import whole_dot
from eunomia.model.tolerance import RELATIVE
from eunomia.model.topology import Topology
from eunomia.model.view import View
from eunomia.placement.levels import BEYOND, MACHINE, RACK, SLOT, racks_by_name
from eunomia.policies.shares.tickets import level_fill, tickets_of

HERE = -1  # the place of an option: where the gang runs now
_TIE_S = 1e-3  # of two gangs that are alike the earlier one has waited so much longer


@dataclass(frozen=True, slots=True)
class Pools:
    """Machines, racks of a type and whole types, in this order. A rack that is all of its type is left out."""

    level: Ints  # (pool,) of a gang of which only its pool is known, at worst
    type: Ints  # (pool,)
    inside: Floats  # (node, pool) 1 = the machine belongs to the pool
    above: Bools  # (pool, pool) all machines of the first belong to the second

    @classmethod
    def of(cls, topology: Topology) -> Pools:
        """Lay out the pools of a cluster; that of the last call is kept, as it seldom changes."""
        if not _known or _known[0][0] is not topology:
            _known[:] = [(topology, cls._laid_out(topology))]
        return _known[0][1]

    @classmethod
    def _laid_out(cls, topology: Topology) -> Pools:
        types, type = np.arange(len(topology.types)), topology.node_type
        rack = racks_by_name(topology.rack)
        racks = int(rack.max()) + 1
        rows = np.unique(type * racks + rack)  # racks of a type
        several = np.bincount(rows // racks, minlength=len(types)) > 1
        rows = rows[several[rows // racks]]
        machine = np.eye(topology.nodes)
        in_rack = (type * racks + rack)[:, None] == rows
        wide = np.hstack([in_rack, type[:, None] == types]).astype(float)
        inside = np.hstack([machine, wide])
        level = (np.full(topology.nodes, MACHINE), np.full(len(rows), RACK), np.where(several, BEYOND, RACK))
        return cls(
            level=np.concatenate(level),
            type=np.concatenate((type, rows // racks, types)),
            inside=inside,
            above=np.vstack((inside == 1, whole_dot(wide.T, inside) == wide.sum(axis=0)[:, None])),
        )

    def held(self, view: View, jobs: Ints) -> Floats:
        """Return the accelerators that each of these jobs holds in each pool, (row, pool)."""
        row = np.full(view.jobs, -1)
        row[jobs] = np.arange(len(jobs))
        seats = np.flatnonzero(view.holder >= 0)
        seats = seats[row[view.holder[seats]] >= 0]
        by_node = np.zeros((len(jobs), len(self.inside)))
        np.add.at(by_node, (row[view.holder[seats]], view.topology.node[seats]), 1.0)
        return self.summed(by_node)

    def summed(self, by_node: Floats | Ints) -> Floats:
        """Return what there is in each pool, (…, pool), of whole numbers by machine, (…, node)."""
        nodes = len(self.inside)  # the first pools are single machines
        return np.concatenate((by_node, whole_dot(by_node, self.inside[:, nodes:])), axis=-1)


_known: list[tuple[Topology, Pools]] = []


@dataclass(frozen=True, slots=True)
class Options:
    """Where gangs could run, and the accelerators of each pool that this takes."""

    job: Ints  # (option,)
    place: Ints  # (option,) a pool, or HERE
    cost: Floats  # (option,) times accelerators
    option: Ints  # (entry,)
    pool: Ints  # (entry,)
    units: Floats  # (entry,)


def options(view: View, pools: Pools, room: Floats, costs: Costs) -> Options:
    """Return the places that are worth more than waiting; room (pool,) accelerators that may be reassigned."""
    job, place = np.nonzero((costs.there < costs.wait[:, None]) & (view.scale_factor[:, None] <= room))
    here = np.flatnonzero(costs.may_leave)
    held = pools.held(view, here)
    stays, below = np.nonzero(held)
    goes, above = np.nonzero(pools.above[place])
    return Options(
        job=np.concatenate((here, job)),
        place=np.concatenate((np.full(len(here), HERE), place)),
        cost=np.concatenate((costs.here[here], costs.there[job, place])),
        option=np.concatenate((stays, len(here) + goes)),
        pool=np.concatenate((below, above)),
        units=np.concatenate((held[stays, below], view.scale_factor[job[goes]].astype(float))),
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """What everything costs a gang, in seconds of its runs with θ = 1, times its accelerators."""

    wait: Floats  # (job,)
    there: Floats  # (job, pool) inf = it cannot run there
    here: Floats  # (job,) of staying; 0 while it waits
    may_leave: Bools  # (job,) it runs, and may be stopped

    @classmethod
    def seen(
        cls, view: View, pools: Pools, *, transfer: float, omega: float, theta: float, look_s: float, preempt: bool
    ) -> Costs:
        """Return what it costs to wait until the next decision, to run in a pool, and to stay."""
        size, jobs = view.scale_factor, np.arange(view.jobs)
        waited = view.at - view.submitted - view.run_time
        earlier = _TIE_S * (1 - jobs / max(view.jobs, 1))
        wait = size * omega * (waited + look_s + earlier)
        level = np.where((size == 1)[:, None] & (pools.level == MACHINE), SLOT, pools.level)
        there = transfer * size[:, None] * (_relative(view)[jobs[:, None], level, pools.type] - 1.0)
        there[np.ix_(size == 1, pools.level != MACHINE)] = np.inf  # one accelerator is always on one machine
        running = view.on_type >= 0
        here, rows = np.zeros(view.jobs), np.flatnonzero(running)
        at = np.argmax(pools.held(view, rows) == size[rows, None], axis=1)  # the smallest pool that holds all of it
        here[rows] = there[rows, at] - theta * size[rows] * (view.run_time[rows] + look_s)
        if not preempt:
            wait[running] = -np.inf
        return cls(wait, there, here, running & preempt)


def _relative(view: View) -> Floats:
    """Return step time at each level and type over that at the best place, (job, level, type); inf = cannot run."""
    step = np.full((view.jobs, view.slowdown.shape[1], len(view.types)), np.inf)
    speed = np.broadcast_to(view.throughput[:, None, :], step.shape)
    np.divide(np.broadcast_to(view.slowdown[:, :, None], step.shape), speed, out=step, where=speed > 0)
    best = step.min(axis=(1, 2), initial=np.inf)
    return np.asarray(step / np.where(np.isfinite(best), best, 1.0)[:, None, None])


def tenant_bounds(view: View, goes_on: Bools) -> Floats:
    """Return F (tenant,) less what gangs hold that stay, `goes_on` (job,); at least 0."""
    can, size = (view.throughput > 0).any(axis=1), view.scale_factor.astype(float)
    wants: Floats = np.bincount(view.tenant[can], size[can], len(view.tenants.names)).astype(float)
    part = level_fill(float((view.holder != -2).sum()), tickets_of(view.tenants, view.tenant), wants)
    widest = np.zeros(len(wants))
    np.maximum.at(widest, view.tenant[can], size[can])
    held = np.bincount(view.tenant[goes_on], size[goes_on], len(wants))
    return np.asarray(np.maximum(np.maximum(np.ceil(part * (1 - RELATIVE)), widest) - held, 0.0))


def with_tenants(there: Options, view: View, pools: int) -> Options:
    """Return the options, each of which also takes from the pool of its tenant, behind the `pools` others."""
    option = np.arange(len(there.job))
    return replace(
        there,
        option=np.concatenate((there.option, option)),
        pool=np.concatenate((there.pool, pools + view.tenant[there.job])),
        units=np.concatenate((there.units, view.scale_factor[there.job].astype(float))),
    )
