"""Gangs with a maximum number of steps: they idle on their seats after it, and steps are counted exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.backends.simulated import Simulation
from eunomia.model.decisions import Decision, Refuse, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import JobFinished, Moment, Progressed
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Node, Topology
from eunomia.testing.small_worlds import DrawnRates

TWO = Topology.of([Node(type="gpu", accelerators=2)])
THIRDS = DrawnRates(types=("gpu",), by_kind={"": (1 / 3,)}, shared=0.5)


def simulated(
    script: Mapping[float, Sequence[Decision]],
    *jobs: Job,
    speeds: DrawnRates = THIRDS,
    overheads: Overheads | None = None,
) -> list[Moment]:
    """Carry out the decisions of a script at their times; return the moments."""
    world = Simulation(jobs, TWO, speeds, overheads=overheads)
    due = sorted(script)
    story = []
    for moment in world.moments():
        story.append(moment)
        if due and due[0] <= moment.at:
            for order in script[due.pop(0)]:
                world.carry_out(order)
            if due:
                world.carry_out(SetTimer(due[0]))
    return story


def finishes(story: Sequence[Moment]) -> dict[str, float]:
    return {e.job_id: m.at for m in story for e in m.events if isinstance(e, JobFinished)}


def progress(story: Sequence[Moment]) -> list[tuple[float, str, float]]:
    """Return (at, job, steps safe) of every report."""
    return [
        (m.at, name, float(steps))
        for m in story
        for e in m.events
        if isinstance(e, Progressed)
        for name, steps in zip(e.job_ids, e.steps, strict=True)
    ]


def job(name: str, steps: float, sequence: int = 0) -> Job:
    return Job(job_id=name, total_steps=steps, sequence=sequence)


def test_a_gang_that_has_done_its_steps_idles_on_its_seats() -> None:
    """7 steps take 21 s; it is stopped at 360 s and has done 7, not 120."""
    story = simulated({0: [Start("a", 1, (0,), 360.0, max_steps=7.0)], 360: [Stop(("a",), (1,))]}, job("a", 1000))
    assert progress(story) == [(360, "a", 7.0)]
    assert finishes(story) == {}


def test_the_steps_of_a_lease_are_counted_exactly_and_the_job_ends_with_its_last() -> None:
    """11 + 11 + 11 steps at 1/3 step/s in leases of 33 s; no rounding adds up, and the last 3 of 36 take 9 s more."""
    more = Renew(("a",), math.inf, np.array([11.0]))
    script = {0: [Start("a", 1, (0,), math.inf, max_steps=11.0)]} | {33.0 * k: [more] for k in (1, 2, 3)}
    assert finishes(simulated(script, job("a", 36))) == {"a": 99 + 3 / (1 / 3)}


def test_a_job_whose_last_steps_are_all_it_may_do_ends() -> None:
    story = simulated({0: [Start("a", 1, (0,), 360.0, max_steps=36.0)]}, job("a", 36))
    assert finishes(story) == {"a": 36 / (1 / 3)}


def test_steps_begin_after_the_overhead() -> None:
    script = {0: [Start("a", 1, (0,), 360.0, max_steps=2.0)], 15: [Stop(("a",), (1,))]}
    story = simulated(script, job("a", 100), overheads=Overheads(start_s=10.0))
    assert progress(story) == [(15, "a", (15 - 10) * (1 / 3))]


def test_a_renewal_counts_from_now_and_one_without_a_number_lifts_the_limit() -> None:
    """10 steps by 30 s; at 60 s 5 more, done at 75 s; at 90 s as many as it likes: the last 15 end at 90 + 45 s."""
    script: dict[float, list[Decision]] = {
        0: [Start("a", 1, (0,), math.inf, max_steps=10.0)],
        60: [Renew(("a",), math.inf, np.array([5.0]))],
        90: [Renew(("a",), math.inf)],
    }
    assert finishes(simulated(script, job("a", 30))) == {"a": 90 + 15 / (1 / 3)}


def test_a_renewal_sets_the_steps_of_each_job_of_a_pair() -> None:
    """Both go at 1/6 step/s. a may do 2 steps and idles; b ends after 6 beside it, and a stays idle."""
    both = Start("a", 1, (0,), math.inf, partner_id="b", partner_epoch=1)
    script: dict[float, list[Decision]] = {
        0: [both, Renew(("a", "b"), math.inf, np.array([2.0, 6.0]))],
        60: [Stop(("a",), (1,))],
    }
    story = simulated(script, job("a", 100), job("b", 6, 1))
    assert finishes(story) == {"b": 6 / (1 / 6)}
    assert progress(story) == [(60, "a", 2.0)]


def test_many_gangs_are_started_by_one_decision() -> None:
    many = Starts.of(Start("a", 1, (0,), math.inf, max_steps=3.0), Start("b", 1, (1,), math.inf))
    story = simulated({0: [many], 60: [Stop(("a",), (1,))]}, job("a", 30), job("b", 30, 1))
    assert progress(story) == [(60, "a", 3.0)]
    assert finishes(story) == {"b": 30 / (1 / 3)}


def test_a_job_that_is_dropped_while_it_runs_leaves_its_seats() -> None:
    story = simulated({0: [Start("a", 1, (0,), math.inf)], 30: [Refuse("a", "dropped")]}, job("a", 30), job("b", 1, 1))
    assert finishes(story) == {}


def test_a_job_that_an_order_to_stop_names_twice_stops_once() -> None:
    story = simulated({0: [Start("a", 1, (0,), 360.0)], 30: [Stop(("a", "a"), (1, 1))]}, job("a", 1000))
    assert progress(story) == [(30.0, "a", 10.0)]
