"""Optimus and SLAQ: who gets how many accelerators, worked out by hand, and what becomes of it in a world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.model.answers import Order
from eunomia.model.arrays import Floats, Ints
from eunomia.model.curve_fits import to_fitted_form
from eunomia.model.curves import Curve, curve_of, losses
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.order.optimus import Optimus
from eunomia.policies.order.slaq import Slaq
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.solvers.greedy_marginal import climb
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, draw, one_type, play

SHAPES = 6


def view(speed: Floats, capacity: int, **columns: Any) -> View:
    """Jobs that can run on 1 to 6 accelerators of one type; speed (job, shape)."""
    jobs = len(speed)
    return View(
        at=0.0,
        types=("gpu",),
        jobs=jobs,
        columns={
            "shapes": np.tile(np.arange(1, SHAPES + 1), (jobs, 1)),
            "shape_throughput": speed[:, :, None],
            "capacity": np.array([float(capacity)]),
            **columns,
        },
    )


def accelerators(order: Order, seen: View) -> list[int]:
    """Return what each job gets when the order is followed on an empty cluster."""
    assert order.rows.shape is not None
    got, left = np.zeros(seen.jobs, dtype=int), int(seen.capacity.sum())
    for job, shape in zip(order.rows.job.tolist(), order.rows.shape.tolist(), strict=True):
        size = int(seen.shapes[job, shape])
        if size <= left:
            got[job], left = size, left - size
    return got.tolist()


# ---- the climb


def test_a_step_goes_to_whoever_gains_most_by_it_and_ties_to_the_lower_row() -> None:
    gain = np.array([[5.0, 1.0], [5.0, 4.0], [3.0, 9.0]])
    one = np.ones((3, 2), dtype=np.int64)
    on = np.zeros(3, dtype=np.int64)

    def reached(free: int) -> list[int]:
        return climb(gain, one, on, np.array([free])).tolist()

    assert [reached(free) for free in range(7)] == [
        [0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 2, 0], [1, 2, 1], [1, 2, 2], [2, 2, 2],
    ]  # fmt: skip


def test_a_ladder_whose_next_step_has_no_room_ends_there_and_others_go_on() -> None:
    gain, on = np.array([[9.0, 8.0], [2.0, 1.0]]), np.zeros(2, dtype=np.int64)
    assert climb(gain, np.array([[4, 1], [1, 1]]), on, np.array([3])).tolist() == [0, 2]
    assert climb(gain, np.array([[4, 1], [1, 1]]), np.array([0, 1]), np.array([3, 1])).tolist() == [0, 1]


def test_no_job_takes_a_step_that_gains_nothing() -> None:
    gain = np.array([[1.0, 0.0, 5.0], [-1.0, 2.0, 2.0]])
    assert climb(gain, np.ones((2, 3), dtype=np.int64), np.zeros(2, dtype=np.int64), np.array([9])).tolist() == [1, 0]


# ---- Optimus


def optimus_example() -> View:
    """Speed 1 / (a/n + 0.1 + 0.05 n): A has 100 steps and a = 4, B 50 and a = 2."""
    n = np.arange(1, SHAPES + 1)
    speed = 1 / (np.array([[4.0], [2.0]]) / n + 0.1 + 0.05 * n)
    steps = np.array([100.0, 50.0])
    return view(speed, 6, remaining=steps, total=steps)


def test_optimus_gives_each_step_to_the_job_whose_completion_time_falls_most() -> None:
    """After (1, 1) gains are A 415 − 220 = 195, B 107.5 − 60 = 47.5: A, A, B, A, so that A has 4 and B 2."""
    seen = optimus_example()
    assert accelerators(Optimus(young=1.0).decide(seen), seen) == [4, 2]


@pytest.mark.parametrize(("young", "gets"), [(1.0, [3, 2]), (0.5, [2, 3])])
def test_gains_of_young_jobs_count_less(young: float, gets: list[int]) -> None:
    """Speed n, 100 of 100 steps left against 80 of 100: gains 100 / n (n + 1) = 50, 16.7 against 40, 13.3 for three
    free accelerators; at half 25, 8.3.
    """
    speed = np.tile(np.arange(1.0, SHAPES + 1), (2, 1))
    seen = view(speed, 5, remaining=np.array([100.0, 80.0]), total=np.array([100.0, 100.0]))
    assert accelerators(Optimus(young=young).decide(seen), seen) == gets


def test_optimus_never_gives_more_than_helps() -> None:
    """With two accelerators it is as fast as with more: the third would gain nothing."""
    seen = view(np.array([[1.0, 2.0, 2.0, 2.0, 2.0, 2.0]]), 6, remaining=np.array([10.0]), total=np.array([10.0]))
    assert accelerators(Optimus().decide(seen), seen) == [2]


def test_a_wide_step_is_counted_by_what_each_of_its_accelerators_gains() -> None:
    """A, 100 steps, from 1 to 4 accelerators: 75 s for 3, 25 each; B, 80 steps, from 1 to 2: 40. B is first, and A's
    step has no room then.
    """
    steps, shapes = np.array([100.0, 80.0]), np.array([[1, 4], [1, 2]])
    seen = view(shapes.astype(float), 5, remaining=steps, total=steps)
    seen = replace(seen, columns={**seen.columns, "shapes": shapes})
    assert accelerators(Optimus().decide(seen), seen) == [1, 2]


def elastic(name: str, steps: float, *sizes: int, sequence: int = 0, at: float = 0.0) -> Job:
    return Job(
        job_id=name,
        total_steps=steps,
        submitted=at,
        scale_factor=sizes[0],
        other_shapes=sizes[1:],
        sequence=sequence,
    )


def in_rounds(restore_s: float) -> WorldRun:
    """Four accelerators, a step/s on each; a has 400 steps on up to 2, b 8000 on up to 4."""
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=4),),
        jobs=(elastic("a", 400, 2, 1), elastic("b", 8000, 4, 2, 1, sequence=1)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0),
    )
    return play(Optimus(), world, overheads=Overheads(restore_s=restore_s))


def test_a_running_job_grows_at_the_end_of_its_round_and_pays_for_the_restart() -> None:
    """Both get 1; b gains 4000 s by a second one, then a 200 s; b's step to 4 has no room. a ends at 200 on its 2. At
    600 b has done 1200 steps and takes all 4; 30 s to restore, then 6800 / 4 = 1700 s: it ends at 2330.
    """
    played = in_rounds(restore_s=30)
    assert [(at, start.job_id, start.epoch, len(start.seats)) for at, start in played.starts] == [
        (0, "a", 1, 2),
        (0, "b", 1, 2),
        (600, "b", 2, 4),
    ]
    assert played.finished == {"a": 200, "b": 2330}
    assert played.figures.summary["preemptions"] == 1


# ---- SLAQ


def slaq_view(done: list[float], capacity: int) -> View:
    """Jobs of the median curve that go n steps/s on n accelerators; a part of their 36 000 steps is done."""
    total = np.full(len(done), 36_000.0)
    speed = np.tile(np.arange(1.0, SHAPES + 1), (len(done), 1))
    return view(
        speed,
        capacity,
        total=total,
        remaining=total * (1 - np.array(done)),
        loss_curve=np.tile(Curve(), (len(done), 1)),
    )


def test_almost_all_goes_to_the_young_one_of_two_equal_curves() -> None:
    """In a slot on one accelerator a job does 360 of 36 000 steps. With rate 20 the young one's loss falls by
    1 − 1/1.2, the old one's, half done, by 1/11 − 1/11.2: a hundredth of that.
    """
    seen = slaq_view([0.0, 0.5], 6)
    assert accelerators(Slaq().decide(seen), seen) == [5, 1]


def test_everybody_has_one_before_anybody_has_two_and_all_are_given() -> None:
    seen = slaq_view([0.0, 0.1, 0.9], 8)
    got = accelerators(Slaq().decide(seen), seen)
    assert sum(got) == 8
    assert min(got) >= 1
    assert got == sorted(got, reverse=True)


def test_where_there_are_more_jobs_than_accelerators_the_largest_decrease_runs() -> None:
    seen = slaq_view([0.9, 0.0, 0.5, 0.1], 2)
    assert accelerators(Slaq().decide(seen), seen) == [0, 1, 0, 1]


def test_losses_are_in_units_of_the_largest_change_of_a_step() -> None:
    """A curve ten times as high, with a floor, counts as much: jobs of one age get alike whatever they measure."""
    seen = slaq_view([0.2, 0.2], 6)
    high = np.array([Curve(1.0, 0.0, 20.0), Curve(10.0, 3.0, 20.0)])
    again = replace(seen, columns={**seen.columns, "loss_curve": high})
    assert accelerators(Slaq().decide(again), again) == [3, 3]


def test_of_two_jobs_that_are_equally_far_the_one_with_short_steps_counts_more() -> None:
    """Both need 36 000 s on one accelerator, a in 36 000 steps, b in 3 600: the same losses at the same times. The
    first step of a is a tenth as long, and changes its loss by 1 − 1 / (1 + 20 / 36 000) against 1 − 1 / (1 + 20 /
    3 600), 1 to 9.95: its losses count 9.95 times as much.
    """
    seen = slaq_view([0.2, 0.2], 6)
    steps = np.array([36_000.0, 3_600.0])
    speed = seen.shape_throughput * np.array([1.0, 0.1])[:, None, None]
    again = replace(seen, columns={**seen.columns, "total": steps, "remaining": 0.8 * steps, "shape_throughput": speed})
    assert accelerators(Slaq().decide(again), again) == [5, 1]
    worth = Slaq()._worth(again, to_fitted_form(again.loss_curve, steps))
    np.testing.assert_allclose(worth[0] / worth[1], 9.9503, rtol=1e-4)


def test_a_job_that_still_learns_runs_before_one_that_has_learned() -> None:
    """One accelerator, 1800 s each. a's loss falls by 0.357 in its first step and by 0.995 in a slot: 2.8 units. That
    of b falls evenly, by 360 units in 360 steps, to the end: b has the seat until 1800, though a came first.
    """
    quick, even = Curve(1.0, 0.0, 1000.0), Curve(1.0, 0.0, 0.001)
    a = replace(elastic("a", 1800, 1), loss=quick)
    b = replace(elastic("b", 1800, 1, sequence=1), loss=even)
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=(a, b), speeds=one_type())
    assert play(Slaq(), world).finished == {"b": 1800, "a": 3600}


def test_curves_are_drawn_by_the_seed_for_a_policy_that_looks_at_them_and_for_no_other() -> None:
    options = {
        "seed": 5,
        "cluster": {"accelerators": {"gpu": 2}},
        "workload": {"generator": "poisson", "jobs": 3},
        "throughputs": {"source": "uniform"},
    }
    jobs = set_up(scenario_from_dict({**options, "policy": {"name": "slaq"}}, Path())).jobs
    assert [job.loss for job in jobs] == [curve_of(5, job.job_id) for job in jobs]
    others = set_up(scenario_from_dict({**options, "policy": {"name": "fifo"}}, Path())).jobs
    assert {job.loss for job in others} == {None}


def test_losses_of_many_runs_are_those_of_each_curve() -> None:
    curves = [Curve(1.0, 0.2, 5.0), Curve(2.0, 0.0, 50.0)]
    done: Ints = np.array([0.25, 0.5])
    each = [curve.loss(float(part)) for curve, part in zip(curves, done, strict=True)]
    np.testing.assert_allclose(losses(np.array(curves), done), each)


# ---- both


@pytest.mark.parametrize("policy", [Optimus(), Slaq(slot_s=60.0)], ids=["optimus", "slaq"])
@pytest.mark.parametrize("seed", range(4))
def test_elastic_worlds_of_several_types_end_with_every_job_done(policy: Any, seed: int) -> None:
    world = draw(seed, jobs=10, elastic=True)
    assert play(policy, world, seed=seed, checked=True).counts == {"finished": 10}
