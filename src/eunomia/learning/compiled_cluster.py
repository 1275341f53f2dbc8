"""A cluster of gangs that run to their end, played and observed in one compiled call a step.

It serves `eunomia/CompiledCluster-v0`: the moments at which the core would ask, the observations, masks
and rewards are those of the core, to the bit, for scenarios that are plain (`unsupported` names what is not). Progress
and ends of gangs are those of the simulation's own kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.backends.simulated import FaultModel
from eunomia.backends.simulated.completion_heap import IN_HEAP, no_ends
from eunomia.backends.simulated.gang_kernels import finish_alone, start_alone
from eunomia.backends.simulated.rates import Rates
from eunomia.backends.simulated.simulation import waiting_gangs
from eunomia.core.transitions import take_out
from eunomia.kernels import kernel
from eunomia.mechanisms.leases.config import Leases
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.runs.measurement_window import measured_jobs
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.world_models import fault_model_of, is_on

AGAIN_S = 1e-3  # after a gang is seated, the next ask comes so soon
HIGHEST = 1e9  # of an observed number
TIME_S, SERVICE_S = 3600.0, 36000.0  # units of observed times and accelerator-seconds
SCALE_FACTOR, AGE, WAITING, SERVICE, RUNS, WEIGHT, THROUGHPUT = range(7)  # columns of observed jobs; then types

JOB = np.dtype(
    [
        ("submitted", np.float64),
        ("started", np.float64),  # inf = it waits
        ("weight", np.float64),
        ("size", np.int64),
        ("kind", np.int64),  # row of `rates`
        ("first", np.int64),  # of its seats in `seat_node`
    ]
)
AT, JCT, MAKESPAN = range(3)  # of `clock`
ARRIVED, ACTIVE = range(2)  # of `numbers`


@kernel(allocates=False)
def _seat(
    row: int, type: int, start: int, clock: Floats, jobs: Array, free: Ints, node_type: Ints, seat_node: Ints,
) -> None:  # fmt: skip
    """Take seats of a type: from node `start` on, round the cluster; with −1 on the tightest node with room, or else
    on those with most room first."""
    size, nodes = jobs[row]["size"], len(free)
    taken, place, node = 0, 0, start
    tightest = -1
    if start < 0:
        for one in range(nodes):
            if node_type[one] == type and free[one] >= size and (tightest < 0 or free[one] < free[tightest]):
                tightest = one
    while taken < size:
        if start >= 0:
            node = (start + place) % nodes
            place += 1
        elif tightest >= 0:
            node = tightest
        else:
            node = -1
            for one in range(nodes):
                if node_type[one] == type and (node < 0 or free[one] > free[node]):
                    node = one
        if node_type[node] != type:
            continue
        while taken < size and free[node] > 0:
            seat_node[jobs[row]["first"] + taken] = node
            free[node] -= 1
            taken += 1
    jobs[row]["started"] = clock[AT]


@kernel(allocates=False)
def _advance(
    again_at: float, clock: Floats, numbers: Ints, active: Ints, arrivals: Floats, jobs: Array, free: Ints,
    seat_node: Ints, gangs: Array, heap: Array, counts: Ints, rates: Floats,
) -> bool:  # fmt: skip
    """Go on to the next moment at which the agent is asked, at `again_at` at the latest; return whether there is one.

    It is asked whenever something happens while there are jobs.
    """
    while True:
        at = min(arrivals[numbers[ARRIVED]], again_at, heap[0]["when"] if counts[IN_HEAP] > 0 else np.inf)
        if at == np.inf:
            return False
        span = at - clock[AT]
        clock[JCT] -= span * numbers[ACTIVE]
        clock[MAKESPAN] -= span * (numbers[ACTIVE] > 0)
        clock[AT] = at
        while counts[IN_HEAP] > 0 and heap[0]["when"] == at:
            row = heap[0]["row"]
            finish_alone(gangs, heap, counts, rates, row, at)
            for seat in range(jobs[row]["first"], jobs[row]["first"] + jobs[row]["size"]):
                free[seat_node[seat]] += 1
            numbers[ACTIVE] = take_out(active, numbers[ACTIVE], row)
        while arrivals[numbers[ARRIVED]] == at:
            active[numbers[ACTIVE]] = numbers[ARRIVED]
            numbers[ACTIVE] += 1
            numbers[ARRIVED] += 1
        if numbers[ACTIVE] > 0:
            return True
        again_at = np.inf


class Observed(NamedTuple):
    """What a step writes for the agent."""

    jobs: Array  # (row, column)
    mask: Array  # (row,) 1 = a job
    servers: Array  # (node, 2)
    cluster: Array  # (3,)
    legal: Bools  # (action,)


@kernel(allocates=False)
def _observe(
    placement: bool, clock: Floats, numbers: Ints, active: Ints, jobs: Array, free: Ints, node_type: Ints,
    by_type: Ints, rates: Floats, shown: Observed,
) -> None:  # fmt: skip
    """Write what is observed now, and which actions are legal."""
    seen, seen_mask, servers, cluster, legal = shown
    rows, places, at = len(seen), len(node_type) if placement else len(by_type), clock[AT]
    by_type[:] = 0
    all_free = 0
    for node in range(len(free)):
        by_type[node_type[node]] += free[node]
        all_free += free[node]
        servers[node, 0] = free[node]
    cluster[0], cluster[1], cluster[2] = at / TIME_S, numbers[ACTIVE], all_free
    for k in range(rows):
        for place in range(places):
            legal[k * places + place] = False
        if k >= numbers[ACTIVE]:
            if seen_mask[k] == 0:
                continue
            seen_mask[k] = 0
            seen[k, :] = 0.0
            continue
        job = jobs[active[k]]
        waits = job["started"] == np.inf
        seen_mask[k] = 1
        seen[k, SCALE_FACTOR], seen[k, WEIGHT] = min(job["size"], HIGHEST), min(job["weight"], HIGHEST)
        seen[k, AGE] = min((at - job["submitted"]) / TIME_S, HIGHEST)
        seen[k, WAITING] = min((at - job["submitted"]) / TIME_S, HIGHEST) if waits else 0.0
        seen[k, SERVICE] = 0.0 if waits else min((at - job["started"]) * job["size"] / SERVICE_S, HIGHEST)
        seen[k, RUNS] = 0.0 if waits else 1.0
        for type in range(len(by_type)):
            seen[k, THROUGHPUT + type] = min(rates[job["kind"], type], HIGHEST)
        for place in range(places if waits else 0):
            type = node_type[place] if placement else place
            fits = rates[job["kind"], type] > 0 and job["size"] <= by_type[type]
            legal[k * places + place] = fits and (not placement or free[place] > 0)
    legal[rows * places] = True


@kernel(allocates=False)
def step(
    action: int, placement: bool, clock: Floats, numbers: Ints, active: Ints, arrivals: Floats, jobs: Array,
    free: Ints, node_type: Ints, by_type: Ints, seat_node: Ints, gangs: Array, heap: Array, counts: Ints,
    rates: Floats, start_s: float, later_s: Floats, shown: Observed,
) -> bool:  # fmt: skip
    """Carry out an action, −1 = none, and go on to the next ask; return whether there is one."""
    places, again_at = len(node_type) if placement else len(by_type), np.inf
    if 0 <= action < len(shown.jobs) * places:
        row, place = active[action // places], action % places
        type = node_type[place] if placement else place
        _seat(row, type, place if placement else -1, clock, jobs, free, node_type, seat_node)
        job = jobs[row]
        rate = rates[job["kind"], type]
        start_alone(gangs, heap, counts, row, job["kind"], type, job["size"], 1, clock[AT], rate, start_s, later_s)
        again_at = clock[AT] + AGAIN_S
    asked = _advance(again_at, clock, numbers, active, arrivals, jobs, free, seat_node, gangs, heap, counts, rates)
    if not asked:
        numbers[ACTIVE] = 0
    _observe(placement, clock, numbers, active, jobs, free, node_type, by_type, rates, shown)
    return asked


def unsupported(setup: RunConfig) -> str:
    """Return what of a scenario the compiled cluster does not have; "" if it has all."""
    scenario = setup.scenario
    found = {
        "physics and tuners": is_on(scenario) or bool(setup.tuners),
        "failures, outages and cancellations": fault_model_of(scenario) != FaultModel(),
        "jobs that end as in the trace": scenario.world.replay_status,
        "beliefs that are not the truth": setup.believed is not setup.truth or scenario.belief.duration != "declared",
        "elastic jobs": any(job.other_shapes for job in setup.jobs),
        "a measured window": measured_jobs(scenario, setup.jobs) is not None,
        "leases that end": setup.mechanism != Leases(),
    }
    return next((name for name, is_there in found.items() if is_there), "")


class CompiledCluster:
    """One episode. Observations are written into arrays of its own, which the next step overwrites."""

    def __init__(self, setup: RunConfig, rows: int, *, placement: bool) -> None:
        work = sorted(setup.jobs, key=lambda job: (job.submitted, job.sequence, job.job_id))
        rates, topology = Rates(setup.truth, work), setup.topology
        jobs = np.zeros(len(work), dtype=JOB)
        jobs["submitted"], jobs["started"] = [job.submitted for job in work], np.inf
        jobs["weight"], jobs["size"] = [job.weight for job in work], [job.scale_factor for job in work]
        jobs["kind"] = rates.kind_of[rates.model, jobs["size"]]
        jobs["first"] = np.cumsum(jobs["size"]) - jobs["size"]
        costs, types = setup.overheads, len(topology.types)
        places = topology.nodes if placement else types
        self.clock, self.numbers = np.zeros(3), np.zeros(2, dtype=np.int64)
        self.jobs = np.zeros((rows, THROUGHPUT + types), dtype=np.float32)
        self.job_mask = np.zeros(rows, dtype=np.int8)
        self.servers = np.stack((topology.size, topology.size), axis=1).astype(np.float32)
        self.cluster, self.legal = np.zeros(3, dtype=np.float32), np.zeros(rows * places + 1, dtype=bool)
        self._placement = placement
        self._arrays = (
            self.clock, self.numbers, np.zeros(len(work), dtype=np.int64), np.append(jobs["submitted"], np.inf), jobs,
            topology.size.astype(np.int64), topology.node_type.astype(np.int64), np.zeros(types, dtype=np.int64),
            np.zeros(int(jobs["size"].sum()), dtype=np.int64), waiting_gangs(work, rates.model),
            *no_ends(len(work)), rates.alone, float(costs.of(first=True)), np.zeros((2, rates.widest + 1)),
            Observed(self.jobs, self.job_mask, self.servers, self.cluster, self.legal),
        )  # fmt: skip

    def step(self, action: int) -> bool:
        """Carry out an action, −1 at the beginning, and go on to the next ask; return whether there is one."""
        return bool(step(action, self._placement, *self._arrays))
