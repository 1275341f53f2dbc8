"""Idle accelerator-seconds by cause."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.lost_time import idle_by_cause
from eunomia.model.decisions import Decision, Refuse, Start, Starts, Stop
from eunomia.model.events import Event, JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology

NOTHING = (np.zeros(1), np.zeros(1))
ALWAYS = (np.array([-math.inf]), np.array([math.inf]))


def curve(*points: tuple[float, float]) -> Any:
    at, value = zip(*points, strict=True)
    return np.array(at), np.array(value)


def test_idle_seats_of_a_cluster_of_four_by_hand() -> None:
    # at 0 a gang of 3 starts; at 10 a gang of 2 comes and does not fit beside it; at 20 the first ends,
    # at 25 the second starts, for 5 s; then no job is left
    busy = curve((0.0, 3), (20.0, 0), (25.0, 2), (30.0, 0))
    least = curve((-math.inf, math.inf), (10.0, 2.0), (25.0, math.inf))
    idle = idle_by_cause(np.array([4.0]), [busy], [NOTHING], least, 0.0, 40.0)
    assert idle == {"no_demand": 10 + 2 * 5 + 4 * 10, "fragmentation": 10, "held_back": 4 * 5, "out_of_service": 0}


def test_what_is_out_of_service_is_not_idle() -> None:
    gone = [NOTHING, curve((5.0, -2), (8.0, 0))]
    idle = idle_by_cause(np.array([4.0, 2.0]), [NOTHING, NOTHING], gone, curve((0.0, 1.0)), 0.0, 10.0)
    assert idle == {"no_demand": 0, "fragmentation": 0, "held_back": 54, "out_of_service": 6}


def test_time_before_the_first_submission_does_not_count() -> None:
    idle = idle_by_cause(np.array([1.0]), [curve((5.0, 1))], [NOTHING], ALWAYS, 5.0, 9.0)
    assert set(idle.values()) == {0.0}


def test_a_cluster_without_jobs_has_no_demand() -> None:
    assert idle_by_cause(np.array([3.0]), [NOTHING], [NOTHING], ALWAYS, 0.0, 2.0)["no_demand"] == 6.0


POINTS = st.lists(st.tuples(st.floats(0, 100), st.integers(0, 8)), min_size=1, max_size=8, unique_by=lambda p: p[0])


@given(POINTS, POINTS, st.lists(st.tuples(st.floats(0, 100), st.sampled_from([1.0, 3.0, 9.0, math.inf])), min_size=1))
def test_busy_idle_and_lost_seats_are_all_there_are(busy: Any, gone: Any, least: Any) -> None:
    busy, away, least = curve(*sorted(busy)), curve(*sorted((at, -n) for at, n in gone)), curve(*sorted(least))
    idle = idle_by_cause(np.array([16.0]), [busy], [away], least, 0.0, 200.0)
    at, value = np.append(busy[0], 200.0), busy[1]
    assert sum(idle.values()) + (value * np.diff(at)).sum() == pytest.approx(16 * 200.0)
    assert min(idle.values()) >= 0


# ---- narrowest waiting gang ------------------------------------------------------------------------------------------


def narrowest(*moments: tuple[float, list[Event], list[Decision]]) -> list[tuple[float, float]]:
    collector = MetricsCollector(Topology.of([Node(type="gpu", accelerators=4)]))
    for at, events, decisions in moments:
        collector.observe(Moment.of(at, events), decisions)
    times, least = collector.narrowest()
    return list(zip(times.tolist(), least.tolist(), strict=True))


def comes(name: str, size: int, retries: int = 0) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, total_steps=1.0, submitted=0.0, scale_factor=size, retries=retries))


def test_the_narrowest_gang_that_waits_is_known_at_all_times() -> None:
    started = Starts.of(Start("a", 1, (0, 1), math.inf))
    assert narrowest(
        (0.0, [comes("a", 2), comes("b", 4)], [started]),
        (5.0, [comes("c", 1)], []),
        (6.0, [JobCancelled("c")], []),
        (7.0, [], [Stop(("a",), (1,))]),
        (9.0, [], [Refuse("a", "why"), Start("b", 1, (0, 1, 2, 3), math.inf)]),
    ) == [(0.0, 4.0), (5.0, 1.0), (6.0, 4.0), (7.0, 2.0), (9.0, math.inf)]


def test_a_job_that_failed_waits_while_it_has_retries() -> None:
    start = Start("a", 1, (0, 1), math.inf)
    assert narrowest(
        (0.0, [comes("a", 2, retries=1)], [start]),
        (1.0, [JobFailed("a", 1, "x")], []),
        (2.0, [], [start]),
        (3.0, [JobFailed("a", 2, "x")], []),
    ) == [(0.0, math.inf), (1.0, 2.0), (2.0, math.inf)]


def test_a_running_job_that_is_cancelled_does_not_wait_though_it_is_stopped_then() -> None:
    assert narrowest(
        (0.0, [comes("a", 2)], [Start("a", 1, (0, 1), math.inf)]),
        (1.0, [JobCancelled("a")], [Stop(("a",), (1,), save=False)]),
    ) == [(0.0, math.inf)]


def test_of_two_that_share_neither_waits() -> None:
    pair = Starts.of(Start("a", 1, (0,), math.inf, 0, "b", 1))
    assert narrowest(
        (0.0, [comes("a", 1), comes("b", 1)], []),
        (1.0, [], [pair]),
        (2.0, [JobFinished("a", 1)], []),
    ) == [(0.0, 1.0), (1.0, math.inf)]


def test_held_is_useful_and_lost() -> None:
    assert HeldTime(5.0, {"start": 1.0, "sharing": -0.5}).held == 5.5
