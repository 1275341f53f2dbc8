"""Gangs to places at least cost: Quincy's flow, in which one gang may be several units that go the same way.

    minimise    Σ_o c[o] x[o] + Σ_g w[g] (1 - Σ_{o of g} x[o])
    subject to  Σ_{o of g} x[o] ≤ 1  for each gang g,   Σ_o u[o,p] x[o] ≤ C[p]  for each pool p,   x[o] ∈ {0, 1}

Option o seats its gang for cost c[o] and takes u[o,p] units of pool p; a gang with no option costs w[g]. A pool is a
machine, or all machines of a rack or a cluster. Where one pool lies in another or beside it, and an option takes one
unit of all that hold its place, this is the least-cost flow from gangs through machines and their aggregates to the
sink, and the corners of the linear program are whole. With gangs of several units it is a program in whole numbers,
and the search for its optimum ends after `NODES` nodes.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.program import Program

NODES = 200


def cheapest(
    waits: Floats, gang: Ints, cost: Floats, option: Ints, pool: Ints, units: Floats, capacity: Floats
) -> tuple[Ints, float]:
    """Return the option of each gang, -1 = it waits, (gang,), and what that costs in all.

    waits (gang,), gang and cost (option,), capacity (pool,); entry (option, pool) of u is `units`.
    """
    gangs, pools = len(waits), len(capacity)
    chosen = np.full(gangs, -1)
    if len(gang) == 0:
        return chosen, float(waits.sum())
    row = np.concatenate((gang, gangs + pool))
    column = np.concatenate((np.arange(len(gang)), option))
    value = np.concatenate((np.ones(len(gang)), units))
    high = np.concatenate((np.ones(gangs), capacity))
    low = np.full(gangs + pools, -np.inf)
    gain = waits[gang] - cost
    whole = None if (units == 1).all() else np.ones(len(gang), dtype=bool)
    program = Program.of_entries(gain, row, column, value, low, high, upper=1.0, whole=whole)
    x = program.solve(nodes=None if whole is None else NODES).x
    taken = np.flatnonzero(x > 1 / 2)
    assert np.abs(x - np.round(x)).max() < 1e-6  # a corner of a network, or a point in whole numbers
    chosen[gang[taken]] = taken
    return chosen, float(waits.sum() - gain[taken].sum())
