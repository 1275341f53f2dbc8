"""Dominant resource fairness: the paper's example, its properties up to a task, and worlds followed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia.policies.order.drf import Drf
from eunomia.solvers.drf import Tasks, dominant_shares, filling
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, play

MANY = 400


def shared(
    demand: Floats, total: Floats, *, weight: Floats | None = None, strict: bool = False, tasks: int = MANY
) -> list[int]:
    """Return the users whose tasks are served, in order; each has the same tasks, as many as it likes."""
    users = len(demand)
    looked, choice = filling(
        Tasks(
            np.arange(users + 1) * tasks, np.repeat(demand, tasks, axis=0)[:, None], np.ones(users * tasks, np.int64)
        ),
        total=total,
        used=np.zeros(demand.shape),
        weight=np.ones(users) if weight is None else weight,
        strict=strict,
    )
    return (looked[choice >= 0] // tasks).tolist()


def counts(*args: Floats, **more: Floats) -> Floats:
    return np.bincount(shared(*args, **more), minlength=len(args[0])).astype(float)


# ---- the example of section 4.1: 9 CPUs and 18 GB; A's tasks take (1, 4), B's (3, 1) ---------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_the_example_of_the_paper(strict: bool) -> None:
    demand, total = np.array([[1.0, 4], [3, 1]]), np.array([9.0, 18])
    served = shared(demand, total, strict=strict)
    assert ["AB"[u] for u in served] == ["A", "B", "A", "B", "A"]
    used = np.bincount(served)[:, None] * demand
    assert used.tolist() == [[3, 12], [6, 2]]
    assert dominant_shares(used, total, np.ones(2)) == pytest.approx([2 / 3, 2 / 3])


def test_with_twice_the_weight_twice_the_dominant_share() -> None:
    """One resource, tasks of 1 of 9: A of weight 2 gets 6, B 3."""
    assert counts(np.ones((2, 1)), np.array([9.0]), weight=np.array([2.0, 1])).tolist() == [6, 3]


def test_strict_filling_ends_where_it_first_fails() -> None:
    """Of 5, A has taken 3; B's first task of 3 does not fit. C's tasks of 1 fit twice, if it is asked at all."""
    demand, total = np.array([[3.0], [3.0], [1.0]]), np.array([5.0])
    assert shared(demand, total) == [0, 2, 2]
    assert shared(demand, total, strict=True) == [0]


# ---- properties, up to one task ------------------------------------------------------------------------------------


@st.composite
def instances(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Demands (user, resource) of small tasks, and what there is (resource,)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    users, resources = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    return rng.uniform(0.1, 2.0, (users, resources)), np.full(resources, 60.0)


@settings(max_examples=25, deadline=None)
@given(instances())
def test_nothing_more_fits_and_dominant_shares_differ_by_a_task_at_most(instance: tuple[Floats, Floats]) -> None:
    demand, total = instance
    got = counts(demand, total, strict=True)
    share, task = dominant_shares(got[:, None] * demand, total, np.ones(len(demand))), (demand / total).max()
    assert share.max() - share.min() <= task + 1e-9
    full = counts(demand, total)  # passing over who does not fit is Pareto-efficient
    left = total - full @ demand
    assert (full >= got).all()
    assert not (demand <= left).all(axis=1).any()


@settings(max_examples=25, deadline=None)
@given(instances())
def test_every_tenant_has_its_part_and_envies_no_other_by_more_than_a_task(instance: tuple[Floats, Floats]) -> None:
    demand, total = instance
    users, got = len(demand), counts(demand, total, strict=True)
    alone = (total / users / demand).min(axis=1)
    worth = (got[:, None] * demand)[None, :, :] / demand[:, None, :]  # (mine, theirs, resource) of my tasks
    slack = 2 + (demand.max() / demand.max(axis=1))  # a task of mine, and what a task of another is of mine
    assert (got >= alone - slack).all()
    assert (got[:, None] >= worth.min(axis=2) - slack[:, None]).all()


@settings(max_examples=25, deadline=None)
@given(instances(), st.integers(0, 2**32 - 1))
def test_asking_for_more_of_something_does_not_pay(instance: tuple[Floats, Floats], seed: int) -> None:
    demand, total = instance
    lie = demand.copy()
    lie[0] *= np.random.default_rng(seed).uniform(1.0, 3.0, demand.shape[1])
    honest = counts(demand, total, strict=True)[0]
    useful = (counts(lie, total, strict=True)[0] * lie[0] / demand[0]).min()
    assert useful <= honest + 2 + demand.max() / demand[0].max()


# ---- tenants' jobs -------------------------------------------------------------------------------------------------


def owned(owner: str, i: int, submitted: float, seconds: float, size: int, **asked: float) -> Job:
    """Return a job named by its place."""
    name = "abcdefgh"[i]
    about = {"submitted": submitted, "total_steps": seconds, **asked}
    return Job(job_id=name, sequence=i, scale_factor=size, tenant=owner, **about)  # type: ignore[arg-type]


def ends(policy: Drf, *jobs: tuple[str, float, float, int], accelerators: int = 4) -> dict[str, float]:
    """Return when jobs a, b, c … end that are given as (tenant, submitted, seconds, accelerators)."""
    lined = tuple(owned(owner, i, *rest) for i, (owner, *rest) in enumerate(jobs))  # type: ignore[arg-type]
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)})
    return play(
        policy, SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=lined, speeds=speeds)
    ).finished


CROWD = [("lab", 0.0, 100.0, 1)] * 6 + [("shop", 0.0, 100.0, 1)] * 2


def test_a_tenant_with_a_crowd_of_jobs_gets_no_more_than_another() -> None:
    """Four accelerators, two each: c to f of the lab wait for the second hundred."""
    assert ends(Drf(), *CROWD) == dict.fromkeys("abgh", 100) | dict.fromkeys("cdef", 200)


def test_who_runs_is_stopped_only_with_preempt() -> None:
    jobs = [("lab", 0.0, 100.0, 1)] * 4 + [("shop", 10.0, 20.0, 2)]
    assert ends(Drf(), *jobs)["e"] == 120
    assert ends(Drf(preempt=True), *jobs)["e"] == 30


def test_a_wide_gang_is_passed_over_unless_strict() -> None:
    """The lab holds 3 of 4; shop's gang of 2 comes before the lab's single."""
    jobs = [("lab", 0.0, 100.0, 3), ("shop", 1.0, 10.0, 2), ("lab", 2.0, 10.0, 1)]
    assert ends(Drf(), *jobs) == {"a": 100, "b": 110, "c": 12}
    assert ends(Drf(strict=True), *jobs) == {"a": 100, "b": 110, "c": 110}


# ---- CPUs and memory -----------------------------------------------------------------------------------------------


def test_the_example_of_the_paper_as_jobs() -> None:
    """A machine of 9 CPUs and 18 GiB, with accelerators to spare: three jobs of A and two of B run at once."""
    jobs = [owned("A", i, 0.0, 100.0, 1, cpus=1, memory_gib=4) for i in range(4)]
    jobs += [owned("B", i + 4, 0.0, 100.0, 1, cpus=3, memory_gib=1) for i in range(4)]
    node = Node(type="gpu", accelerators=80, cpus=9, memory_gib=18)
    story = play(
        Drf(), SmallWorld(nodes=(node,), jobs=tuple(jobs), speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}))
    )
    assert [job for job, end in sorted(story.finished.items()) if end == 100] == ["a", "b", "c", "e", "f"]


def test_where_a_machine_does_not_say_its_memory_memory_does_not_count() -> None:
    jobs = tuple(owned("A", i, 0.0, 100.0, 1, cpus=1, memory_gib=9) for i in range(3))
    nodes = (Node(type="gpu", accelerators=2, cpus=1, memory_gib=9), Node(type="gpu", accelerators=2, cpus=1))
    ends = play(
        Drf(), SmallWorld(nodes=nodes, jobs=jobs, speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}))
    ).finished
    assert ends == {"a": 100, "b": 100, "c": 200}
