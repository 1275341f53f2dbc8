"""Gangs to places at least cost: Quincy's flow, in which one gang may be several units that go the same way.

    minimise    Σ_o c[o] x[o] + Σ_g w[g] (1 - Σ_{o of g} x[o])
    subject to  Σ_{o of g} x[o] ≤ 1  for each gang g,   Σ_o u[o,p] x[o] ≤ C[p]  for each pool p,   x[o] ∈ {0, 1}

Option o seats its gang for cost c[o] and takes u[o,p] units of pool p; a gang with no option costs w[g]. A pool is a
machine, or all machines of a rack or a cluster. Where one pool lies in another or beside it, and an option takes one
unit of all that hold its place, this is the least-cost flow from gangs through machines and their aggregates to the
sink, and the corners of the linear program are whole. With gangs of several units they nearly always are, and then a
corner is the optimum too. Otherwise it is searched for, and the search ends after `NODES` corners.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.option_search import best_options
from eunomia.solvers.option_simplex import Choices

BITS = 42  # of the largest cost, in whole units


def cheapest(
    waits: Floats, gang: Ints, cost: Floats, option: Ints, pool: Ints, units: Floats, capacity: Floats
) -> tuple[Ints, float]:
    """Return the option of each gang, -1 = it waits, (gang,), and what that costs in all.

    waits (gang,), gang and cost (option,), capacity (pool,); entry (option, pool) of u is `units`.
    """
    chosen = np.full(len(waits), -1)
    if len(gang) == 0:
        return chosen, float(waits.sum())
    rows, row = np.unique(gang, return_inverse=True)  # gangs that have options
    place = np.argsort(np.concatenate((row, np.arange(len(rows)))), kind="stable")  # to wait is a gang's last option
    choices = _choices(np.concatenate((cost, waits[rows]))[place], place, row, option, pool, units, capacity)
    taken = place[best_options(choices)]
    chosen[rows] = np.where(taken < len(gang), taken, -1)
    seated = chosen[chosen >= 0]
    return chosen, float(waits.sum() - (waits[gang[seated]] - cost[seated]).sum())


def _choices(
    cost: Floats, place: Ints, row: Ints, option: Ints, pool: Ints, units: Floats, capacity: Floats
) -> Choices:
    """Return the problem by rows. place: the numbers of options, by row; those beyond `row` are to wait."""
    count = np.bincount(row) + 1
    number = np.empty(len(place), dtype=np.int64)
    number[place] = np.arange(len(place))
    entries = np.argsort(number[option], kind="stable")
    unit = BITS - np.frexp(np.abs(cost).max())[1]
    return Choices(
        first=np.concatenate(([0], np.cumsum(count))),
        row=np.repeat(np.arange(len(count)), count),
        cost=np.rint(np.ldexp(cost, unit)),
        entry=np.concatenate(([0], np.cumsum(np.bincount(number[option], minlength=len(place))))),
        pool=pool[entries],
        units=units[entries].astype(float),
        capacity=capacity.astype(float),
    )
