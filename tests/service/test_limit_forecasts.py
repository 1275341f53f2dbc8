"""Forecasts of jobs that a limit, the throttle of an array or a priority holds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, Bench

from eunomia.backends.reports import Launched
from eunomia.service.forecast_answers import ForecastAnswers
from eunomia.service.job_row import JobRow
from eunomia.service.limit_forecasts import jobs_to_end_first
from eunomia.service.limits import LimitsOf, LimitsSection

SITE = """\
[service]
listen = "127.0.0.1:0"
forecast_every_s = 0
[cluster]
accelerators = { cpu = 4 }
[policy]
name = "fifo"
"""


def starts(bench: Bench, ids: list[str]) -> list[float]:
    for row in list(bench.controller.rows.values()):
        if row.state == "starting":
            bench.do(Launched(row.id, row.epoch))
    answers = ForecastAnswers(bench.site)
    return [answers.answer({"ask": "when", "job": job, "now": bench.clock.at})["start"][1] for job in ids]


@pytest.mark.parametrize(
    ("limits", "document", "expected"),
    [
        ("running_jobs = 1", {}, [0, 100, 200, 300]),
        ("running_jobs = 2", {}, [0, 0, 100, 100]),
        ("accelerators = 2", {"accelerators": 2}, [0, 100, 200, 300]),
        ("accelerators = 3", {"accelerators": 1}, [0, 0, 0, 100]),
    ],
)
def test_jobs_above_a_limit_start_when_their_places_become_free(
    tmp_path: Path, limits: str, document: dict[str, Any], expected: list[float]
) -> None:
    bench = Bench(tmp_path, f"{SITE}[limits.default]\n{limits}\n")
    ids = [bench.submit(ANN, duration_s=100, **document).body["id"] for _ in expected]
    assert starts(bench, ids) == pytest.approx(expected, abs=1.0)


def test_a_throttled_array_starts_as_its_throttle_lets_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    ids = bench.submit(ANN, duration_s=100, array="0-4%2").body["ids"]
    assert starts(bench, ids) == pytest.approx([0, 0, 100, 100, 200], abs=1.0)
    answer = ForecastAnswers(bench.site).answer({"ask": "when", "job": ids[4], "now": 0.0})
    assert any("a limit or a priority holds it" in one for one in answer["assumes"])


def test_a_lower_priority_starts_after_the_higher_ones_and_its_forecast_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    blocks = bench.submit(BOB, duration_s=100, accelerators=4).body["id"]
    low, high = (bench.submit(ANN, duration_s=50, priority=level).body["id"] for level in (-5, 5))
    assert starts(bench, [blocks, high, low]) == pytest.approx([0, 100, 150], abs=1.0)


@pytest.mark.parametrize("seed", range(30))
def test_chains_of_a_limit_never_hold_more_than_it_allows(seed: int) -> None:
    """Random run times, sizes and limits: each job starts when those before it have ended, and all is added up."""
    rng = random.Random(seed)
    jobs, accelerators = rng.choice([None, 1, 3]), rng.choice([None, 4, 6])
    section = LimitsSection(default=LimitsOf(running_jobs=jobs, accelerators=accelerators))
    rows = [
        JobRow(
            id=f"{n}-a", number=n, tenant="vision", owner="ann", name="x", submitted=0.0, holds=["limit"],
            spec={"accelerators": rng.randint(1, 4), "priority": rng.choice([0, 0, 5])},
        )
        for n in range(40)
    ]  # fmt: skip
    for row in rng.sample(rows, 1):
        row.holds, row.started = [], 0.0
    first = jobs_to_end_first(section, rows)
    begin, end = dict[str, float](), {row.id: rng.uniform(1, 9) for row in rows if not row.holds}
    begin |= dict.fromkeys(end, 0.0)
    for row in sorted((row for row in rows if row.holds), key=lambda row: (-row.spec["priority"], row.number)):
        begin[row.id] = max((end[one] for one in first[row.id]), default=0.0)
        end[row.id] = begin[row.id] + rng.uniform(1, 9)
    for now in begin.values():
        there = [row for row in rows if begin[row.id] <= now < end[row.id]]
        assert jobs is None or len(there) <= jobs
        assert accelerators is None or sum(row.spec["accelerators"] for row in there) <= accelerators
