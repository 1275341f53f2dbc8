"""Dominant shares of divisible tasks: beside the same event by event and small tasks, and what the paper promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.drf import Tasks, filling
from eunomia.solvers.drf_divisible import Wishes, divided

SEEDS = st.integers(0, 2**32 - 1)


def event_by_event(wishes: Wishes, total: Floats, room: Floats, weight: Floats) -> Floats:
    """Return what `divided` says, by going from each job that ends and each resource that runs out to the next."""
    got, room = np.zeros(len(wishes.most)), room.copy()
    ends = np.isfinite(total)
    rises = ~((wishes.task > 0) & (total <= 0)).any(axis=1)
    while (rises := rises & (got < wishes.most) & ~(wishes.task[:, room <= 1e-9] > 0).any(axis=1)).any():
        rate = np.zeros(len(got))
        for m in np.flatnonzero(rises).tolist():
            dominant = max(d / c for d, c in zip(wishes.task[m, ends], total[ends], strict=True) if d > 0)
            family = wishes.weight[rises & (wishes.user == wishes.user[m])].sum()
            rate[m] = weight[wishes.user[m]] * wishes.weight[m] / family / dominant
        flow = rate @ wishes.task
        step = min(
            ((wishes.most - got)[rises] / rate[rises]).min(), *(a / b for a, b in zip(room, flow, strict=True) if b > 0)
        )
        got, room = got + step * rate, room - step * flow
        rises &= wishes.most - got > 1e-9
    return got


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Wishes, Floats, Floats, Floats]:
    """Jobs of a few users, what there is, what of it may be given away, and users' weights."""
    rng = np.random.default_rng(draw(SEEDS))
    users, resources, jobs = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, 12))
    task = rng.integers(0, 4, (jobs, resources)).astype(float)
    task[:, 0] += rng.integers(1, 3, jobs)  # the first resource has an end, and everybody takes of it
    total = rng.integers(1, 25, resources).astype(float)
    room = np.where(rng.random(resources) < 0.5, total, total * rng.integers(0, 3, resources) / 2)
    endless = np.append(False, rng.random(resources - 1) < 0.2)
    total[endless] = room[endless] = np.inf
    most = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], jobs)
    wishes = Wishes(task, most, rng.choice([1.0, 2.0, 0.5], jobs), rng.integers(0, users, jobs))
    return wishes, total, room, rng.choice([1.0, 2.0, 3.0], users)


@settings(max_examples=150, deadline=None)
@given(crowds())
def test_all_at_once_is_the_same_as_event_by_event(crowd: tuple[Wishes, Floats, Floats, Floats]) -> None:
    wishes, total, room, weight = crowd
    got = divided(wishes, total=total, room=room, weight=weight)
    np.testing.assert_allclose(got, event_by_event(wishes, total, room, weight), atol=1e-7)
    ends = np.isfinite(room)
    assert (got <= wishes.most).all() and (got @ wishes.task[:, ends] <= room[ends] * (1 + 1e-9)).all()


