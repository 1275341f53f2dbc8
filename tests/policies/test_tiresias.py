"""Tiresias' queues, index and placement, on worlds small enough to follow by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia.allocation import solve
from eunomia.model.decisions import Start, Stop
from eunomia.model.job import Job
from eunomia.model.policy import LeaseTerms
from eunomia.model.topology import Node
from eunomia.policies import build
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.gittins import authors, textbook, within
from eunomia.policies.order.tiresias import Tiresias
from eunomia.testing.small_worlds import SmallWorld, WorldRun, line_up, one_type, play

UNITS = LeaseTerms(length_s=1.0, aligned=True)
EVERY_UNIT = ",".join(map(str, range(1, 17)))


def world(*jobs: tuple[float, float] | tuple[float, float, int], nodes: tuple[int, ...] = (1,)) -> SmallWorld:
    """Jobs a, b, c … as (submitted, seconds, accelerators), on machines of so many accelerators each."""
    machines = tuple(Node(type="gpu", accelerators=size) for size in nodes)
    return SmallWorld(nodes=machines, jobs=line_up(*jobs), speeds=one_type())


def starts_and_stops(played: WorldRun) -> list[tuple[float, str, str]]:
    """Return who started and who stopped, and when."""
    events = []
    for at, order in played.decisions:
        if isinstance(order, Start):
            events.append((at, "start", order.job_id))
        elif isinstance(order, Stop):
            events += [(at, "stop", name) for name in order.job_ids]
    return events


# ---- figure 7 of the paper: 2 accelerators; jobs of 2, 1 and 2 for 2, 8 and 6 units; a decision each unit ----------


@pytest.mark.parametrize(
    ("parameters", "ends"),
    [
        ({"limits": EVERY_UNIT}, [5, 14, 16]),
        ({"index": "gittins", "limits": "none", "history": "4,8,12", "quantum": 1.0}, [2, 10, 16]),
        (
            {"index": "gittins", "gittins": "textbook", "limits": "none", "history": "4,8,12", "quantum": 1.0},
            [2, 10, 16],
        ),
        (
            {"index": "gittins", "gittins": "authors", "limits": "none", "history": "4,8,12", "quantum": 9.0},
            [2, 12, 16],
        ),
    ],
    ids=["2D-LAS", "2D-Gittins, by queue", "2D-Gittins, textbook", "2D-Gittins, authors"],
)
def test_figure_7(parameters: dict[str, Any], ends: list[float]) -> None:
    jobs = world((0, 2, 2), (0, 8, 1), (0, 6, 2), nodes=(2,))
    assert list(play(Tiresias(**parameters), jobs, terms=UNITS).finished.values()) == ends


def test_the_textbook_index_of_figure_7() -> None:
    """Samples 4, 8, 12. At a = 4 two are left, 4 and 8 away: max(1 / (4 + 4), 2 / (4 + 8)) = 1/6."""
    index = textbook(np.array([4.0, 8, 12]), np.array([0.0, 1, 2, 4, 8, 12, 20]))
    np.testing.assert_allclose(index, [1 / 8, 1 / 7, 1 / 6, 1 / 6, 1 / 4, 0, 0])


def test_the_authors_index_of_figure_7() -> None:
    """Δ = 9. At a = 4: one of two ends by 13, but the last counts as not reached: 1 / (8 + 9)."""
    index = authors(np.array([4.0, 8, 12]), np.array([0.0, 3, 4, 8, 12]), 9.0)
    np.testing.assert_allclose(index, [2 / 21, 2 / 21, 1 / 17, 0, 0])


def test_in_the_last_queue_the_job_that_is_expected_to_need_less_service_goes_first() -> None:
    """Samples 2000, 4000, 4100, 50000. At 3300, 700, 800 and 46,700 are left; at 4050, 50 and 45,950."""
    samples, attained = np.array([2000.0, 4000, 4100, 50000]), np.array([3300.0, 4050])
    np.testing.assert_allclose(within(samples, attained, np.full(2, np.inf)), [3 / 48_200, 2 / 46_000])
    np.testing.assert_allclose(textbook(samples, attained), [2 / 2300, 1 / 100])  # up to 4100: the other way round


def test_above_the_last_queue_the_index_looks_no_further_than_the_limit_of_the_queue() -> None:
    """At 1000 with Δ = 3250 the samples 2000, 4000 and 4100 are reached, 1000, 3000 and 3100 away; one is beyond."""
    samples = np.array([2000.0, 4000, 4100, 50000])
    np.testing.assert_allclose(within(samples, np.array([1000.0]), np.array([3250.0])), [3 / 10_350])
    assert within(samples, np.array([4100.0, 50_000]), np.array([3250.0, 3250])).tolist() == [0, 0]


@pytest.mark.parametrize(("spelling", "first"), [("gittins", 0), ("gittins&gittins=textbook", 1)])
def test_the_order_in_the_last_queue_is_that_of_the_whole_remaining_service(spelling: str, first: int) -> None:
    problem = {"types": ["gpu"], "capacity": [1], "accelerators_per_node": [1], "scale_factor": [1, 1]}
    times = {"throughput": [[1], [1]], "attained_service": [3300, 4050], "elapsed_s": [3300, 4050]}
    answer = solve(f"tiresias?index={spelling}&history=2000,4000,4100,50000", problem | times)
    assert np.argmax(answer.x[:, 0]) == first


def test_between_two_samples_the_authors_index_is_that_just_below_the_next() -> None:
    """Samples 4, 8, 12, 30 and Δ = 9. From 4 on all are looked up at 7: 8 and 12 end by 16, so 2 / (8 + 12 + 9)."""
    index = authors(np.array([4.0, 8, 12, 30]), np.array([4.0, 5, 7.5, 8, 12, 29, 30]), 9.0)
    np.testing.assert_allclose(index, [2 / 29] * 3 + [1 / 21, 0, 0, 0])


# ---- queues ------------------------------------------------------------------------------------------------------


def test_a_job_that_reaches_the_limit_gives_way_to_a_new_job_then_runs_again() -> None:
    played = play(Tiresias(limits=100.0), world((0, 300), (50, 80)))
    assert starts_and_stops(played) == [(0, "start", "a"), (100, "stop", "a"), (100, "start", "b"), (180, "start", "a")]


def test_service_counts_accelerators() -> None:
    played = play(Tiresias(limits=100.0), world((0, 300, 2), (10, 80, 2), nodes=(2,)))
    assert starts_and_stops(played)[1:3] == [(50, "stop", "a"), (50, "start", "b")]


def test_jobs_of_one_queue_do_not_interrupt_each_other() -> None:
    played = play(Tiresias(limits=100.0), world((0, 90), (10, 20), (20, 30)))
    assert starts_and_stops(played) == [(0, "start", "a"), (90, "start", "b"), (110, "start", "c")]


def test_in_the_next_queue_who_ran_first_goes_first_even_if_it_came_later() -> None:
    """a (3 wide) finds 2 free; b starts before it. Both enter the second queue; b began earlier and keeps running."""
    jobs = world((0, 50, 1), (1, 200, 1), (2, 200, 2), nodes=(2,))
    played = play(Tiresias(limits=100.0), jobs)
    assert [event for event in starts_and_stops(played) if event[0] > 50] == [
        (101, "stop", "b"), (101, "start", "c"), (151, "stop", "c"), (151, "start", "b"), (251, "start", "c"),
    ]  # fmt: skip


def test_who_runs_in_a_queue_keeps_its_seats_when_a_wider_gang_of_that_queue_would_now_fit() -> None:
    """At 210 d ends and a, which began first, would fit if c stopped: both are in the second queue, so c runs on."""
    jobs = world((0, 400, 3), (30, 100, 1), (40, 300, 2), (150, 60, 1), nodes=(3,))
    played = play(Tiresias(limits=90.0), jobs)
    stopped = [(at, job) for at, what, job in starts_and_stops(played) if what == "stop"]
    assert not [at for at, job in stopped if job == "c" and at == played.finished["d"]]


def test_a_starving_job_is_promoted_and_starts_anew() -> None:
    """a ran 100 s. With a knob of 2 it is in the first queue from 300, runs when d ends, and leaves it 100 s later."""
    crowd = world((0, 1000), *((90 + 90 * i, 90) for i in range(8)))
    without, promoted = (play(Tiresias(limits=100.0, promote=knob), crowd) for knob in (np.inf, 2.0))
    assert starts_and_stops(without)[-1] == (820, "start", "a")
    assert starts_and_stops(promoted)[4:8] == [
        (280, "start", "d"), (370, "start", "a"), (470, "stop", "a"), (470, "start", "e"),
    ]  # fmt: skip


def test_all_waits_since_the_last_promotion_count() -> None:
    """a waits from 100 to 180, from 190 to 270, and from 275 on: at 345 it waited 230 s, twice the 115 s that it ran.

    It is then in the first queue, before e, and goes on when d ends. Twice its 115 s in one wait would be at 505.
    """
    crowd = world((0, 1000), (100, 80), (190, 80), (275, 90), (360, 50))
    assert starts_and_stops(play(Tiresias(limits=100.0, promote=2.0), crowd))[-4:] == [
        (365, "start", "a"), (465, "stop", "a"), (465, "start", "e"), (515, "start", "a"),
    ]  # fmt: skip


def test_after_a_promotion_waits_and_runs_are_counted_anew() -> None:
    """Promoted at 300, a runs from 370 to 470. Its wait before that no longer counts: the next promotion is at 670."""
    crowd = world((0, 1000), *((90 + 90 * i, 90) for i in range(8)))
    events = starts_and_stops(play(Tiresias(limits=100.0, promote=2.0), crowd))
    assert [at for at, what, job in events if what == "start" and job == "a"] == [0, 370, 740, 1020]


def test_one_queue_is_fifo_that_passes_over_what_does_not_fit() -> None:
    jobs = world((0, 50, 2), (1, 40, 3), (2, 30, 1), (3, 20, 1), (4, 10, 2), nodes=(3,))
    assert starts_and_stops(play(Tiresias(limits="none"), jobs)) == starts_and_stops(play(Fifo(backfill="skip"), jobs))


def test_without_past_jobs_the_index_says_nothing_and_who_came_first_runs() -> None:
    assert starts_and_stops(play(Tiresias(index="gittins"), world((0, 50), (1, 5)))) == [
        (0, "start", "a"),
        (50, "start", "b"),
    ]


def test_the_index_learns_from_jobs_that_finished() -> None:
    """Two jobs took 10 s. Whoever has had more than that is unlike any job known: the newcomer goes first."""
    jobs = world((0, 10), (10, 10), (20, 100), (60, 10))
    assert starts_and_stops(play(Tiresias(index="gittins", quantum=5.0), jobs))[3:5] == [
        (60, "stop", "c"),
        (60, "start", "d"),
    ]


# ---- placement ---------------------------------------------------------------------------------------------------


def two_seats_apart(model: str) -> SmallWorld:
    """Three machines of two, a job on every seat; at 10 one ends on each of two machines, at 20 a gang of two comes."""
    jobs = [Job(job_id=str(i), sequence=i, total_steps=s) for i, s in enumerate((10, 100, 10, 100, 100, 100))]
    gang = Job(job_id="gang", sequence=6, submitted=20, total_steps=10, scale_factor=2, job_type=model)
    return SmallWorld(nodes=(Node(type="gpu", accelerators=2),) * 3, jobs=(*jobs, gang), speeds=one_type(("", model)))


@pytest.mark.parametrize(("model", "starts"), [("VGG16", 100), ("ResNet-50", 20), ("no such model", 20)])
def test_a_gang_whose_model_has_one_large_tensor_waits_for_a_machine(model: str, starts: float) -> None:
    begun = {job: at for at, what, job in starts_and_stops(play(Tiresias(), two_seats_apart(model))) if what == "start"}
    assert begun["gang"] == starts


def test_anywhere_and_consolidate_do_not_look_at_models() -> None:
    for placement, model, starts in (("anywhere", "VGG16", 20), ("consolidate", "ResNet-50", 100)):
        policy = build(f"tiresias?placement={placement}")
        begun = {job: at for at, what, job in starts_and_stops(play(policy, two_seats_apart(model))) if what == "start"}
        assert begun["gang"] == starts


@pytest.mark.parametrize(
    ("model", "stopped", "starts"), [("VGG16", [], 300), ("ResNet-50", [(160, "old-0"), (160, "old-1")], 160)]
)
def test_no_job_is_stopped_for_seats_that_are_too_far_apart(
    model: str, stopped: list[tuple[float, str]], starts: float
) -> None:
    """Two machines of two. At 160 the jobs of the second queue hold one seat of each; the first of them ends at 300."""
    spans = {"old-0": (0, 300), "brief-0": (0, 150), "old-1": (0, 400), "brief-1": (0, 150)}
    spans |= {"new-0": (150, 80), "new-1": (150, 80)}
    jobs = [Job(job_id=k, sequence=i, submitted=at, total_steps=s) for i, (k, (at, s)) in enumerate(spans.items())]
    gang = Job(job_id="gang", sequence=9, submitted=160, total_steps=10, scale_factor=2, job_type=model)
    place = SmallWorld(nodes=(Node(type="gpu", accelerators=2),) * 2, jobs=(*jobs, gang), speeds=one_type(("", model)))
    events = starts_and_stops(play(Tiresias(limits=100.0), place))
    assert [(at, job) for at, what, job in events if what == "stop"] == stopped
    assert (starts, "start", "gang") in events


@pytest.mark.parametrize(
    ("spelling", "rule"),
    [
        ("limits=7200,3250", "rise"),
        ("limits=0", "above 0"),
        ("limits=many", "limits is 'many'"),
        ("promote=0", "promote is 0"),
        ("quantum=0", "quantum is 0"),
        ("history=4,x", "history is '4,x'"),
        ("history=-3", "history is -3"),
    ],
)
def test_wrong_parameters_are_refused_with_what_is_right(spelling: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        build(f"tiresias?{spelling}")
