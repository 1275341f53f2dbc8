"""Assignments: as cheap as the linear program's, and queues as the textbook's matrix of servers and positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import cheapest_assignment

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.assignment import held, soonest


@st.composite
def costs(draw: st.DrawFn) -> Floats:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = sorted((draw(st.integers(1, 9)), draw(st.integers(1, 9))))
    return rng.integers(-3, 4, shape).astype(float) if draw(st.booleans()) else rng.normal(size=shape)


@settings(max_examples=150)
@given(costs())
def test_no_assignment_is_cheaper(cost: Floats) -> None:
    rows, columns = cost.shape
    column = held(cost, np.arange(columns), np.ones(columns), np.ones(columns, dtype=np.int64))
    assert len(set(column.tolist())) == rows
    assert cost[np.arange(rows), column].sum() == pytest.approx(cheapest_assignment(cost), abs=1e-8)


@st.composite
def queues(draw: st.DrawFn) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    time = rng.uniform(0.1, 5, (rows, columns))
    if draw(st.booleans()):
        time = np.ceil(time)
    time[rng.random(time.shape) < 0.2] = np.inf
    return time, rng.integers(0, 4, columns)


@settings(max_examples=100)
@given(queues())
def test_no_queues_finish_sooner_on_average(queue: tuple[Floats, Ints]) -> None:
    time, machines = queue
    column, position = soonest(time, machines)
    served = np.flatnonzero(column >= 0)
    can = np.isfinite(np.where(machines > 0, time, np.inf)).any(axis=1)
    assert served.tolist() == np.flatnonzero(can).tolist()
    if len(served) == 0:
        return
    for k in range(len(machines)):
        for place in range(1, len(time) + 1):
            assert ((column == k) & (position == place)).sum() <= machines[k]
    # One column for each server and position, as the paper's matrix has it.
    places = np.arange(1, len(served) + 1)
    matrix = np.hstack([time[served][:, [k]] * np.repeat(places, m) for k, m in enumerate(machines)])
    wanted = cheapest_assignment(np.where(np.isfinite(matrix), matrix, 1e5))
    assert (time[served, column[served]] * position[served]).sum() == pytest.approx(wanted, rel=1e-8)


@settings(max_examples=60)
@given(queues(), st.integers(0, 2**32 - 1))
def test_no_queues_of_machines_that_are_free_later_finish_sooner(queue: tuple[Floats, Ints], seed: int) -> None:
    """Places of a position are taken in order of when machines are free; many are free at the same time."""
    time, machines = queue
    rng = np.random.default_rng(seed)
    free_in = np.sort(np.round(rng.uniform(0, 6, (len(machines), 1 + int(machines.max()))), int(rng.integers(0, 2))))
    column, position = soonest(time, machines, free_in)
    served = np.flatnonzero(column >= 0)
    if len(served) == 0:
        return
    found = (time[served, column[served]] * position[served]).sum()
    for k in range(len(machines)):
        for place in range(1, len(time) + 1):
            used = ((column == k) & (position == place)).sum()
            assert used <= machines[k]
            found += free_in[k, :used].sum()
    places = np.arange(1, len(served) + 1)
    matrix = np.hstack(
        [time[served][:, [k]] * place + free_in[k, :m] for k, m in enumerate(machines.tolist()) for place in places]
    )
    wanted = cheapest_assignment(np.where(np.isfinite(matrix), matrix, 1e5))
    assert found == pytest.approx(wanted, rel=1e-8)
