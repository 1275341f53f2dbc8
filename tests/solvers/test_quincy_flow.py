"""Gangs to places at least cost, against the general program on networks with racks, tenants and gangs that run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.program import Program
from eunomia.solvers.quincy_flow import cheapest


class Network(NamedTuple):
    """The arguments of `cheapest`."""

    waits: Floats
    gang: Ints
    cost: Floats
    option: Ints
    pool: Ints
    units: Floats
    capacity: Floats


def least_cost(network: Network, *, whole: bool) -> float:
    """Return the optimum by HiGHS, in whole numbers or not."""
    waits, gang, cost, option, pool, units, capacity = network
    gangs, pools = len(waits), len(capacity)
    program = Program.of_entries(
        waits[gang] - cost,
        np.concatenate((gang, gangs + pool)),
        np.concatenate((np.arange(len(gang)), option)),
        np.concatenate((np.ones(len(gang)), units)),
        np.full(gangs + pools, -np.inf),
        np.concatenate((np.ones(gangs), capacity)),
        upper=1.0,
        whole=np.full(len(gang), whole),
    )
    return float(waits.sum() - program.solve().objective)


@st.composite
def networks(draw: st.DrawFn, widest: int) -> Network:
    """Machines in racks, tenants with bounds; some gangs run, spread or not. In half of all many costs are equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    machines, racks, gangs, tenants = rng.integers(1, (7, 4, 14, 3)).tolist()
    alike = draw(st.booleans())
    seats, rack = rng.integers(1, 6, machines), rng.integers(0, racks, machines)
    top, bounds = machines + racks, rng.integers(1, 8, tenants)
    size, owner = rng.integers(1, widest + 1, gangs), rng.integers(0, tenants, gangs)

    def costs(*shape: int) -> Floats:
        return rng.integers(0, 6, shape).astype(float) if alike else rng.uniform(0, 10, shape)

    waits, where, free = costs(gangs), costs(gangs, top + 1), seats.copy()
    entries: list[tuple[int, int, int]] = []
    chosen: list[tuple[int, float]] = []

    def add(g: int, cost: float, held: Ints) -> None:
        taken = np.concatenate((held, np.bincount(rack, held, racks), [size[g]]))
        entries.extend((len(chosen), p, int(taken[p])) for p in np.flatnonzero(taken).tolist())
        entries.append((len(chosen), top + 1 + int(owner[g]), int(size[g])))
        chosen.append((g, cost))

    for g in range(gangs):
        if rng.random() < 0.4 and free.sum() >= size[g]:
            on = rng.choice(np.repeat(np.arange(machines), free), size[g], replace=False)
            held = np.bincount(on, minlength=machines)
            free -= held
            add(g, -float(where[g].max()), held)
        for m in np.flatnonzero(rng.random(machines) < 0.8).tolist():
            add(g, where[g, 0] if alike else where[g, m], size[g] * (np.arange(machines) == m))
        for pool in [*(machines + np.flatnonzero(rng.random(racks) < 0.5)).tolist(), top]:
            inside = [pool, top] if pool < top else [top]
            entries.extend((len(chosen), p, int(size[g])) for p in [*inside, top + 1 + int(owner[g])])
            chosen.append((g, where[g, pool]))
    option, pool, units = np.array(entries).T
    capacity = np.concatenate((seats, np.bincount(rack, seats, racks), [seats.sum()], bounds)).astype(float)
    gang, cost = (np.array(column) for column in zip(*chosen, strict=True))
    return Network(waits, gang, cost, option, pool, units.astype(float), capacity)


def demand_fits(network: Network, chosen: Ints) -> None:
    taken = np.isin(network.option, chosen[chosen >= 0])
    used = np.bincount(network.pool[taken], network.units[taken], len(network.capacity))
    assert (used <= network.capacity).all()
    assert all(network.gang[o] == g for g, o in enumerate(chosen.tolist()) if o >= 0)


@settings(max_examples=200)
@given(networks(widest=1))
def test_single_accelerators_flow_at_the_cost_of_the_linear_program(network: Network) -> None:
    """A corner of the network is whole."""
    chosen, total = cheapest(*network)
    demand_fits(network, chosen)
    assert total == pytest.approx(least_cost(network, whole=False), abs=1e-8)


@settings(max_examples=200)
@given(networks(widest=4))
def test_no_whole_assignment_of_gangs_costs_less(network: Network) -> None:
    chosen, total = cheapest(*network)
    demand_fits(network, chosen)
    assert total == pytest.approx(least_cost(network, whole=True), abs=1e-8)


def test_two_wide_gangs_in_room_for_one_and_a_half_are_searched_in_whole_numbers() -> None:
    """By hand: 3 accelerators, gangs of 2 that gain 10 and 9, and one of 1 that gains 2. Halves would gain 10 + 4.5."""
    each = np.arange(3)
    network = Network(
        np.array([10.0, 9.0, 2.0]),
        each,
        np.zeros(3),
        each,
        np.zeros(3, dtype=int),
        np.array([2.0, 2, 1]),
        np.array([3.0]),
    )
    chosen, total = cheapest(*network)
    assert (chosen.tolist(), total) == ([0, -1, 2], 9.0)


def test_a_gang_that_would_have_to_wait_and_to_run_is_in_no_answer() -> None:
    """Five gangs of 3 that are alike, on machines of 4, 3 and 5: four run, one of them spread over what is left."""
    gang, place = (axis.ravel() for axis in np.indices((5, 4)))  # three machines, or anywhere
    options = np.arange(20)
    network = Network(
        np.full(5, 27.0),
        gang,
        np.array([0.0, 1.0, 2.0, 2.0])[place],
        np.concatenate((options, options[place < 3])),
        np.concatenate((place, np.full(15, 3))),
        np.full(35, 3.0),
        np.array([4.0, 3.0, 5.0, 12.0]),
    )
    chosen, total = cheapest(*network)
    demand_fits(network, chosen)
    assert ((chosen >= 0).sum(), total) == (4, 32.0)


def test_of_gangs_and_places_that_are_alike_the_first_are_taken() -> None:
    gang, machine = (axis.ravel() for axis in np.indices((4, 3)))
    network = Network(np.ones(4), gang, np.zeros(12), np.arange(12), machine, np.ones(12), np.array([1.0, 1.0, 0.0]))
    chosen, total = cheapest(*network)
    assert (chosen.tolist(), total) == ([0, 4, -1, -1], 2.0)
