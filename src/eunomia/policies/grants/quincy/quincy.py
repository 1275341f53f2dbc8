"""Quincy: the least-cost flow from gangs to machines, where waiting, moving and being spread all have a cost.

    minimise    Σ_m  c[m, p(m)]  over gangs that run in place p(m)   +   Σ_m  z[m] ω (W[m] + q)  over those that wait
    c[m, p] =   z[m] · transfer · (step time in p / step time in the best place - 1)
                                                        less  z[m] · θ · (R[m] + q)  where it runs already
    subject to  what machines, racks and types hold

z scale factor (job,), W seconds waited in all (job,), R seconds of all its runs, the present and earlier ones (job,), q
seconds between two decisions. A place is a machine, a rack or all of a type; where more than a machine is chosen, the
worst devices in it are assumed. The cost of leaving a job unscheduled grows with its waiting time: it accepts ever
worse places, and preempts others that have run for less than about ω/θ of it. Every `look_s` seconds, while a job
waits, and when jobs or machines come or go, the whole flow is computed anew.

With single accelerators that is a flow, and its optimum is exact. A gang is several units that go the same way: then it
is an integer program, whose search is cut short on large problems. In the paper a task's cost is the data that it has
to fetch: a job here does not say where its data are, so the cost is the time that its steps take longer.

The paper bounds how many tasks of a job run, from below and from above. With `fair` a tenant stands for its job, whose
gangs are the tasks: it runs at most its max-min part (`flow_network`). The bound from below is left out: gangs may not
fit into what is free, and no flow would keep it. A tenant below its part waits at a cost that grows.

Example (examples/two_jobs.json). Neither job has waited: text ran for all of its 7560 s. To wait until the next look
costs each 0.5 · 60 = 30. The v100 is the best place of both, and costs nothing; a k80 costs text 300 · (2 - 1) = 300
and image 300 · (4 - 1) = 900, both more than to wait. Text came first and takes the v100; image waits, beside idle
k80s, until it has waited for half an hour.

Reference: M. Isard et al., "Quincy: Fair Scheduling for Distributed Computing Clusters", SOSP 2009, sections 4 and 5; ω
and θ as in I. Gog et al., "Firmament: Fast, Centralized Cluster Scheduling at Scale", OSDI 2016 (its code: 0.5 for a
second waited, 1 for one run).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Grants
from eunomia.model.arrays import Bools, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, LOST, GrantsBuilder, held_by
from eunomia.policies.grants.quincy.flow_network import (
    HERE,
    Costs,
    Options,
    Pools,
    options,
    tenant_bounds,
    with_tenants,
)
from eunomia.solvers.quincy_flow import cheapest

_Cost = Annotated[float, Rule(least=0.0, what="a finite cost of at least 0")]


@dataclass(frozen=True)
class Quincy:
    """Everything has a price: to wait, to sit far apart or on a slow type, and to be stopped or moved.

    `omega` is the cost of a second waited, `theta` what each second of its runs protects a running gang by, and
    `transfer` the cost of a place that doubles the time of a step; `preempt=false` leaves all gangs where they are.
    `fair` lets no tenant run more accelerators than its part by weight of what all could use, or than its widest gang.

    Use it when gangs or types differ much in how fast they are from place to place, and there are at most a few hundred
    machines.

    The worst-off is a gang that has just started when wide gangs have waited long: it is stopped to make room, and
    waits its turn. No job starves: the longer it waits, the longer may those have run that it preempts.
    """

    transfer: _Cost = 300.0
    omega: _Cost = 0.5
    theta: _Cost = 1.0
    look_s: Annotated[float, Rule(above=0.0, what="a finite number of seconds above 0")] = 60.0
    preempt: bool = True
    fair: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="quincy",
        answer_type="grants",
        objective="least cost of waiting, slow places and moves",
        technique="min-cost flow",
        paper="Isard et al., Quincy, SOSP 2009",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True, preemptive=True),
        needs=frozenset(
            {"scale_factor", "throughput", "slowdown", "submitted", "run_time", "on_type"} | {"topology", "holder"}
        ),
        tenant_settings=frozenset({"weight"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        also_needs(self, {"tenant", "tenants"} if self.fair else ())

    def decide(self, view: View) -> Grants:
        """Return seats for gangs that start or move, and the jobs to stop."""
        pools, goes_on = Pools.of(view.topology), (view.on_type >= 0) & (not self.preempt)
        open_ = (view.holder != LOST) & ~held_by(view.holder, goes_on)
        capacity = pools.summed(np.bincount(view.topology.node[open_], minlength=view.topology.nodes))
        costs = Costs.seen(
            view,
            pools,
            transfer=self.transfer,
            omega=self.omega,
            theta=self.theta,
            look_s=self.look_s,
            preempt=self.preempt,
        )
        there = options(view, pools, capacity, costs)
        if self.fair:
            there, bounds = with_tenants(there, view, len(capacity)), tenant_bounds(view, goes_on)
            capacity = np.concatenate((capacity, bounds))
        chosen, _ = cheapest(costs.wait, there.job, there.cost, there.option, there.pool, there.units, capacity)
        return self._granted(view, pools, there, chosen, goes_on)

    def _granted(self, view: View, pools: Pools, there: Options, chosen: Ints, goes_on: Bools) -> Grants:
        """Turn options into devices: on single machines first, then in racks, then anywhere."""
        place = np.full(view.jobs, HERE)
        place[chosen >= 0] = there.place[chosen[chosen >= 0]]
        goes = (chosen >= 0) & (place != HERE)
        stops = (view.on_type >= 0) & (chosen < 0) & ~goes_on
        free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, goes | stops))
        line, given = np.flatnonzero(goes), GrantsBuilder()
        for m in line[np.argsort(pools.level[place[line]], kind="stable")].tolist():
            nodes = np.flatnonzero(pools.inside[:, place[m]] > 0)
            devices = free.free_on(free.emptiest(nodes), int(view.scale_factor[m]))
            free.take(devices)
            given.give(m, int(pools.type[place[m]]), devices)
        waits = (chosen < 0) & ~goes_on & (view.throughput > 0).any(axis=1)
        return given.build(stop=np.flatnonzero(stops), again_at=view.at + self.look_s if waits.any() else math.inf)