def test_who_takes_nothing_that_has_an_end_gets_all_and_who_takes_what_is_not_there_nothing() -> None:
    task = np.array([[0.0, 5.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    total = np.array([2.0, np.inf, 0.0])
    got = divided(Wishes(task, np.full(3, 4.0), np.ones(3), np.arange(3)), total=total, room=total, weight=np.ones(3))
    assert got.tolist() == [4.0, 0.0, 2.0]


# ---- one user, one kind of task: what the paper promises, section 3 ------------------------------------------------


@st.composite
def economies(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Demands (user, resource) of divisible tasks, and what there is (resource,)."""
    rng = np.random.default_rng(draw(SEEDS))
    users, resources = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    task = rng.uniform(0.1, 2.0, (users, resources))
    zero = rng.random(task.shape) < 0.3
    zero[np.arange(users), rng.integers(0, resources, users)] = False  # everybody takes something
    return np.where(zero, 0.0, task), rng.uniform(1.0, 60.0, resources)


def tasks_of(task: Floats, total: Floats, weight: Floats | None = None) -> Floats:
    """Return the tasks of users that all want more of them, (user,)."""
    users = len(task)
    wishes = Wishes(task, np.full(users, 1e9), np.ones(users), np.arange(users))
    return divided(wishes, total=total, room=total, weight=np.ones(users) if weight is None else weight)


def worth(bundle: Floats, task: Floats) -> float:
    """Return how many tasks can be made of a bundle (resource,)."""
    return float((bundle[task > 0] / task[task > 0]).min())


def test_the_example_of_the_paper() -> None:
    """Section 4.1: of 9 CPUs and 18 GB, A takes (1, 4) a task and B (3, 1): 3 and 2 tasks, both shares 2/3."""
    task, total = np.array([[1.0, 4], [3, 1]]), np.array([9.0, 18])
    assert tasks_of(task, total) == pytest.approx([3, 2])


def test_with_twice_the_weight_twice_the_dominant_share() -> None:
    """By hand: 4 x / 18 = 2 · 3 y / 9 and x + 3 y = 9 would be y = 1.5, x = 4.5 and 19.5 GB. So the memory ends first:
    x = 3 y and 13 y = 18."""
    task, total = np.array([[1.0, 4], [3, 1]]), np.array([9.0, 18])
    assert tasks_of(task, total, np.array([2.0, 1.0])) == pytest.approx([54 / 13, 18 / 13])


def test_who_does_not_need_what_ran_out_rises_on() -> None:
    """By hand: two users share the first resource, 5 each; the third takes none of it and all of the second."""
    assert tasks_of(np.array([[1.0, 0], [1, 0], [0, 1]]), np.array([10.0, 30])) == pytest.approx([5, 5, 30])


@settings(max_examples=60, deadline=None)
@given(economies())
def test_every_tenant_has_at_least_its_part_and_envies_no_other(economy: tuple[Floats, Floats]) -> None:
    task, total = economy
    got = tasks_of(task, total)
    for u in range(len(task)):
        assert got[u] >= worth(total / len(task), task[u]) * (1 - 1e-9)
        for v in range(len(task)):
            assert got[u] >= worth(got[v] * task[v], task[u]) * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(economies())
def test_no_tenant_can_have_more_without_another_having_less(economy: tuple[Floats, Floats]) -> None:
    task, total = economy
    out = tasks_of(task, total) @ task >= total * (1 - 1e-9)
    assert ((task > 0) & out).any(axis=1).all()


@settings(max_examples=100, deadline=None)
@given(economies(), SEEDS)
def test_no_tenant_gains_by_asking_for_something_else(economy: tuple[Floats, Floats], seed: int) -> None:
    task, total = economy
    rng, lie = np.random.default_rng(seed), task.copy()
    lie[0] = np.where(rng.random(len(total)) < 0.5, task[0], rng.uniform(0.0, 3.0, len(total)))
    if not lie[0].any():
        lie[0] = task[0] / 2
    useful = worth(tasks_of(lie, total)[0] * lie[0], task[0])
    assert useful <= tasks_of(task, total)[0] * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(economies())
def test_when_a_tenant_leaves_no_other_has_less_if_all_use_every_resource(economy: tuple[Floats, Floats]) -> None:
    task, total = economy[0] + 0.1, economy[1]
    assert (tasks_of(task[1:], total) >= tasks_of(task, total)[1:] * (1 - 1e-9)).all()


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_of_one_resource_it_is_max_min(seed: int) -> None:
    rng = np.random.default_rng(seed)
    most, n = rng.uniform(0.0, 4.0, 6), 6
    got = divided(
        Wishes(np.ones((n, 1)), most, np.ones(n), np.arange(n)),
        total=np.array([9.0]), room=np.array([9.0]), weight=np.ones(n),
    )  # fmt: skip
    level = got.max()
    assert got.sum() == pytest.approx(min(9.0, most.sum()))
    assert got == pytest.approx(np.minimum(most, level))


@settings(max_examples=20, deadline=None)
@given(economies())
def test_tasks_cut_into_small_pieces_come_close(economy: tuple[Floats, Floats]) -> None:
    task, total = economy
    users, pieces = len(task), 500
    dominant = (task / total).max(axis=1)
    small = task / dominant[:, None] / pieces  # no user can have more than all of its dominant resource
    looked, choice = filling(
        Tasks(pieces * np.arange(users + 1), np.repeat(small, pieces, axis=0)[:, None], np.ones(users * pieces, int)),
        total=total, used=np.zeros(task.shape), weight=np.ones(users),
    )  # fmt: skip
    shares = np.bincount(looked[choice >= 0] // pieces, minlength=users) / pieces
    assert shares == pytest.approx(tasks_of(task, total) * dominant, abs=0.02)
