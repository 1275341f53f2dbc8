"""Sharing: worked by hand, and against the objectives that Gavel's own packed policies reach.

Gavel: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020,
sections 4 and 4.4; its instances and table are those of its public code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import group
from eunomia.solvers.packing.pair_programs import Shared, highest_shared_level
from eunomia.solvers.packing.per_job_needs import highest_shared_level_own
from eunomia.solvers.packing.row_times import expand
from eunomia.throughputs import load

TYPES = ("v100", "p100", "k80")
SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def one_column(rate: list[float], beside: list[list[float]], count: list[int], capacity: float) -> Shared:
    """Return the highest equal level on one column."""
    n = len(rate)
    pairs = np.array(beside)[:, :, None]
    return highest_shared_level(
        np.array(rate)[:, None], pairs, np.ones(n), np.array(count), np.array([capacity]), np.ones(n)
    )


def test_two_rows_that_go_at_0_8_together_share_all_the_time() -> None:
    assert one_column([1.0], [[0.8]], [2], 1.0).objective == pytest.approx(0.8)


def test_two_rows_that_go_at_half_together_take_turns() -> None:
    found = one_column([1.0], [[0.5]], [2], 1.0)
    assert found.objective == pytest.approx(0.5)
    assert len(found.pairs()[0]) == 0


def test_one_row_does_not_share_with_itself() -> None:
    assert one_column([1.0], [[0.8]], [1], 0.5).objective == pytest.approx(0.5)


def test_of_three_rows_on_one_column_each_shares_two_thirds_of_the_time() -> None:
    found = one_column([1.0], [[0.8]], [3], 1.0)
    assert found.objective == pytest.approx(1.6 / 3)
    entries = expand(found, group(np.zeros(3, dtype=np.int64)))
    meetings = sorted(zip(entries.first.tolist(), entries.second.tolist(), strict=True))
    assert {frozenset(each) for each in meetings} == {frozenset(each) for each in ((0, 1), (0, 2), (1, 2))}
    np.testing.assert_allclose(entries.share, 1 / 3, rtol=1e-9)


def test_a_slow_row_beside_a_fast_one_is_given_time_alone() -> None:
    # Together 0.9 and 0.3 of 1: sharing for y and the slow one alone for 1 − y give 0.9 y = 0.3 y + (1 − y), y = 0.625.
    found = one_column([1.0, 1.0], [[0.0, 0.9], [0.3, 0.0]], [1, 1], 1.0)
    assert found.objective == pytest.approx(0.5625)
    assert found.pairs()[3] == pytest.approx([0.625])
    np.testing.assert_allclose(found.alone(1)[:, 0], [0.0, 0.375], atol=1e-9)


def test_a_row_that_asks_for_more_than_the_mean_runs_alone_while_the_others_share() -> None:
    # Alone at 1, together at 0.6; steps 1, 0.2, 0.2 and room for two: the first is busy all the time, so t = 1.
    found = highest_shared_level_own(
        np.ones((1, 1)),
        np.full((1, 1, 1), 0.6),
        np.ones(1),
        np.zeros(3, dtype=np.int64),
        np.array([2.0]),
        np.array([1, 0.2, 0.2]),
    )
    assert found.shared.objective == pytest.approx(1.0)
    # What is left lets the others share a whole column: 0.6 each.
    np.testing.assert_allclose(found.rate, [1.0, 0.6, 0.6], rtol=1e-8)


@pytest.fixture(scope="module")
def data() -> Path:
    """Gavel's folder of the reference data; skips where it is absent."""
    folder = Path(os.environ.get("EUNOMIA_DATA", SHARED_DATA)) / "gavel"
    if not (folder / "policy_instances.json").is_file():
        pytest.skip(f"no reference data in {folder}; set EUNOMIA_DATA to the folder above it")
    return folder


@pytest.fixture(scope="module")
def instances(data: Path) -> list[dict[str, Any]]:
    return list(json.loads((data / "policy_instances.json").read_text())["instances"])


def speeds(data: Path, jobs: list[dict[str, Any]]) -> tuple[Ints, Floats, Floats, Floats]:
    """Return kind of each job, rates alone (kind, type), beside (kind, kind, type) and sizes (kind,)."""
    table = load("gavel/simulation_throughputs.json.gz", TYPES, base=data.parent)
    gangs = sorted({(job["job_type"], job["scale_factor"]) for job in jobs})
    rate = np.array([table.solo_throughput(*gang) for gang in gangs])
    beside = np.zeros((len(gangs), len(gangs), len(TYPES)))
    for i, (name, size) in enumerate(gangs):
        for j, (partner, its_size) in enumerate(gangs):
            if size == its_size:
                beside[i, j] = table.packed_throughput(name, partner, size)
    of = np.array([gangs.index((job["job_type"], job["scale_factor"])) for job in jobs])
    return of, rate, beside, np.array([float(size) for _, size in gangs])


def columns(one: dict[str, Any], *names: str) -> list[Floats]:
    return [np.array([float(job[name]) for job in one["jobs"]]) for name in names]


def test_gavels_packed_objectives_are_matched_or_beaten(data: Path, instances: list[dict[str, Any]]) -> None:
    """Also where gangs differ in size, on which Gavel's own policies fail: there no worse than without sharing."""
    compared = 0
    for one in instances:
        of, rate, beside, size = speeds(data, one["jobs"])
        capacity = np.array([float(one["cluster"][name]) for name in TYPES])
        own = (rate, beside, size, of, capacity)
        weight, steps, age = columns(one, "priority_weight", "steps_remaining", "time_since_start")
        equal, isolated = (np.array(one[f"{name}_throughputs"]) for name in ("proportional", "isolated"))
        rows = size[of]
        fair = highest_shared_level_own(*own, weight * equal / rows).shared.objective
        soon = 1 / highest_shared_level_own(*own, steps).shared.objective
        rho = 1 / highest_shared_level_own(*own, steps, base=steps / isolated, age=age).shared.objective
        for policy, column, ours in (
            ("max_min_fairness", "min_normalised", -fair),
            ("min_total_duration", "max_duration", soon),
            ("finish_time_fairness", "max_rho", rho),
        ):
            theirs = one["results"].get(f"{policy}_packed") or one["results"][f"{policy}_perf"]
            sign = -1 if column == "min_normalised" else 1
            assert ours <= sign * theirs[column] + 1e-6 * abs(theirs[column]), (one["id"], policy)
            compared += 1
    assert compared == 3 * len(instances)
