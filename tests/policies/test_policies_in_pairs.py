"""Policies with space sharing, against programs over all pairs of jobs and against themselves without pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests import oracles
from tests.solvers.test_sharing import Instance, problems, received

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.view import View
from eunomia.policies import build
from eunomia.solvers.packing.row_times import Entries

PRICE = np.linspace(1.0, 3.0, 3)
few = settings(max_examples=30, deadline=None)


def decide(spelling: str, one: Instance, **more: Any) -> tuple[Shares, Floats]:
    """Return the answer and what each job does; the answer fits and its proof is tight."""
    policy, jobs, types = build(spelling), len(one.of), len(one.capacity)
    columns = {
        "throughput": rates(one),
        "capacity": one.capacity,
        "scale_factor": one.size[one.of].astype(np.int64),
        "weight": np.ones(jobs),
        "job_class": one.of,
        "packed_throughput": one.beside,
        "price": PRICE[:types],
        "remaining": np.full(jobs, 100.0),
        "deadline": np.full(jobs, np.inf),
        "longest_lease": np.inf,
        "tenant": np.arange(jobs) % 2,
        "tenants": Tenants.of(["a", "b"], {"a": Tenant(1.0), "b": Tenant(2.0)}),
        **more,
    }
    needed = {name: columns[name] for name in policy.info.needs}
    memory = {name: np.full(jobs, default) for name, default in policy.info.memory_columns.items()}
    answer = policy.decide(View(at=0.0, types=tuple("abc"[:types]), jobs=jobs, columns=needed, memory=memory))
    assert isinstance(answer, Shares)
    assert answer.certificate is not None
    assert answer.certificate.gap <= max(answer.certificate.tolerance, 1e-9)
    if answer.rows is None:
        job, type = np.nonzero(answer.x)
        return answer, received(one, Entries(job, np.full(len(job), -1), type, answer.x[job, type]))
    rows, some = answer.rows, answer.x > 0
    entries = Entries(rows.job[some], rows.filled()[0][some], rows.type[some], answer.x[some])
    return answer, received(one, entries)


def rates(one: Instance) -> Floats:
    """Return (job, type) with zeros where a gang is wider than the type; the instance gets the same."""
    wide = one.size[:, None] > one.capacity
    one.rate[wide] = 0.0
    for kind, type in zip(*np.nonzero(wide), strict=True):
        one.beside[kind, :, type] = one.beside[:, kind, type] = 0.0
    one.beside[:] *= (one.rate[:, None] > 0) & (one.rate[None, :] > 0)
    return one.rate[one.of]


def objective(answer: Shares) -> float:
    assert answer.certificate is not None
    return answer.certificate.objective


@given(problems(most_rows=8))
@few
def test_no_answer_buys_more_for_a_dollar(one: Instance) -> None:
    """The ratio is the largest if and only if nothing is left to win at that price of a step."""
    T = rates(one)
    if not T.any():
        return
    answer, done = decide("throughput_per_cost?space_sharing=true", one)
    best = T.max(axis=1)
    worth = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
    part = one.by_row(), one.size[one.of], one.capacity
    fee = objective(answer) * PRICE[: T.shape[1]]
    assert oracles.best_shared_bill(worth, *part, fee, 0 * best) == pytest.approx(0.0, abs=1e-7 * worth @ done)
    plain, _ = decide("throughput_per_cost", one)
    assert objective(answer) >= objective(plain) * (1 - 1e-9)


@given(problems(most_rows=7))
@few
def test_deadlines_are_judged_with_pairs_and_kept(one: Instance) -> None:
    T = rates(one)
    soon = one.rng.uniform(5, 400, len(one.of))
    floor, weight = 100 / soon, one.rng.choice([1.0, 3.0], len(one.of))
    answer, done = decide("throughput_per_cost?deadlines=true&space_sharing=true", one, deadline=soon, weight=weight)
    kept = np.setdiff1d(np.arange(len(soon)), answer.late)
    assert (done[kept] >= floor[kept] * (1 - 1e-8)).all()
    beyond = floor > T.max(axis=1) * (1 + 1e-12)  # by the deadline even if alone
    asked = np.where(beyond, 0.0, floor)
    least = oracles.least_late_shared(one.by_row(), one.size[one.of], one.capacity, asked, weight)
    lost = weight[list(answer.late)].sum() - weight[beyond].sum()
    proven = not any("smallest set found" in str(reason) for reason in answer.why.values())
    assert lost == pytest.approx(least) if proven else lost >= least * (1 - 1e-9)


@given(problems(most_rows=8))
@few
def test_the_bill_that_keeps_all_promises_is_the_least_there_is(one: Instance) -> None:
    T = rates(one)
    alone = oracles.isolated_speed(T, one.size[one.of], one.capacity) * (1 - 1e-9)
    answer, done = decide("min_cost?space_sharing=true", one)
    assert (done >= alone * (1 - 1e-8)).all()
    part = one.by_row(), one.size[one.of], one.capacity
    least = oracles.best_shared_bill(np.zeros(len(done)), *part, PRICE[: T.shape[1]], alone)
    assert least is not None
    assert objective(answer) == pytest.approx(-least, rel=1e-7, abs=1e-9)
    assert objective(answer) <= objective(decide("min_cost", one)[0]) * (1 + 1e-8) + 1e-12


@given(problems())
@few
def test_the_fairest_product_grows_with_pairs(one: Instance) -> None:
    if rates(one).any():
        plain, shared = (
            objective(decide(f"proportional_fairness{more}", one)[0]) for more in ("", "?space_sharing=true")
        )
        assert shared >= plain - 2e-6 * len(one.of)


@given(problems())
@few
def test_the_worst_off_of_water_filling_is_where_max_min_fairness_has_it(one: Instance) -> None:
    if rates(one).any():
        filled, level = (
            objective(decide(f"{name}?space_sharing=true", one)[0]) for name in ("water_filling", "max_min_fairness")
        )
        assert filled == pytest.approx(level, rel=1e-7)


def test_who_is_stuck_with_a_partner_does_not_hold_the_others_down() -> None:
    """Two jobs share the only accelerator they fit on, at 0.8 each; the third has one of its own, and all of it."""
    rate, beside = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, 2, 2))
    beside[0, 0, 0] = 0.8
    one = Instance(np.array([0, 0, 1]), rate, beside, np.ones(2), np.ones(2), np.random.default_rng(0))
    answer, done = decide("water_filling?space_sharing=true", one)
    np.testing.assert_allclose(done, [0.8, 0.8, 1.0], rtol=1e-9)
    assert answer.certificate is not None
    assert answer.certificate.binding is not None
    assert answer.certificate.binding.tolist() == [0, 0, 1]


def test_tenants_share_accelerators_with_each_other() -> None:
    """One accelerator, tenants of weights 1 and 2 with a job each, 0.6 and 0.9 beside each other: 2y + … = 1."""
    beside = np.zeros((2, 2, 1))
    beside[0, 1], beside[1, 0] = 0.6, 0.9
    one = Instance(np.array([0, 1]), np.ones((2, 1)), beside, np.ones(2), np.ones(1), np.random.default_rng(0))
    _, done = decide("hierarchical?space_sharing=true", one)
    y = 10 / 13  # together; the rest is the second job's: 0.9 y + 1 − y = 2 · 0.6 y
    np.testing.assert_allclose(done, [0.6 * y, 1.2 * y], rtol=1e-9)


def test_a_pair_is_cheaper_than_two_apart() -> None:
    """Each is promised half of one accelerator; beside each other both keep 0.8, so 0.625 of its time is enough."""
    beside = np.full((1, 1, 1), 0.8)
    one = Instance(np.array([0, 0]), np.ones((1, 1)), beside, np.ones(1), np.ones(1), np.random.default_rng(0))
    answer, _ = decide("min_cost?space_sharing=true", one)
    assert objective(answer) == pytest.approx(0.625)


def test_a_tenant_whose_inner_policy_shares_out_cannot_share_with_another() -> None:
    with pytest.raises(ValueError, match="leave space_sharing out"):
        build("hierarchical?space_sharing=true&inner=max_throughput")
