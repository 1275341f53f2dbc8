"""Tuners that pause trials, under policies that pack two gangs and remember the pairs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia import simulate
from eunomia.model.view import View
from eunomia.policies.pair_memory import NO_PAIR, REMEMBERED, memory_of, partners


def together(number: Sequence[float], paired_at: Sequence[float], size: Sequence[int]) -> list[tuple[int, int]]:
    """Return the rows of the pairs that such a memory holds."""
    memory = {"pair": np.array(number), "paired_at": np.array(paired_at)}
    view = View(
        at=100.0,
        seed=0,
        jobs=len(number),
        types=("v100",),
        columns={"scale_factor": np.array(size)},
        memory=memory,
    )
    return list(zip(*(rows.tolist() for rows in partners(view)), strict=True))


def test_a_pair_are_two_of_one_size_with_one_number_of_one_answer() -> None:
    assert together([NO_PAIR, 0.0, 1.0, 0.0, 1.0, NO_PAIR], [60.0] * 6, [1] * 6) == [(1, 3), (2, 4)]
    assert together([0.0, 0.0, 0.0], [60.0, 90.0, 90.0], [1, 1, 1]) == [(1, 2)]  # the first one is paused since 60 s
    assert together([0.0, 0.0], [60.0, 90.0], [1, 1]) == []
    assert together([0.0, 0.0], [60.0, 60.0], [1, 2]) == []
    assert together([0.0, 0.0, 0.0], [60.0] * 3, [1, 1, 1]) == []


def test_two_answers_of_one_instant_are_distinguished() -> None:
    """A and B are paired, A is paused, B and C are paired at once, and A is resumed with its old number."""
    size = {"scale_factor": np.ones(2)}
    fresh = {name: np.full(2, value) for name, value in REMEMBERED.items()}
    view = View(at=100.0, seed=0, jobs=2, types=("v100",), columns=size, memory=fresh)
    first = memory_of(view, np.array([0.0, 0.0]))
    without_a = {"pair": np.array([0.0, NO_PAIR]), "paired_at": np.array([first["paired_at"][1], NO_PAIR])}
    second = memory_of(replace(view, memory=without_a), np.array([0.0, 0.0]))
    numbers = [first["pair"][0], *second["pair"]], [first["paired_at"][0], *second["paired_at"]]
    assert together(*numbers, [1, 1, 1]) == [(1, 2)]


def searches(seed: int) -> str:
    """Return five searches of four trials of two kinds."""
    rng, rows = random.Random(seed), list[tuple[str, int, str, int, str]]()
    for app in range(5):
        at, seconds = round(rng.uniform(0, 3000)), round(rng.uniform(1000, 6000))
        for trial in range(4):
            kind = rng.choice(["ResNet-18 (batch size 64)", "A3C"])
            rows.append((f"a{app}_{trial}", at, kind, round(seconds * rng.uniform(0.9, 1.1)), f"app{app}"))
    head = "job_id,submitted_s,job_type,duration_s,app,scale_factor\n"
    return head + "".join(",".join(map(str, (*row, 1))) + "\n" for row in sorted(rows, key=lambda row: row[1]))


@pytest.mark.parametrize(("policy", "seeds"), [("gandiva", (12,)), ("gandiva_original", (8,))])
def test_a_resumed_job_is_in_no_pair_of_other_jobs(policy: str, seeds: Sequence[int], tmp_path: Path) -> None:
    for seed in seeds:
        (tmp_path / "jobs.csv").write_text(searches(seed), encoding="utf-8")
        result = simulate(
            {
                "cluster": {"accelerators": {"v100": 4}},
                "workload": {"trace": str(tmp_path / "jobs.csv")},
                "apps": {"tuner": "halving", "eta": 2},
                "policy": {"name": policy},
                "check": True,
            }
        )
        assert result.summary["apps_finished"] == 5
