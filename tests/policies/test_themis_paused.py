"""What an app's paused trials have before them, by hand: what the core tells of it, and what Themis makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.watched import Watched

from eunomia.model.apps import PausedJobs
from eunomia.model.events import (
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
)
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import HOLDS, AuctionState, ended_leases, offers, read_state, unfinished_jobs
from eunomia.policies.grants.themis.bidding import bid_tables
from eunomia.policies.grants.themis.shapes import gang_sizes
from eunomia.policies.grants.themis.themis import Themis
from eunomia.testing.small_worlds import DrawnRates


def twelve() -> Watched:
    """Return four fast and eight slow accelerators. A job makes 2 steps/s on the fast ones and 1 on the slow ones."""
    nodes = [Node(type="fast", accelerators=4), Node(type="slow", accelerators=8)]
    return Watched(nodes, DrawnRates(types=("fast", "slow"), by_kind={"": (2.0, 1.0)}))


def come(name: str, steps: float, size: int, app: str = "search") -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, app=app, total_steps=steps, scale_factor=size))


def facts(view: View) -> list[list[float]]:
    """Return app, gang, steps left and in all of each paused job."""
    paused = view.apps.paused
    return np.stack((paused.app, paused.scale_factor, paused.remaining, paused.total), axis=1).tolist()


def test_a_paused_job_is_reported_with_its_app_and_only_while_it_rests() -> None:
    """a makes 2 steps/s on the fast accelerators: at 30 s it has done 60 of 200; resting adds nothing."""
    world = twelve()
    view = world.tell(0, come("a", 200, 4), come("b", 1000, 1), come("c", 1e4, 8, app="x"))
    assert facts(view) == []
    view = world.tell(30, JobPaused("a"))
    assert view.apps.names == ("search", "x")
    assert facts(view) == [[0, 4, 140, 200]]
    assert view.apps.paused.throughput.tolist() == [[2.0, 1.0]]
    assert view.apps.service.tolist() == [0, 0]
    view = world.tell(50, JobUpdated("a", total_steps=300.0), come("d", 1, 1, app="y"))
    assert facts(view) == [[0, 4, 240, 300]]  # its user thinks otherwise of it meanwhile
    view = world.tell(60, JobResumed("a"))
    assert facts(view) == []
    assert view.remaining[0] == 240
    view = world.tell(70, JobPaused("a"), JobPaused("b"))
    assert view.apps.names == ("x", "y")  # no trial of the search is present
    assert facts(view) == []


def test_of_a_paused_job_that_is_given_up_nothing_is_left_but_what_it_attained() -> None:
    world = twelve()
    world.tell(0, come("a", 200, 4), come("b", 1e4, 1), come("z", 1e4, 1, app="z"))
    world.tell(30, JobPaused("a"))
    view = world.tell(40, JobCancelled("a"), come("c", 5, 1, app="z"))
    assert facts(view) == []
    assert view.apps.service.tolist() == [30 * 4, 0]
    view = world.tell(60, come("d", 5, 1, app="z"))
    assert view.apps.mean_rivals.tolist() == [2, 2]  # b was there all the time


def test_paused_jobs_of_other_apps_are_not_reported() -> None:
    world = twelve()
    world.tell(0, come("a", 200, 1, "x"), come("b", 100, 1, "y"), come("c", 300, 1, "z"), come("d", 50, 1, "z"))
    view = world.tell(10, JobPaused("b"), JobPaused("d"))
    assert view.apps.names == ("x", "z")
    assert [row[0] for row in facts(view)] == [1]


# ---- what Themis makes of it --------------------------------------------------------------------------------------


def shown(view: View) -> View:
    columns = {name: view.columns[name] for name in Themis.info.needs}
    return replace(view, columns=columns, memory={"held_until": np.full(view.jobs, -HOLDS)})


def seen_in(view: View) -> AuctionState:
    ended = ended_leases(view)
    return read_state(shown(view), ended, offers(view, ended))


def test_paused_work_has_to_be_done_on_the_seats_that_the_app_holds() -> None:
    """Four fast accelerators: a takes them all, 100 s alone, and rests from 30 s on with 70 s left, 280
    accelerator-seconds. b, alone 500 s on one of them, sits from then on and has 490 s left at 40 s. On one seat both
    take 770 s more. T_cluster: b's 500 s, for all is 900 accelerator-seconds on five.
    """
    world = twelve()
    world.tell(0, come("a", 200, 4), come("b", 1000, 1))
    world.tell(30, JobPaused("a"))
    seen = seen_in(world.tell(40, come("c", 10, 1, app="x")))
    assert seen.paused.tolist() == [280.0, 0.0]
    assert seen.least.tolist() == [490.0, 5.0]
    assert seen.ideal.tolist() == [500.0, 2 * 5.0 / 2]
    assert seen.rho()[0].tolist() == [(40 + 770) / 500, 1e6]


def of_one_app(remaining: Sequence[float], size: Sequence[int], paused: PausedJobs, capacity: int) -> AuctionState:
    """Return what Themis sees of an app of these jobs, all of which wait, one step a second, nothing done yet."""
    jobs = len(remaining)
    world = twelve()
    view = shown(world.tell(0, *[come(f"j{m}", remaining[m], size[m]) for m in range(jobs)]))
    node = Node(type="fast", accelerators=capacity)
    columns = {
        **view.columns,
        "throughput": np.ones((jobs, 1)),
        "capacity": np.array([float(capacity)]),
        "topology": Topology.of([node]),
        "holder": np.full(capacity, -1),
        "on_type": np.full(jobs, -1),
        "apps": replace(view.apps, paused=paused),
    }
    return seen_in(replace(view, types=("fast",), columns=columns))


def test_a_row_of_a_bid_does_not_divide_paused_work_among_seats_that_it_does_not_take() -> None:
    """Two gangs of 2 with 100 s each wait, a paused one of 4 has 50 s, 200 accelerator-seconds. T_cluster on eight:
    600 / 8 = 75 s, the longest 100 s. One seated: 600 / 2 = 300 s, both: 600 / 4 = 150 s.
    """
    paused = PausedJobs(np.array([0]), np.array([4]), np.array([50.0]), np.array([50.0]), np.ones((1, 1)))
    seen = of_one_app([100.0, 100.0], [2, 2], paused, 8)
    assert seen.ideal.tolist() == [100.0]
    tables = bid_tables(seen, np.array([0]), seen.by_unit(seen.offered))
    rho = dict(zip(tables.count.tolist(), tables.rho.tolist(), strict=True))
    assert rho == {0: 1e6, 1: pytest.approx(3.0), 2: pytest.approx(1.5)}
    without = of_one_app([100.0, 100.0], [2, 2], PausedJobs.none(1), 8)
    tables = bid_tables(without, np.array([0]), without.by_unit(without.offered))
    assert tables.rho.tolist() == pytest.approx([1e6, 2.0, 1.0])


def test_an_app_is_not_done_before_its_longest_job_could_be_at_best() -> None:
    """Gangs of 2 with 60, 60 and 300 s, taken in that order, 840 accelerator-seconds. One seated: 420 s. Two: 210 s,
    but the third takes 300 s in any case. Three: still 300 s, no more than with two.
    """
    seen = of_one_app([60.0, 60.0, 300.0], [2, 2, 2], PausedJobs.none(1), 8)
    tables = bid_tables(seen, np.array([0]), seen.by_unit(seen.offered))
    assert seen.ideal.tolist() == [300.0]
    assert tables.rho.tolist() == pytest.approx([1e6, 420 / 300, 1.0, 1.0])
    paused = PausedJobs(np.array([0]), np.array([2]), np.array([300.0]), np.array([300.0]), np.ones((1, 1)))
    resting = of_one_app([60.0, 60.0], [2, 2], paused, 8)  # the third is paused
    assert resting.ideal.tolist() == [300.0]
    tables = bid_tables(resting, np.array([0]), resting.by_unit(resting.offered))
    assert tables.rho.tolist() == pytest.approx([1e6, 420 / 300, 1.0])


def test_a_paused_job_counts_on_the_fastest_type_that_could_give_it_seats() -> None:
    """A gang of 8 does not fit on the four fast accelerators: 100 steps are 100 s on the slow ones."""
    world = twelve()
    view = world.tell(0, come("a", 100, 8), come("b", 10, 1))
    view = world.tell(0, JobPaused("a"), come("c", 10, 1))
    jobs = unfinished_jobs(shown(view), gang_sizes(shown(view)))
    assert (jobs.jobs, jobs.app.tolist(), jobs.time.tolist()) == (2, [0, 0, 0], [5.0, 5.0, 100.0])
    assert seen_in(view).paused.tolist() == [800.0]


@pytest.mark.parametrize("seed", range(12))
def test_a_pause_changes_nothing_of_the_time_alone_and_nothing_once_it_is_over(seed: int) -> None:
    """Trials of two searches are paused and resumed at random. Time alone and what is left in all stay what they would
    be if every job only waited, and what is reported of paused jobs is what is reported of them once resumed.
    """
    rng = np.random.default_rng(seed)
    world, names = twelve(), [f"t{m}" for m in range(8)]
    drawn = zip(rng.integers(50, 900, 8).tolist(), rng.integers(1, 4, 8).tolist(), strict=True)
    jobs = [come(names[m], steps, size, app="xy"[m % 2]) for m, (steps, size) in enumerate(drawn)]
    view, resting = world.tell(0, *jobs, come("u", 1e5, 8, "x"), come("v", 1e5, 1, "y")), set[str]()
    alone = _alone(view)
    for at in range(1, 25):
        some = [str(name) for name in rng.choice(names, 3, replace=False)]
        view = world.tell(at, *[JobResumed(name) if name in resting else JobPaused(name) for name in some])
        resting ^= set(some)
        assert len(view.apps.paused.app) == len(resting)
        np.testing.assert_allclose(_alone(view), alone)
    reported, left = view.apps.paused, _left(view)
    order = [names.index(name) for name in sorted(resting)]
    assert reported.total.tolist() == [jobs[m].job.total_steps for m in order]
    view = world.tell(24, *[JobResumed(name) for name in sorted(resting)])
    assert not len(view.apps.paused.app)
    back = view.remaining[order]
    np.testing.assert_allclose(back, reported.remaining)
    np.testing.assert_allclose(_left(view), left)


def _alone(view: View) -> np.ndarray:
    """Return the time alone on the whole cluster of each app."""
    ended = ended_leases(view)
    seen = read_state(shown(view), ended, offers(view, ended), "longest")
    return np.asarray(seen.ideal / seen.view.apps.mean_rivals)


def _left(view: View) -> np.ndarray:
    """Return the accelerator-seconds that each app has left on its jobs' fastest types."""
    seen = seen_in(view)
    return np.asarray(seen.paused + np.bincount(view.app, seen.work, len(seen.paused)))
