"""AlloX: matchings with busy accelerators against all schedules, tenants by progress, and gangs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.order.allox import SINGLES_ONLY, Allox
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, line_up, one_type, play


def view(time: Floats, capacity: Ints, on: Ints, **columns: Any) -> View:
    """Single accelerators with so many seconds left on each type, (job, type); on (job,) the type held, -1 = none."""
    jobs = len(time)
    filled = {
        "throughput": 1.0 / np.asarray(time, dtype=float),
        "remaining": np.ones(jobs),
        "scale_factor": np.ones(jobs, dtype=np.int64),
        "capacity": np.asarray(capacity, dtype=float),
        "submitted": np.zeros(jobs),
        "on_type": np.asarray(on),
        "tenant": np.zeros(jobs, dtype=np.int64),
        "demand": np.zeros((jobs, 2)),
        "host_capacity": np.full(2, np.inf),
    }
    types = tuple("abc"[: len(capacity)])
    return View(at=0.0, types=types, jobs=jobs, columns=filled | columns)


def starts(policy: Allox, seen: View) -> list[tuple[int, int]]:
    """Return the jobs that the policy starts and their types, in its order."""
    rows = policy.decide(seen).rows
    pairs = zip(rows.job.tolist(), rows.type.tolist(), strict=True)
    return [(job, type) for job, type in pairs if seen.on_type[job] < 0]


# ---- busy accelerators


def test_a_job_waits_for_a_fast_accelerator_that_is_soon_free() -> None:
    """A GPU is free in 10 s; the job takes 20 s there and 1,000 s on the idle CPU: it waits. With 5,000 s to go it
    starts. Gavel's artifact knows idle accelerators only, and starts it on the CPU.
    """
    soon = view(np.array([[10.0, 9e9], [20.0, 1000.0]]), np.array([1, 1]), np.array([0, -1]))
    late = view(np.array([[5000.0, 9e9], [20.0, 1000.0]]), np.array([1, 1]), np.array([0, -1]))
    assert starts(Allox(), soon) == []
    assert starts(Allox(), late) == [(1, 1)]
    assert starts(Allox(queues="machines"), soon) == [(1, 1)]


def test_the_wait_ends_when_the_fast_accelerator_is_free() -> None:
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=1), Node(type="cpu", accelerators=1)),
        jobs=line_up((0, 10), (0, 20)),
        speeds=DrawnRates(types=("gpu", "cpu"), by_kind={"": (1.0, 0.02)}),
    )
    assert play(Allox(), world).finished == {"a": 10, "b": 30}


def least(time: Floats, machine: Ints, free_in: Floats, first: dict[int, int] | None = None) -> float:
    """Return the least sum of finishing times over all schedules of the jobs, machine (m,) its type.

    With `first` (job → machine) only schedules in which idle machines serve just these jobs first.
    """
    best = np.inf
    for places in itertools.product(range(len(machine)), repeat=len(time)):
        total, fits = 0.0, True
        for m, free in enumerate(free_in):
            mine = [job for job, place in enumerate(places) if place == m]
            line = sorted(mine, key=lambda job, m=m: time[job, machine[m]])
            if first is not None and free == 0:
                head = [job for job, place in first.items() if place == m]
                fits &= bool(mine) == bool(head) and all(job in mine for job in head)
                line = head + [job for job in line if job not in head]
            at = free
            for job in line:
                at += time[job, machine[m]]
                total += at
        if fits:
            best = min(best, total)
    return best


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_what_starts_begins_a_schedule_that_no_other_beats(seed: int) -> None:
    """All schedules of up to 4 waiting jobs on up to 4 accelerators, some busy."""
    rng = np.random.default_rng(seed)
    capacity, waiting = rng.integers(1, 3, 2), int(rng.integers(1, 5))
    machine = np.repeat(np.arange(2), capacity)
    busy = rng.random(len(machine)) < 0.5
    time = rng.uniform(1, 100, (waiting + int(busy.sum()), 2))
    on = np.concatenate((machine[busy], np.full(waiting, -1)))
    free_in = np.zeros(len(machine))
    free_in[busy] = time[np.arange(int(busy.sum())), machine[busy]]
    found = starts(Allox(), view(time, capacity, on))
    wait = time[int(busy.sum()) :]
    idle = {type: [m for m in range(len(machine)) if machine[m] == type and not busy[m]] for type in range(2)}
    first: dict[int, int] = {}
    for job, type in found:
        if idle[type]:
            first[job - int(busy.sum())] = idle[type].pop(0)
    assert least(wait, machine, free_in, first) == pytest.approx(least(wait, machine, free_in), rel=1e-9)


# ---- tenants


def test_the_tenants_with_least_progress_are_matched_anew_after_each_start() -> None:
    """Three idle accelerators. Tenant 0 has four jobs of 1 to 4 s, tenant 1 two of 50 s; α = 0.5 is one tenant at a
    time. None has progress, and tenant 0 is earlier: a job of it, then one of tenant 1, then again one of tenant 0.
    """
    owned = {"tenant": np.array([0, 0, 0, 0, 1, 1])}
    seen = view(np.array([[1.0], [2.0], [3.0], [4.0], [50.0], [51.0]]), np.array([3]), np.full(6, -1), **owned)
    assert starts(Allox(alpha=0.5), seen) == [(0, 0), (4, 0), (1, 0)]
    assert [job for job, _ in starts(Allox(), seen)][:3] == [0, 1, 2]


def test_progress_is_the_dominant_share_by_relative_speed() -> None:
    """Tenant 0 holds a third of type a, its best; tenant 1 all of type b at a quarter of its speed on a: 1/3 · 1/4.
    So tenant 1 is next. With CPUs, of which its job takes half, it has 1/8 and is still next; with all of them and at
    half the speed 1/2, more than 1/3.
    """
    time = np.array([[10.0, 1e9], [10.0, 40.0], [5.0, 1e9], [50.0, 1e9]])
    owned: dict[str, Any] = {"tenant": np.array([0, 1, 0, 1])}
    seen = view(time, np.array([3, 1]), np.array([0, 1, -1, -1]), **owned)
    assert starts(Allox(alpha=0.5), seen)[0] == (3, 0)
    cpus = {"demand": np.array([[0.0, 0.0], [8.0, 0.0], [0, 0], [0, 0]]), "host_capacity": np.array([16.0, np.inf])}
    assert starts(Allox(alpha=0.5), view(time, np.array([3, 1]), seen.on_type, **owned, **cpus))[0] == (3, 0)
    time[1, 1] = 20.0
    cpus["host_capacity"] = np.array([8.0, np.inf])
    assert starts(Allox(alpha=0.5), view(time, np.array([3, 1]), seen.on_type, **owned, **cpus))[0] == (2, 0)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_alpha_is_doubled_while_no_job_starts(alpha: float) -> None:
    """The first tenant's only job can run on no type that is idle now: the next one's starts."""
    time = np.array([[5.0, np.inf], [5.0, np.inf], [7.0, 9.0]])
    owned = {"tenant": np.array([0, 1, 2])}
    seen = view(time, np.array([1, 1]), np.array([0, -1, -1]), **owned)
    assert starts(Allox(alpha=alpha), seen) == [(2, 1)]


def test_of_gavels_rule_alpha_is_the_part_of_the_oldest_jobs() -> None:
    """Ten jobs wait for one accelerator, the last is the shortest. A part of 0.5 knows the five oldest only."""
    seen = view(np.arange(10.0, 0.0, -1.0)[:, None], np.array([1]), np.full(10, -1), submitted=np.arange(10.0))
    assert starts(Allox(queues="machines"), seen) == [(9, 0)]
    assert starts(Allox(queues="machines", alpha=0.5), seen) == [(4, 0)]


def test_alpha_beyond_all_tenants_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha is 1.5; it is the fraction of the tenants"):
        Allox(alpha=1.5)


# ---- gangs. One machine of 2; b is as much work as 2 · 100 s on one accelerator; it waits until both are free.

WORLD = SmallWorld(
    nodes=(Node(type="gpu", accelerators=2),),
    jobs=line_up((0, 300), (0, 100, 2), (0, 150), (0, 50)),
    speeds=one_type(),
)


def test_a_refused_gang_gets_a_reason_and_the_others_run_as_without_it() -> None:
    """Shortest first on two accelerators: 50 + 150 + (50 + 300), or 50 + (50 + 150) + 300."""
    story = play(Allox(gangs="refuse"), WORLD)
    assert story.counts == {"finished": 3, "rejected": 1}
    assert sum(story.finished.values()) == 550
    assert "gangs=work" in SINGLES_ONLY


def test_a_gang_that_is_admitted_runs_whole() -> None:
    story = play(Allox(), WORLD)
    assert story.counts == {"finished": 4}
    assert {len(order.seats) for _, order in story.starts if order.job_id == "b"} == {2}


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_worlds_of_several_types_and_tenants_end_with_every_job_done(alpha: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lined = line_up(
        *((float(rng.integers(0, 50)), float(rng.integers(1, 90)), int(rng.integers(1, 3))) for _ in range(12))
    )
    jobs = tuple(replace(job, tenant="xyz"[m % 3]) for m, job in enumerate(lined))
    speeds = DrawnRates(types=("gpu", "cpu"), by_kind={"": (1.0, 0.25)})
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2), Node(type="cpu", accelerators=2)), jobs=jobs, speeds=speeds
    )
    assert play(Allox(alpha=alpha), world, checked=True).counts == {"finished": 12}
