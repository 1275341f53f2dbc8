"""Machines that go and come back, and word that comes late."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.backends.simulated.outages import Fault, Outages, Rate
from eunomia.backends.simulated.report_latency import ReportLatency
from eunomia.model.topology import Node, Topology

RACKS = Topology.of([Node(type="v100", accelerators=2, rack=rack) for rack in "aabbb"])
NEVER = Rate()


def story(outages: Outages, until: float) -> list[tuple[float, Fault, list[int]]]:
    """Let faults happen in order of time."""
    waiting, reported = outages.first(), []
    while waiting:
        waiting.sort(key=lambda each: each[0])
        at, fault = waiting.pop(0)
        if at > until:
            break
        nodes, when, following = outages.happen(at, fault)
        reported.append((at, fault, nodes))
        waiting.append((when, following))
    return reported


def test_a_cluster_that_never_fails_has_no_faults() -> None:
    assert Outages(RACKS, NEVER, NEVER, np.random.SeedSequence(0)).first() == []


def test_a_rack_takes_all_its_machines_with_it_and_brings_them_back() -> None:
    outages = Outages(RACKS, NEVER, Rate(per_hour=1.0, repair_s=60.0), np.random.SeedSequence(0))
    reported = story(outages, 20 * 3600.0)
    assert {tuple(nodes) for _, _, nodes in reported} == {(0, 1), (2, 3, 4)}
    rack_a = [(at, fault.down) for at, fault, nodes in reported if nodes == [0, 1]]
    assert [down for _, down in rack_a[:4]] == [True, False, True, False]
    assert rack_a[1][0] - rack_a[0][0] == pytest.approx(60.0)


def test_machines_are_lost_as_often_as_the_rate_says() -> None:
    outages = Outages(RACKS, Rate(per_hour=0.5, repair_s=0.0), NEVER, np.random.SeedSequence(2))
    losses = sum(fault.down for _, fault, _ in story(outages, 1000 * 3600.0))
    assert losses == pytest.approx(5 * 500, rel=0.05)


def test_repairs_last_as_long_on_average_as_they_should() -> None:
    rate, rng = Rate(per_hour=1.0, repair_s=600.0, fixed=False), np.random.default_rng(0)
    assert np.mean([rate.until_repair(rng) for _ in range(20_000)]) == pytest.approx(600, rel=0.03)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 50), st.floats(0.1, 50), st.booleans())
def test_a_machine_that_is_down_goes_down_no_further_and_comes_back_once(
    seed: int, node: float, rack: float, fixed: bool
) -> None:
    rates = [Rate(per_hour=per_hour, repair_s=900.0, fixed=fixed) for per_hour in (node, rack)]
    down: set[int] = set()
    for _, fault, nodes in story(Outages(RACKS, *rates, np.random.SeedSequence(seed)), 6 * 3600.0):
        assert down.isdisjoint(nodes) if fault.down else down.issuperset(nodes)
        down = down | set(nodes) if fault.down else down - set(nodes)


def test_faults_of_one_machine_do_not_depend_on_how_many_others_there_are() -> None:
    few = Topology.of([Node(type="v100", accelerators=2)] * 2)
    times = [dict(Outages(t, Rate(per_hour=1.0), NEVER, np.random.SeedSequence(7)).first()) for t in (RACKS, few)]
    assert set(times[1]) <= set(times[0])


def test_word_comes_at_once_unless_it_is_slow() -> None:
    assert ReportLatency().perfect
    assert ReportLatency().arrives_at(12.0, np.random.default_rng(0)) == 12.0


def test_lost_word_is_found_when_the_scheduler_next_asks_around() -> None:
    lost = ReportLatency(lost=1.0, reconcile_s=100.0)
    rng = np.random.default_rng(0)
    assert [lost.arrives_at(at, rng) for at in (0.0, 99.0, 100.0, 250.0)] == [100.0, 100.0, 200.0, 300.0]


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_no_word_comes_before_what_it_tells_of(at: float, delay: float, lost: float, seed: int) -> None:
    reports = ReportLatency(delay_s=delay, lost=lost, reconcile_s=50.0)
    assert reports.arrives_at(at, np.random.default_rng(seed)) >= at


def test_a_machine_that_is_shut_out_is_back_when_nothing_else_keeps_it() -> None:
    outages = Outages(RACKS, Rate(per_hour=1.0), NEVER, np.random.SeedSequence(0))
    assert outages.take_down([0, 1]) == [0, 1]
    assert outages.happen(5.0, Fault(0, True))[0] == []  # its own fault finds it gone
    assert outages.take_down([1]) == []  # and a second error
    assert outages.bring_up([0, 1]) == []
    assert outages.happen(9.0, Fault(0, False))[0] == [0]
    assert outages.bring_up([1]) == [1]
