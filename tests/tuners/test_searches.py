"""Tuners by hand: which trials are cancelled, when, and the result of the app."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.curves import Curve, curve_of
from eunomia.model.events import AppFinished, JobCancelled, JobPaused, JobResumed, JobUpdated
from eunomia.model.job import Job
from eunomia.tuners.brackets import brackets_of, rungs_of
from eunomia.tuners.halving import Halving
from eunomia.tuners.hyperdrive import HyperDrive, predict_loss, threshold
from eunomia.tuners.late_promotion import LatePromotion, OpenRungs
from eunomia.tuners.tuner import Trials, Tuner, TunerRequests


def trials(count: int, steps: float = 81.0) -> list[Job]:
    return [Job(job_id=f"t{m:02}", total_steps=steps, app="a", sequence=m) for m in range(count)]


def cancelled(wishes: TunerRequests) -> list[str]:
    return [event.job_id for event in wishes.events if isinstance(event, JobCancelled)]


def found(wishes: TunerRequests) -> list[AppFinished]:
    return [event for event in wishes.events if isinstance(event, AppFinished)]


def test_a_search_without_halving_ends_with_its_last_trial_and_finds_the_best() -> None:
    search = Trials()
    search.begin("a", trials(3))
    assert found(search.ended("t00", 0.5)) == []
    assert found(search.ended("t01", 0.2)) == []
    assert found(search.ended("t02", math.nan)) == [AppFinished("a", "t01", 0.2)]


def test_the_last_trial_counts_also_if_it_ends_before_it_was_seen_on_its_rung() -> None:
    search = Halving(2)
    search.begin("a", trials(2, 8.0))
    assert found(search.ended("t00", 0.5)) == []
    assert found(search.ended("t01", 0.2)) == [AppFinished("a", "t01", 0.2)]


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
    search = Halving(3, pauses=False)
    assert set(search.begin("a", trials(81)).watch.values()) == {1.0}
    assert search.measured("t00", 1.0, 0.1).watch == {"t00": 3.0}
    assert search.measured("t00", 3.0, 0.1).watch == {"t00": 9.0}


def test_without_pauses_a_trial_is_cancelled_when_enough_others_are_known_to_be_better() -> None:
    search = Halving(3, pauses=False)
    search.begin("a", trials(9))
    assert cancelled(search.measured("t00", 9.0, 0.9)) == []
    assert cancelled(search.measured("t01", 9.0, 0.8)) == []
    assert cancelled(search.measured("t02", 9.0, 0.7)) == []  # three go on, and these may be they
    assert cancelled(search.measured("t03", 9.0, 0.6)) == ["t00"]
    assert cancelled(search.measured("t04", 9.0, 0.95)) == ["t04"]


def test_asha_cancels_a_trial_at_once_if_it_is_not_among_the_best_so_far() -> None:
    search = Halving(3, waits=False)
    search.begin("a", trials(9))
    assert cancelled(search.measured("t00", 9.0, 0.5)) == []
    assert cancelled(search.measured("t01", 9.0, 0.6)) == ["t01"]
    assert cancelled(search.measured("t02", 9.0, 0.4)) == []
    assert cancelled(search.measured("t03", 9.0, 0.45)) == ["t03"]


def test_what_a_trial_is_expected_to_do_grows_as_it_rises() -> None:
    """9 trials of 9 steps, η = 3: 1 + 2/3 + 6/9 steps at first, 1 + 2 + 6/3 after the first rung."""
    search = Halving(3, pauses=False)
    jobs = trials(9, 9.0)
    search.begin("a", jobs)
    assert list(search.submitted(jobs[0]).events) == [JobUpdated("t00", total_steps=pytest.approx(1 + 2 / 3 + 6 / 9))]
    (update,) = search.measured("t00", 1.0, 0.5).events
    assert update == JobUpdated("t00", total_steps=pytest.approx(1 + 2 + 6 / 3))


def jobs_of(wishes: TunerRequests, kind: type) -> list[str]:
    return [event.job_id for event in wishes.events if isinstance(event, kind)]


def test_four_trials_wait_for_each_other_on_two_rungs() -> None:
    """Four trials of 8 steps and η = 2: rungs at 2 and 4 steps, on which two and one are promoted.

    t1 reaches 2 first, then t0 and t3: they are paused. t2 is last: t0 and t2 are the best two, so t0 is resumed, t2
    continues, and t1 and t3 are cancelled. t2 reaches 4 first and is paused; t0 is better and runs to its end.
    """
    search = Halving(2)
    assert search.begin("a", trials(4, 8.0)).watch == {f"t0{m}": 2.0 for m in range(4)}
    for name, loss in (("t01", 0.7), ("t00", 0.4), ("t03", 0.6)):
        wishes = search.measured(name, 2.0, loss)
        assert list(wishes.events) == [JobPaused(name)]
        assert wishes.watch == {}
    wishes = search.measured("t02", 2.0, 0.5)
    assert cancelled(wishes) == ["t03", "t01"]
    assert (jobs_of(wishes, JobPaused), jobs_of(wishes, JobResumed)) == ([], ["t00"])
    assert wishes.watch == {"t00": 4.0, "t02": 4.0}
    assert list(search.measured("t02", 4.0, 0.3).events) == [JobPaused("t02")]
    wishes = search.measured("t00", 4.0, 0.2)
    assert cancelled(wishes) == ["t02"]
    assert (jobs_of(wishes, JobPaused), jobs_of(wishes, JobResumed), wishes.watch) == ([], [], {})
    assert found(search.ended("t00", 0.1)) == [AppFinished("a", "t00", 0.1)]


def test_no_trial_waits_for_one_that_has_ended_and_the_next_best_takes_its_place() -> None:
    """As above, but t3 fails for good before its rung: the three others decide. t0, which is promoted, fails later."""
    search = Halving(2)
    search.begin("a", trials(4, 8.0))
    for name, loss in (("t00", 0.4), ("t01", 0.7), ("t02", 0.5)):
        assert jobs_of(search.measured(name, 2.0, loss), JobPaused) == [name]
    wishes = search.ended("t03", math.nan)
    assert (cancelled(wishes), jobs_of(wishes, JobResumed)) == (["t01"], ["t00", "t02"])
    assert jobs_of(search.measured("t02", 4.0, 0.3), JobPaused) == ["t02"]
    assert jobs_of(search.ended("t00", math.nan), JobResumed) == ["t02"]
    assert found(search.ended("t02", 0.2)) == [AppFinished("a", "t02", 0.2)]


def test_a_report_below_the_rung_or_of_a_paused_trial_decides_nothing() -> None:
    """Real trials report when they write a checkpoint, which may be before their rung or while they are stopped."""
    search = Halving(2)
    search.begin("a", trials(2, 8.0))
    assert not search.measured("t00", 3.0, 0.1).events
    assert jobs_of(search.measured("t00", 4.5, 0.5), JobPaused) == ["t00"]
    assert not search.measured("t00", 5.0, 0.1).events
    wishes = search.measured("t01", 4.0, 0.4)
    assert (cancelled(wishes), jobs_of(wishes, JobResumed)) == (["t00"], [])


def test_trials_are_asked_for_a_few_at_a_time_and_not_all() -> None:
    """At most two at a time and four of five in all: t2 when t0 has ended, t3 when t2 has been given up by its user."""
    search = Trials(parallel=2, most=4)
    search.begin("a", trials(5))
    assert list(search.ask()) == ["t00", "t01"]
    assert list(search.ask()) == []
    search.ended("t00", 0.5)
    assert list(search.ask()) == ["t02"]
    search.ended("t02", math.nan)
    assert list(search.ask()) == ["t03"]
    search.ended("t01", 0.4)
    assert list(search.ask()) == []
    assert found(search.ended("t03", 0.6)) == [AppFinished("a", "t01", 0.4)]


def test_asha_starts_another_trial_at_the_bottom_when_one_is_given_up() -> None:
    """t0 is alone on the rung and promoted; t1 is worse and cancelled, so t2 is requested; it is promoted."""
    search = Halving(3, waits=False, parallel=2)
    search.begin("a", trials(9))
    assert list(search.ask()) == ["t00", "t01"]
    search.measured("t00", 9.0, 0.5)
    assert list(search.ask()) == []
    assert cancelled(search.measured("t01", 9.0, 0.6)) == ["t01"]
    assert list(search.ask()) == ["t02"]
    assert cancelled(search.measured("t02", 9.0, 0.4)) == []
    assert list(search.ask()) == []


def promoted(requests: TunerRequests) -> list[str]:
    """Return the trials that go on to a next rung or to their end."""
    return [event.job_id for event in requests.events if isinstance(event, JobUpdated)]


@pytest.mark.parametrize(
    ("losses", "go_on"),
    [
        (range(9), {2: ["t00"], 5: ["t01"], 8: ["t02"]}),  # each worse: passed over, and promoted as the rung fills
        (range(9, 0, -1), {m: [f"t0{m}"] for m in range(2, 9)}),  # each better: from the third on the best so far
    ],
)
def test_the_published_asha_promotes_any_of_the_best_third_later_and_cancels_none(
    losses: Sequence[int], go_on: Mapping[int, list[str]]
) -> None:
    """By hand, after algorithm 2: of n on the rung ⌊n / 3⌋ are among the best."""
    search = LatePromotion(3)
    search.begin("a", trials(9))
    search.ask()
    for m, loss in enumerate(losses):
        requests = search.measured(f"t0{m}", 9.0, float(loss))
        assert promoted(requests) == go_on.get(m, [])
        assert cancelled(requests) == []
        assert ([JobPaused(f"t0{m}")] == [e for e in requests.events if isinstance(e, JobPaused)]) == (
            promoted(requests) != [f"t0{m}"]
        )


def test_asha_of_ray_tune_passes_judgement_once_where_the_published_one_promotes_later() -> None:
    search = Halving(3, waits=False)
    search.begin("a", trials(9))
    gone = [name for m in range(9) for name in cancelled(search.measured(f"t0{m}", 9.0, float(m)))]
    assert gone == [f"t0{m}" for m in range(1, 9)]


def test_of_two_trials_that_may_go_on_the_one_on_the_higher_rung_is_first() -> None:
    """η = 2: t0 is best of two on the second rung; t5 has come to the first, and is second of six there."""
    rungs = OpenRungs(trials(8), 3, 2)
    for m, loss in enumerate((0.0, 1.0, 2.0, 3.0)):
        rungs.report(f"t0{m}", loss)
    for m in (0, 1):
        rungs.promote(f"t0{m}")
        rungs.report(f"t0{m}", float(m))
    rungs.report("t04", 4.0)
    rungs.report("t05", 0.5)
    waiting = {f"t0{m}" for m in range(6)}
    assert rungs.promotable(waiting) == "t00"
    assert rungs.promotable(waiting - {"t00"}) == "t05"
    assert rungs.promotable(waiting - {"t00", "t05"}) is None


def test_a_free_place_goes_to_a_promotion_before_a_new_trial() -> None:
    """One place, and each trial worse than the last: t0 goes on when three are on the rung, before t3 starts."""
    search = LatePromotion(3, parallel=1)
    search.begin("a", trials(27))
    assert list(search.ask()) == ["t00"]
    for m in range(2):
        requests = search.measured(f"t0{m}", 3.0, float(m))
        assert list(requests.events) == [JobPaused(f"t0{m}")]
        assert list(search.ask()) == [f"t0{m + 1}"]
    requests = search.measured("t02", 3.0, 2.0)
    assert (promoted(requests), list(search.ask())) == (["t00"], [])
    assert JobResumed("t00") in requests.events
    assert requests.watch == {"t00": 9.0}
    requests = search.measured("t00", 9.0, 0.0)
    assert (promoted(requests), list(search.ask())) == ([], ["t03"])


def test_a_published_search_ends_when_nothing_runs_and_none_can_go_on() -> None:
    search = LatePromotion(3)
    search.begin("a", trials(3))
    search.ask()
    for m in range(3):
        requests = search.measured(f"t0{m}", 27.0, float(m))
    assert promoted(requests) == ["t00"]
    last = search.ended("t00", 0.5)
    assert cancelled(last) == ["t01", "t02"]
    assert found(last) == [AppFinished("a", "t00", 0.5)]


def test_the_best_trial_goes_on_where_others_failed_and_none_is_among_the_best_third() -> None:
    """Seven of nine fail: both others are among the best three of the first rung, and two alone on the second."""
    search = LatePromotion(3)
    search.begin("a", trials(9))
    search.ask()
    for m in range(2, 9):
        assert found(search.ended(f"t0{m}", math.nan)) == []
    assert promoted(search.measured("t00", 9.0, 0.5)) == ["t00"]
    assert promoted(search.measured("t01", 9.0, 0.4)) == ["t01"]
    assert promoted(search.measured("t00", 27.0, 0.3)) == []
    assert promoted(search.measured("t01", 27.0, 0.2)) == ["t01"]
    last = search.ended("t01", 0.1)
    assert (cancelled(last), found(last)) == (["t00"], [AppFinished("a", "t01", 0.1)])


def play(
    search: Tuner, jobs: Sequence[Job], curves: Mapping[str, Curve], order: Sequence[int]
) -> tuple[set[str], list[AppFinished]]:
    """Run trials in parallel, each to its next report in a drawn order; return the finished trials and last events."""
    watch = dict(search.begin("a", jobs).watch)
    search.ask()
    alive = {job.job_id: job for job in jobs}
    finished: set[str] = set()
    paused: set[str] = set()
    ends: list[AppFinished] = []
    turn = 0
    while alive:
        running = sorted(alive.keys() - paused)
        assert running, "some trial always runs, or paused trials would never be resumed"
        name = running[order[turn % len(order)] % len(running)]
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
        for event in wishes.events:
            if isinstance(event, JobPaused):
                paused.add(event.job_id)
            elif isinstance(event, JobResumed):
                paused.remove(event.job_id)  # which was paused before
        paused &= alive.keys()
        ends += found(wishes)
    return finished, ends


def survivors(jobs: Sequence[Job], curves: Mapping[str, Curve], eta: int) -> set[str]:
    """Return the trials that finish when every rung is complete before promotion."""
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
    expected = survivors(jobs, curves, eta)
    for pauses in (True, False):
        finished, ends = play(Halving(eta, pauses=pauses), jobs, curves, order)
        assert (
            finished == expected if pauses else finished >= expected
        )  # a beaten trial may finish before this is known
        assert len(ends) == 1
        best = min(finished, key=lambda name: (curves[name].loss(1.0), name))
        assert ends[0].best == best


@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 50), min_size=1))
def test_every_search_ends_once(count: int, seed: int, order: list[int]) -> None:
    jobs = trials(count)
    curves = {job.job_id: curve_of(seed, job.job_id) for job in jobs}
    target = min(float(curve.loss(0.8)) for curve in curves.values())
    for search in (Halving(3, waits=False), Halving(3, brackets=True), HyperDrive(target), LatePromotion(3)):
        assert len(play(search, jobs, curves, order)[1]) == 1


def test_a_failed_trial_delays_no_other() -> None:
    search = Halving(3, pauses=False)
    search.begin("a", trials(3))
    search.measured("t00", 27.0, 0.9)
    assert cancelled(search.measured("t01", 27.0, 0.5)) == ["t00"]
    assert found(search.ended("t02", math.nan)) == []
    assert found(search.ended("t01", 0.4)) == [AppFinished("a", "t01", 0.4)]


def test_promising_is_what_gives_most_dedicated_slots() -> None:
    """Ten slots and chances .9 .8 .6 .3 .1 .05: at .6 three are desired and six deserved, at .3 four and three."""
    assert threshold([0.9, 0.8, 0.6, 0.3, 0.1, 0.05], 10) == (0.6, 3)


@pytest.mark.parametrize(
    ("given", "count"),
    [({"slots": 20}, 18), ({"accelerators": 20}, 18), ({"parallel": 20}, 18), ({}, 30), ({"accelerators": 256}, 30)],
)
def test_promising_trials_are_bounded_by_the_accelerators_of_the_search_not_by_the_trials_alive(
    given: Mapping[str, int], count: int
) -> None:
    """Thirty of 60 with a chance of 0.9, thirty with 0.5; S p = 18 and 10 on 20 accelerators, 54 and 30 for 60."""
    search = HyperDrive(0.25, **given)
    search.begin("a", trials(60))
    search._chance = {f"t{m:02}": 0.9 if m < 30 else 0.5 for m in range(60)}
    assert len({event.job_id for event in search._update_weights() if (event.weight or 0) > 1}) == count


@given(st.floats(0.01, 0.9), st.floats(0.5, 200.0), st.integers(1, 7))
def test_three_points_of_a_curve_foretell_its_end(floor: float, rate: float, at: int) -> None:
    curve = Curve(1.0, floor, rate)
    points = [(p / 10, float(curve.loss(p / 10))) for p in range(at, at + 3)]
    assert predict_loss(points) == pytest.approx(float(curve.loss(1.0)), rel=1e-5)


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
