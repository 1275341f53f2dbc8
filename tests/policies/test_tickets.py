"""Tickets: parts by stride, trades between tenants, and draws, on numbers small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.order.lottery import Lottery, tickets_by_job
from eunomia.policies.shares.gandiva_fair import GandivaFair, trade
from eunomia.policies.shares.stride import Stride
from eunomia.policies.shares.tickets import level_fill, tickets_of
from eunomia.testing.sample_views import a_view
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, line_up, play


def seen(throughput: list[list[float]], owners: list[str], capacity: list[float], **weights: float) -> View:
    """Return a view of jobs of one accelerator each, of these owners."""
    tenants = Tenants.of(owners, {name: Tenant(weight=weight) for name, weight in weights.items()})
    jobs = len(owners)
    columns = {
        "throughput": np.array(throughput, dtype=float),
        "scale_factor": np.ones(jobs, dtype=np.int64),
        "weight": np.ones(jobs),
        "capacity": np.array(capacity, dtype=float),
        "on_type": np.full(jobs, -1),
        "tenant": np.array([tenants.row_of(owner) for owner in owners]),
        "tenants": tenants,
    }
    return View(at=0.0, types=("v100", "k80")[: len(capacity)], jobs=jobs, columns=columns)


# ---- parts ---------------------------------------------------------------------------------------------------------


def test_a_level_is_raised_until_the_amount_is_given_or_everybody_has_its_fill() -> None:
    assert level_fill(6.0, np.array([1.0, 2, 1]), np.array([1.0, 9, 9])) == pytest.approx([1, 10 / 3, 5 / 3])
    assert level_fill(6.0, np.ones(3), np.array([1.0, 2, 0])) == pytest.approx([1, 2, 0])


def test_tickets_of_tenants_without_jobs_are_not_counted() -> None:
    tenants = Tenants.of((), {"a": Tenant(2.0), "a/x": Tenant(1.0), "a/y": Tenant(3.0), "b": Tenant(1.0)})
    assert tickets_of(tenants, np.array([1, 2, 3])) == pytest.approx([2 / 3, 1 / 6, 1 / 2, 1 / 3])
    assert tickets_of(tenants, np.array([1, 3])) == pytest.approx([2 / 3, 2 / 3, 0, 1 / 3])


def test_stride_gives_time_by_tickets_whatever_the_number_of_jobs() -> None:
    """One accelerator; lab has 3 of 4 tickets and three jobs, shop 1 and one: a quarter of the time each."""
    view = seen([[1.0]] * 4, ["lab", "lab", "lab", "shop"], [1.0], lab=3, shop=1)
    assert Stride().decide(view).x[:, 0] == pytest.approx([1 / 4] * 4)


def test_what_a_tenant_cannot_hold_goes_to_the_others() -> None:
    """Four accelerators, two each by tickets; shop's one job holds one, so lab's three jobs have one each."""
    view = seen([[1.0]] * 4, ["lab", "lab", "lab", "shop"], [4.0])
    assert Stride().decide(view).x[:, 0] == pytest.approx([1] * 4)


def test_under_rounds_the_time_received_is_as_the_tickets() -> None:
    """Weights 3 and 1 on one accelerator: after 40 rounds of the same length, 30 and 10."""
    (one,) = line_up((0.0, 1e6, 1))
    jobs = tuple(replace(one, job_id=name, sequence=i, tenant=name) for i, name in enumerate(("lab", "shop")))
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=1),),
        jobs=(replace(jobs[0], total_steps=30 * 360.0), replace(jobs[1], total_steps=10 * 360.0)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}),
    )
    ends = play(Stride(), world, tenants={"lab": Tenant(3.0), "shop": Tenant(1.0)}).finished
    assert min(ends.values()) >= 38 * 360
    assert max(ends.values()) == 40 * 360


# ---- trades --------------------------------------------------------------------------------------------------------


def test_two_tenants_trade_at_the_geometric_mean_of_their_speed_ups() -> None:
    """s = 2 and 4, p = √8: the half of a k80 buys √2/8 of a v100."""
    A, worth, room = np.full((2, 2), 0.5), np.array([[1, 1 / 2], [1, 1 / 4]]), np.full((2, 2), 2.0)
    q = 2**0.5 / 8
    after = trade(A, worth, room, room.sum(axis=1))
    assert after == pytest.approx(np.array([[0.5 - q, 1], [0.5 + q, 0]]))


def test_the_second_price_leaves_the_gain_with_the_highest_bidder() -> None:
    """s = 2, 3 and 4: 4 pays 3, so half a k80 buys 1/6 of a v100; then 3 pays the second highest again, 2."""
    A, worth, room = np.full((3, 2), 0.5), np.array([[1, 1 / 2], [1, 1 / 3], [1, 1 / 4]]), np.full((3, 2), 3.0)
    after = trade(A, worth, room, room.sum(axis=1), price="second")
    sold = 1 / 6 + 1 / 4
    assert after == pytest.approx(np.array([[0.5 - sold, 1.5], [0.75, 0], [0.5 + 1 / 6, 0]]))


def test_no_tenant_sells_for_what_it_cannot_hold() -> None:
    """The seller has one job of one accelerator, and holds one already: it has no use for more slow ones."""
    A, worth = np.full((2, 2), 0.5), np.array([[1, 1 / 2], [1, 1 / 4]])
    assert trade(A, worth, np.ones((2, 2)), np.ones(2)) == pytest.approx(A)


@st.composite
def markets(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, Floats]:
    """Accelerators, worth and demands of 2 to 5 tenants on 1 to 3 types; some cannot use a type."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (int(rng.integers(2, 6)), int(rng.integers(1, 4)))
    worth = rng.uniform(0.05, 1.0, shape) * (rng.random(shape) < 0.9)
    A = rng.uniform(0.0, 4.0, shape) * (worth > 0)
    on_type = (A + rng.uniform(0.0, 6.0, shape)) * (worth > 0)
    return A, worth, on_type, np.minimum(on_type.sum(axis=1), A.sum(axis=1) + rng.uniform(0.0, 6.0, shape[0]))


