"""A pool for first runs is judged by the starts of whole gangs that it saves."""

from __future__ import annotations

import pytest

from eunomia.model.decisions import Start
from eunomia.model.events import JobFailed, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia_reproduction.philly import pool


def _start(name: str, seats: int, epoch: int) -> Start:
    return Start(job_id=name, seats=tuple(range(seats)), until=float("inf"), epoch=epoch)


def test_starts_of_whole_gangs_and_trials_that_fail_in_the_pool_are_counted_apart() -> None:
    seen = pool.GangStarts()
    gang, single = Job(job_id="a", total_steps=9.0, scale_factor=4), Job(job_id="b", total_steps=9.0)
    seen.observe(Moment.of(0.0, [JobSubmitted(gang), JobSubmitted(single)]), [_start("a", 1, 1), _start("b", 1, 1)])
    seen.observe(Moment.of(100.0, [JobFailed("a", 1, "x"), JobFailed("b", 1, "x")]), [_start("a", 4, 2)])
    seen.observe(Moment.of(400.0, [JobFailed("a", 2, "x")]), [_start("a", 4, 3)])  # 300 s: within the pre-run
    seen.observe(Moment.of(701.0, [JobFailed("a", 3, "x")]), [])
    assert (seen.starts, seen.early, seen.spared) == (2, 1, 1)


def test_by_table_7_half_of_the_failed_trials_of_gangs_end_within_five_minutes() -> None:
    assert pool.early_trials().measured == pytest.approx(0.54, abs=0.005)


@pytest.mark.slow
def test_a_pool_takes_early_failures_off_the_starts_of_gangs() -> None:
    bare, gangs, every = (pool.played(0, parameters, jobs=150) for parameters in pool.POOLS.values())
    assert bare["spared"] == 0 < bare["early"]
    for found in (gangs, every):
        assert found["starts"] < bare["starts"]
        assert found["early"] < bare["early"] and found["spared"] > 0


def test_a_pool_is_compared_with_none_seed_by_seed() -> None:
    one = dict.fromkeys(pool.QUANTITIES, 2.0)
    found = {name: [one, {**one, "starts": 2.0 if name == pool.BARE else 1.0}] for name in pool.POOLS}
    rows = {(row.series, row.quantity): row.measured for row in pool._ratios(found)}
    assert rows["a pool for gangs ÷ no pool", "starts"] == pytest.approx(0.5**0.5, abs=1e-4)
    assert ("a pool for every job ÷ no pool", "starts, low") in rows
