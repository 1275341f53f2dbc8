"""Some days of Philly's virtual clusters as tenants, and how fairly a policy serves them then.

The jobs are those of these days, none longer than a day, on so many machines of 8 accelerators that they ask for LOAD
times what the cluster can do in that time. A job that names no virtual cluster gets one by a draw in proportion to
those of the others. A stopped job loses 25 s (checkpoint and resume), and jobs renewed in place lose nothing. A
tenant's fairness is what it used over min(demand, quota) in the last 24 hours, looked at every hour from the second day
on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.entitlements import Entitlements
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.setup.tenants import PHILLY, owned
from eunomia.throughputs import load
from eunomia.traces import Trace

ACCELERATORS, WINDOW_H = 8, 24
DAY_S = 86400.0  # no job lasts longer
LOAD = 1.2
COSTS = Overheads(checkpoint_s=5.0, restore_s=20.0)
LOSS = 0.95  # below it a tenant loses by sharing
TENANTS = {name: Tenant(weight=weight) for name, weight in PHILLY.items()}
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class WindowRun:
    """What every policy is given; `notes` say what was left out or cut."""

    jobs: tuple[Job, ...]
    machines: int
    tenants: Mapping[str, Tenant]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowFairness:
    """What one run came to; fairness is that of the tenants that deserved anything."""

    jct_mean: float  # seconds
    least: float  # of the worst-off tenant, averaged over the hours
    spread: float  # most ÷ least, averaged over the hours
    losing: float  # part of all tenants and hours below LOSS


def played(trace: Trace, first: float, days: float, seed: int, tenants: Mapping[str, Tenant] = TENANTS) -> WindowRun:
    """Return the jobs of some days that fit the quota of a known tenant, and machines for them."""
    begin, span = first * DAY_S, days * DAY_S
    there = (trace.submitted_s >= begin) & (trace.submitted_s < begin + span)
    trace, notes = owned(trace.take(np.flatnonzero(there)), "spread", seed)
    seconds = np.minimum(trace.duration_s, DAY_S)
    known = np.isin(trace.tenant, list(tenants))
    work = float((trace.scale_factor * seconds)[known].sum())
    machines = max(round(work / (LOAD * span * ACCELERATORS)), 1)
    declared = with_quotas(tenants, machines * ACCELERATORS)
    fits = trace.scale_factor <= np.array([declared[name].quota if name in declared else 0 for name in trace.tenant])
    kept: Ints = np.flatnonzero(known & fits)
    notes = (
        f"{machines} machines of {ACCELERATORS} accelerators",
        *notes,
        f"{int((~known).sum())} of {len(known)} jobs have no tenant with a weight and are left out",
        f"{int((known & ~fits).sum())} ask for more than their tenant's quota and are left out",
        f"{int((trace.duration_s[kept] > DAY_S).sum())} last longer than a day and are cut to that",
    )
    jobs = tuple(
        Job(
            job_id=trace.job_id[m],
            sequence=row,
            submitted=float(trace.submitted_s[m] - begin),
            total_steps=float(seconds[m]),
            scale_factor=int(trace.scale_factor[m]),
            tenant=trace.tenant[m],
        )
        for row, m in enumerate(kept.tolist())
    )
    return WindowRun(jobs, machines, declared, notes)


def with_quotas(tenants: Mapping[str, Tenant], accelerators: int) -> dict[str, Tenant]:
    """Return the tenants with quotas in whole accelerators, which are theirs whether they ask for them or not.

    The published measure of fairness counts with these, by weight and rounded down.
    """
    tree = Tenants.of((), tenants)
    quota = tree.quota(float(accelerators))
    return {name: replace(tenants[name], quota=float(quota[tree.row_of(name)])) for name in tenants}


def measure(work: WindowRun, policy: str, leases: Leases | None) -> WindowFairness:
    """Run the jobs to their ends; fairness is measured while they come. None: time is cut as the policy wants it."""
    topology, asked = Topology.of([Node(type="gpu", accelerators=ACCELERATORS)] * work.machines), build(policy)
    speeds, own = load("uniform", topology.types), asked.info.mechanism
    mechanism = leases or Leases(length=own.length_s, aligned=own.aligned, recall=own.recall)
    scheduler = Scheduler(topology, asked.info, mechanism, Belief(speeds, COSTS), tenants=work.tenants)
    scheduler.state.keep_entitlements(frozenset({"tenant_hourly_usage"}))
    assert scheduler.state.entitlements is not None
    metrics = Metrics(topology, speeds, dict.fromkeys(topology.types))
    tenancy = Tenancy(scheduler.state.entitlements, scheduler.state.owners.tree)
    world = Simulation(work.jobs, topology, speeds, overheads=COSTS)
    run(scheduler, world, InlinePolicyRunner(asked), [metrics, tenancy])
    seen = metrics.figures().jobs
    rho = tenancy.fairness(WINDOW_H)[WINDOW_H : int(work.jobs[-1].submitted // HOUR_S)]
    rho = rho[~np.isnan(rho).all(axis=1)]
    least, most = np.nanmin(rho, axis=1), np.nanmax(rho, axis=1)
    some = least > 0
    return WindowFairness(
        jct_mean=float(np.nanmean(seen["finished_s"] - seen["submitted_s"])),
        least=float(least.mean()),
        spread=float((most[some] / least[some]).mean()) if some.any() else float("inf"),
        losing=float((rho < LOSS).sum() / (~np.isnan(rho)).sum()),
    )


class Tenancy:
    """An observer that keeps what tenants used and deserved in every whole hour. The core must keep the claims."""

    def __init__(self, claims: Entitlements, tenants: Tenants):
        self._claims, self._tenants = claims, len(tenants.names)
        self._hours: list[Floats] = []  # (tenant, 3)

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Take in the hours that are over."""
        over = int(moment.at // HOUR_S) - len(self._hours)
        if over > 0:
            table = self._claims.hourly(self._tenants)
            self._hours += list(table[-1 - over : -1])

    def fairness(self, hours: int) -> Floats:
        """Return used over deserved accelerator-seconds in the `hours` up to each whole one, (hour, tenant).

        nan = the tenant deserved nothing then.
        """
        sums = np.cumsum(np.concatenate((np.zeros((1, self._tenants, 3)), np.array(self._hours))), axis=0)
        first = np.maximum(np.arange(1, len(sums)) - hours, 0)
        used, deserved = np.moveaxis(sums[1:, :, :2] - sums[first, :, :2], 2, 0)
        rho: Floats = np.divide(used, deserved, out=np.full(used.shape, np.nan), where=deserved > 0)
        return rho
