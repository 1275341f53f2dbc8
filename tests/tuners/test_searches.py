"""Searches by hand: who is given up, when, and what the app has found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.curves import Curve, curve_of
from eunomia.model.events import AppFinished, JobCancelled, JobUpdated
from eunomia.model.job import Job
from eunomia.tuners.halving import Halving, brackets_of, rungs_of
from eunomia.tuners.hyperdrive import HyperDrive, foretold, threshold
from eunomia.tuners.trials import Trials
from eunomia.tuners.tuner import Tuner, Wishes


def trials(count: int, steps: float = 81.0) -> list[Job]:
    return [Job(job_id=f"t{m:02}", total_steps=steps, app="a", sequence=m) for m in range(count)]


def cancelled(wishes: Wishes) -> list[str]:
    return [event.job_id for event in wishes.events if isinstance(event, JobCancelled)]


def found(wishes: Wishes) -> list[AppFinished]:
    return [event for event in wishes.events if isinstance(event, AppFinished)]


def test_a_search_without_halving_ends_with_its_last_trial_and_finds_the_best() -> None:
    search = Trials()
    search.begin("a", trials(3))
    assert found(search.ended("t00", 0.5)) == []
    assert found(search.ended("t01", 0.2)) == []
    assert found(search.ended("t02", math.nan)) == [AppFinished("a", "t01", 0.2)]


@pytest.mark.parametrize(
    ("count", "eta", "rungs"), [(81, 3, 4), (80, 3, 3), (27, 3, 3), (1, 3, 0), (2, 3, 0), (8, 2, 3)]
)
def test_there_are_as_many_rungs_as_one_can_divide(count: int, eta: int, rungs: int) -> None:
    assert rungs_of(count, eta) == rungs


def test_hyperbands_brackets_of_its_paper() -> None:
    """R = 81 and η = 3: 81, 34, 15, 8 and 5 trials with 4, 3, 2, 1 and 0 rungs below the top."""
    assert brackets_of(81 + 34 + 15 + 8 + 5, 3) == [(81, 4), (34, 3), (15, 2), (8, 1), (5, 0)]


def test_a_trial_is_watched_at_the_rungs_of_its_paper() -> None:
    """81 trials of 81 steps: 1, 3, 9, 27 and 81 steps."""
    search = Halving(3)
    assert set(search.begin("a", trials(81)).watch.values()) == {1.0}
    assert search.measured("t00", 1.0, 0.1).watch == {"t00": 3.0}
    assert search.measured("t00", 3.0, 0.1).watch == {"t00": 9.0}


def test_a_trial_goes_when_enough_others_are_known_to_be_better() -> None:
    search = Halving(3)
    search.begin("a", trials(9))
    assert cancelled(search.measured("t00", 9.0, 0.9)) == []
    assert cancelled(search.measured("t01", 9.0, 0.8)) == []
    assert cancelled(search.measured("t02", 9.0, 0.7)) == []  # three go on, and these may be they
    assert cancelled(search.measured("t03", 9.0, 0.6)) == ["t00"]
    assert cancelled(search.measured("t04", 9.0, 0.95)) == ["t04"]


def test_who_waits_for_nobody_goes_at_once_if_it_is_not_among_the_best_so_far() -> None:
    search = Halving(3, waits=False)
    search.begin("a", trials(9))
    assert cancelled(search.measured("t00", 9.0, 0.5)) == []
    assert cancelled(search.measured("t01", 9.0, 0.6)) == ["t01"]
    assert cancelled(search.measured("t02", 9.0, 0.4)) == []
    assert cancelled(search.measured("t03", 9.0, 0.45)) == ["t03"]


def test_what_a_trial_is_expected_to_do_grows_as_it_rises() -> None:
    """9 trials of 9 steps, η = 3: 1 + 2/3 + 6/9 steps at first, 1 + 2 + 6/3 after the first rung."""
    search = Halving(3)
    jobs = trials(9, 9.0)
    search.begin("a", jobs)
    assert list(search.submitted(jobs[0]).events) == [JobUpdated("t00", total_steps=pytest.approx(1 + 2 / 3 + 6 / 9))]
    (update,) = search.measured("t00", 1.0, 0.5).events
    assert update == JobUpdated("t00", total_steps=pytest.approx(1 + 2 + 6 / 3))


def play(
    search: Tuner, jobs: Sequence[Job], curves: Mapping[str, Curve], order: Sequence[int]
) -> tuple[set[str], list[AppFinished]]:
    """Let trials run side by side, each to its next report in a drawn order; return who finished, and the end."""
    watch = dict(search.begin("a", jobs).watch)
    alive = {job.job_id: job for job in jobs}
    finished: set[str] = set()
    ends: list[AppFinished] = []
    turn = 0
    while alive:
        name = sorted(alive)[order[turn % len(order)] % len(alive)]
        turn += 1
        job = alive[name]
        steps = watch.pop(name, math.inf)
        if steps < job.total_steps:
            wishes = search.measured(name, steps, float(curves[name].loss(steps / job.total_steps)))
        else:
            del alive[name]
            finished.add(name)
            wishes = search.ended(name, float(curves[name].loss(1.0)))
        watch |= wishes.watch
        for gone in cancelled(wishes):
            del alive[gone]
        ends += found(wishes)
    return finished, ends


def survivors(jobs: Sequence[Job], curves: Mapping[str, Curve], eta: int) -> set[str]:
    """Return who comes to the end when all wait for all at every rung."""
    left = [job.job_id for job in jobs]
    rungs = rungs_of(len(jobs), eta)
    for rung in range(rungs):
        progress = float(eta) ** (rung - rungs)
        left.sort(key=lambda name: (curves[name].loss(progress), name))
        left = left[: max(len(left) // eta, 1)]
    return set(left)


@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 50), min_size=1))
def test_however_trials_overtake_each_other_the_same_survive_as_if_all_had_waited(
    count: int, eta: int, seed: int, order: list[int]
) -> None:
    jobs = trials(count)
    curves = {job.job_id: curve_of(seed, job.job_id) for job in jobs}
    finished, ends = play(Halving(eta), jobs, curves, order)
    expected = survivors(jobs, curves, eta)
    assert finished >= expected  # some may have come to their end before it was known that they lose
    assert len(ends) == 1
    best = min(finished, key=lambda name: (curves[name].loss(1.0), name))
    assert ends[0].best == best


@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 50), min_size=1))
def test_every_search_ends_once(count: int, seed: int, order: list[int]) -> None:
    jobs = trials(count)
    curves = {job.job_id: curve_of(seed, job.job_id) for job in jobs}
    target = min(float(curve.loss(0.8)) for curve in curves.values())
    for search in (Halving(3, waits=False), Halving(3, brackets=True), HyperDrive(target)):
        assert len(play(search, jobs, curves, order)[1]) == 1


def test_a_trial_that_failed_holds_up_nobody() -> None:
    search = Halving(3)
    search.begin("a", trials(3))
    search.measured("t00", 27.0, 0.9)
    assert cancelled(search.measured("t01", 27.0, 0.5)) == ["t00"]
    assert found(search.ended("t02", math.nan)) == []
    assert found(search.ended("t01", 0.4)) == [AppFinished("a", "t01", 0.4)]


def test_promising_is_what_gives_most_dedicated_slots() -> None:
    """Ten slots and chances .9 .8 .6 .3 .1 .05: at .6 three are desired and six deserved, at .3 four and three."""
    assert threshold([0.9, 0.8, 0.6, 0.3, 0.1, 0.05], 10) == (0.6, 3)


@given(st.floats(0.01, 0.9), st.floats(0.5, 200.0), st.integers(1, 7))
def test_three_points_of_a_curve_foretell_its_end(floor: float, rate: float, at: int) -> None:
    curve = Curve(1.0, floor, rate)
    points = [(p / 10, float(curve.loss(p / 10))) for p in range(at, at + 3)]
    assert foretold(points) == pytest.approx(float(curve.loss(1.0)), rel=1e-5)


def test_a_search_is_over_when_a_trial_reaches_the_target() -> None:
    search = HyperDrive(0.25)
    search.begin("a", trials(3))
    wishes = search.measured("t01", 8.1, 0.2)
    assert cancelled(wishes) == ["t00", "t01", "t02"]
    assert found(wishes) == [AppFinished("a", "t01", 0.2)]


def test_a_poor_trial_is_given_up_and_a_promising_one_weighs_more() -> None:
    search = HyperDrive(0.25)
    search.begin("a", trials(2))
    good, bad = Curve(1.0, 0.2, 20.0), Curve(1.0, 0.8, 20.0)
    seen = []
    for report in range(1, 6):
        for name, curve in (("t00", good), ("t01", bad)):
            wishes = search.measured(name, 8.1 * report, float(curve.loss(report / 10)))
            seen += list(wishes.events)
    assert [event.job_id for event in seen if isinstance(event, JobCancelled)] == ["t01"]
    assert JobUpdated("t00", weight=4.0) in seen


def test_a_curve_is_its_runs_own() -> None:
    assert curve_of(0, "x") == curve_of(0, "x") != curve_of(0, "y")
    assert curve_of(1, "x") != curve_of(0, "x")
    curve = curve_of(3, "z")
    assert curve.loss(curve.reaches(0.9)) == pytest.approx(0.9)
    assert curve.reaches(curve.floor) == math.inf