@settings(max_examples=100, deadline=None)
@given(markets(), st.sampled_from(["middle", "second"]))
def test_trades_make_no_tenant_worse_off_and_lose_no_accelerator(
    market: tuple[Floats, Floats, Floats, Floats], price: str
) -> None:
    A, worth, on_type, in_all = market
    after = trade(A, worth, on_type, in_all, price=price)  # type: ignore[arg-type]
    before, now = (A * worth).sum(axis=1), (after * worth).sum(axis=1)
    assert after.sum(axis=0) == pytest.approx(A.sum(axis=0))
    assert (now >= before - 1e-6).all()
    assert (after <= on_type + 1e-6).all()
    assert (after.sum(axis=1) <= in_all + 1e-6).all()
    if price == "middle":  # who trades gains
        changed = np.abs(after - A).sum(axis=1) > 1e-3
        assert (now[changed] > before[changed]).all()


def test_after_the_trades_no_further_trade_is_possible() -> None:
    """Where nothing but what they have holds them back, no tenant with a larger speed-up has slow ones left."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        worth = np.stack((np.ones(4), rng.uniform(0.1, 0.9, 4)), axis=1)
        after = trade(rng.uniform(0, 4, (4, 2)), worth, np.full((4, 2), 1e3), np.full(4, 1e3))
        s = 1 / worth[:, 1]
        selling, buying = after[:, 0] > 1e-6, after[:, 1] > 1e-6
        assert s[buying].max() <= s[selling].min() * (1 + 1e-6)


def test_trading_raises_what_both_tenants_do() -> None:
    view = seen([[2, 1], [4, 1], [4, 1], [2, 1]], ["speech", "vision", "vision", "speech"], [1.0, 1.0])
    alone, fair = ((view.throughput * policy.decide(view).x).sum(axis=1) for policy in (Stride(), GandivaFair()))
    assert alone == pytest.approx([3 / 4, 5 / 4, 5 / 4, 3 / 4])
    assert fair == pytest.approx([1 - 2**0.5 / 8, 1 + 2**0.5 / 4, 1 + 2**0.5 / 4, 1 - 2**0.5 / 8])


# ---- lottery -------------------------------------------------------------------------------------------------------


def test_chances_are_as_the_tickets() -> None:
    """lab has 3 of 4 tickets for three jobs, shop 1 for one: each job is first a quarter of the time."""
    view = seen([[1.0]] * 4, ["lab", "lab", "lab", "shop"], [1.0], lab=3, shop=1)
    assert tickets_by_job(view) == pytest.approx([1 / 4] * 4)
    draws = 2000
    first = [int(Lottery().decide(replace(view, seed=(0, ask))).rows.job[0]) for ask in range(draws)]
    assert np.bincount(first) / draws == pytest.approx([1 / 4] * 4, abs=4 * (3 / 16 / draws) ** 0.5)


def test_who_holds_three_of_four_tickets_is_first_three_times_of_four() -> None:
    view, draws = seen([[1.0]] * 2, ["lab", "shop"], [1.0], lab=3, shop=1), 2000
    first = [int(Lottery().decide(replace(view, seed=(0, ask))).rows.job[0]) for ask in range(draws)]
    assert np.mean(first) == pytest.approx(1 / 4, abs=4 * (3 / 16 / draws) ** 0.5)


def test_another_seed_draws_another_order() -> None:
    view = a_view(Lottery(), 0)
    orders = {tuple(Lottery().decide(replace(view, seed=(seed, 0))).rows.job.tolist()) for seed in range(20)}
    assert len(orders) > 1
