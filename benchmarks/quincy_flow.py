"""Quincy's flow: the simplex method by rows against the general program in whole numbers.

Machines of 8 in racks of 8, and gangs that ask for twice what there is; a half of the accelerators is held by gangs
whose runs protect them. Gangs are of 2 and 4, or with `single` of 1; then the other way is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.option_search import NODES
from eunomia.solvers.program import Program
from eunomia.solvers.quincy_flow import cheapest

CASES = ((16, True), (64, True), (32, False))  # machines, single
SEATS, IN_RACK = 8, 8
Network = tuple[Floats, Ints, Floats, Ints, Ints, Floats, Floats]  # the arguments of `cheapest`


def draw(machines: int, single: bool) -> Network:
    """Return a network of machines, racks and the cluster."""
    rng = np.random.default_rng(machines)
    racks, gangs = machines // IN_RACK, 2 * machines * SEATS // (1 if single else 3)
    size = np.ones(gangs, dtype=np.int64) if single else rng.choice([2, 4], gangs)
    wait = size * rng.uniform(30, 3000, gangs)
    worse = size * rng.choice([0.0, 24.0, 60.0, 240.0], gangs)
    above = [(p, machines + p // IN_RACK, machines + racks) for p in range(machines)]
    above += [(p, machines + racks) for p in range(machines, machines + racks)]
    gang, cost, option, pool, units = [], [], [], [], []
    free = np.full(machines, SEATS)
    for g in range(gangs):
        m = g % machines
        if g < gangs // 4 and size[g] <= free[m]:
            free[m] -= size[g]
            places = [(above[m], -size[g] * rng.uniform(30, 3000))]
        else:
            places = []
        places += [(pools, 0.0 if len(pools) == 3 else worse[g]) for pools in above]
        for pools, price in places:
            option += [len(gang)] * len(pools)
            pool += pools
            units += [float(size[g])] * len(pools)
            gang.append(g)
            cost.append(price)
    capacity = np.repeat([SEATS, SEATS * IN_RACK, SEATS * machines], [machines, racks, 1]).astype(float)
    return (wait, np.array(gang), np.array(cost), np.array(option), np.array(pool), np.array(units), capacity)


def by_program(network: Network, single: bool) -> float:
    """Return what HiGHS finds to be the least cost."""
    waits, gang, cost, option, pool, units, capacity = network
    row = np.concatenate((gang, len(waits) + pool))
    column = np.concatenate((np.arange(len(gang)), option))
    value = np.concatenate((np.ones(len(gang)), units))
    high = np.concatenate((np.ones(len(waits)), capacity))
    whole = np.full(len(gang), not single)
    low = np.full(len(high), -np.inf)
    program = Program.of_entries(waits[gang] - cost, row, column, value, low, high, upper=1.0, whole=whole)
    return float(waits.sum() - program.solve(nodes=None if single else NODES).objective)


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each size of the cluster, of single accelerators and of gangs."""
    for machines, single in CASES:
        network = draw(machines, single)
        name = "Quincy: one flow, " + ("single accelerators" if single else "gangs")
        ours, other = partial(cheapest, *network), partial(by_program, network, single)
        apart = ours()[1] - other()  # the warm-up too; the search in whole numbers may end before its optimum
        demand_equal(apart <= 1e-6 and (apart > -1e-6 or not single), name, machines)
        yield compare(name, len(network[0]), ours, other, "HiGHS, " + ("linear" if single else "in whole numbers"))
