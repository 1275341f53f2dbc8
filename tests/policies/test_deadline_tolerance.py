"""One tolerance for deadlines: rounding makes no job late, and of floors that conflict the lightest are given up."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from eunomia.allocation import solve
from eunomia.model.job import Job
from eunomia.model.tolerance import RELATIVE
from eunomia.model.topology import Node
from eunomia.policies import build
from eunomia.solvers.min_late_jobs import late_rows
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play

WITH_FLOORS = ("min_cost?deadlines=true", "throughput_per_cost?deadlines=true")
BY_DEADLINE = ("edf", "edf?late=last", "least_slack", "least_slack?late=last")


def decimals(count: int) -> list[float]:
    """Return times as users write them: up to 10⁷ s, with one to six digits."""
    rng = np.random.default_rng(0)
    return [round(float(10 ** rng.uniform(0, 7)), int(rng.integers(1, 7))) for _ in range(count)]


def alone(seconds: float, speed: float, **more: Any) -> dict[str, Any]:
    """Return the problem of one job whose deadline is its own time."""
    return {
        "types": ["v"], "capacity": [1], "throughput": [[speed]], "steps_remaining": [seconds * speed],
        "deadline_s": [seconds], "price": [2.0], "elapsed_s": [0.0], **more,
    }  # fmt: skip


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_job_whose_deadline_is_its_own_time_is_not_late(count: int) -> None:
    speeds = np.random.default_rng(1).uniform(0.01, 90.0, count).round(3).tolist()
    for row, (seconds, speed) in enumerate(zip(decimals(count), speeds, strict=True)):
        found = solve((*WITH_FLOORS, *BY_DEADLINE)[row % 6], alone(seconds, speed))
        assert found.as_dict()["late"] == [], (seconds, speed)
        assert found.x[0, 0] == pytest.approx(1.0, rel=1e-8), (seconds, speed)


@pytest.mark.parametrize("spelling", [*WITH_FLOORS, *BY_DEADLINE])
@pytest.mark.parametrize("count", [30, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_job_whose_deadline_is_its_own_time_is_in_time_on_idle_accelerators(spelling: str, count: int) -> None:
    rng, policy = np.random.default_rng(2), build(spelling)
    for seconds in decimals(count):
        submitted = round(float(rng.uniform(0, 1e4)), 1)
        job = replace(line_up((submitted, seconds))[0], deadline=submitted + seconds)
        if seconds > 3e4:  # many rounds of 360 s
            continue
        world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=(job,), speeds=one_type())
        run = play(policy, world)
        assert run.figures.summary["deadlines_missed"] == 0, (submitted, seconds)


@pytest.mark.parametrize("steps", [999.99, 999.9999995, 999.9999999, 1000.0, 1000.0000005])
@pytest.mark.parametrize("spelling", WITH_FLOORS[:1])
def test_the_lighter_of_two_floors_is_given_up_however_near_it_is_to_all_of_the_time(
    spelling: str, steps: float
) -> None:
    """The deadline takes all of the accelerator, the other's equal part half of it. At equal weights the later goes."""
    problem = {
        "types": ["v"], "capacity": [1], "throughput": [[1.0], [1.0]], "steps_remaining": [steps, 1000.0],
        "deadline_s": [1000.0, None], "price": [2.0], "elapsed_s": [0, 0],
    }  # fmt: skip
    found = solve(spelling, {**problem, "weight": [1, 5]})
    assert (found.as_dict()["late"], found.x[:, 0].tolist()) == ([0], pytest.approx([0.5, 0.5]))
    found = solve(spelling, {**problem, "weight": [1, 1]})
    assert (found.as_dict()["late"], found.x[0, 0]) == ([], pytest.approx(1.0, abs=2e-5))


@pytest.mark.parametrize("seed", range(60))
def test_no_lighter_set_of_floors_could_have_been_given_up(seed: int) -> None:
    """Floors that fill one or two accelerators all but exactly, against every subset."""
    rng = np.random.default_rng(seed)
    n, capacity = int(rng.integers(2, 5)), float(rng.integers(1, 3))
    edge = rng.choice([0, 1e-12, 3e-10, 1e-9, 1.3e-9, -3e-10, 1e-7], n) * rng.integers(0, 2, n)
    part = rng.choice([1.0, 0.5, 0.25, 0.3], n) * (1 - edge)
    speed, weight = rng.uniform(0.1, 10, n).round(2), rng.choice([1.0, 2.0, 5.0, 3.7], n)
    late = late_rows(speed[:, None], np.ones(n), np.array([capacity]), speed * part, weight=weight).rows
    subsets = [np.array(some, dtype=int) for some in chain(*(combinations(range(n), k) for k in range(n + 1)))]

    def least(tolerance: float) -> float:
        """Return the weight of the lightest set without which the others fill no more than so much."""
        fits = [some for some in subsets if np.delete(part, some).sum() <= capacity * (1 + tolerance)]
        return min(float(weight[some].sum()) for some in fits)

    assert least(RELATIVE) - 1e-9 <= weight[late].sum() <= least(0.0) + 1e-9
    kept = np.delete(np.arange(n), late)
    problem = {
        "types": ["v"], "capacity": [capacity], "throughput": speed[:, None].tolist(), "scale_factor": [1] * n,
        "steps_remaining": (speed * part * 1000).tolist(), "elapsed_s": [0.0] * n, "price": [1.0],
        "deadline_s": [1000.0 if m in kept else None for m in range(n)], "weight": weight.tolist(),
    }  # fmt: skip
    for spelling in WITH_FLOORS:
        solve(spelling, problem)  # what is said to fit can be carried out


def test_a_deadline_is_missed_by_more_than_rounding() -> None:
    for deadline, missed in ((100.0 * (1 - RELATIVE / 2), 0), (100.0 * (1 - 2 * RELATIVE), 1)):
        jobs = (Job(job_id="a", total_steps=100.0, deadline=deadline),)
        world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=jobs, speeds=one_type())
        assert play(build("fifo"), world).figures.summary["deadlines_missed"] == missed
