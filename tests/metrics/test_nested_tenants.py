"""Whatever tenants lie within each other and ask for: an accelerator is owed once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.metrics.entitlement import OwnedShares
from eunomia.metrics.sharing import entitled
from eunomia.metrics.step_functions import Steps, at_times
from eunomia.model.arrays import Floats
from eunomia.model.fair_share import FairShares, of_tenants
from eunomia.model.tenants import Tenant, Tenants

CAPACITY = 16.0
Drawn = tuple[Tenants, Floats]  # the tree, and (tenant, step) accelerators asked for


def divided(tree: Tenants, demand: Floats) -> list[float]:
    """Return the share of each tenant as the page of fairness says it, one tenant at a time."""
    count = len(tree.names)

    def asks(u: int) -> bool:
        return bool(demand[u] > 0) or any(asks(v) for v in range(count) if tree.parent[v] == u)

    def share(u: int) -> float:
        if not np.isnan(tree.said_quota[u]):
            quota = float(tree.said_quota[u])
            return quota if tree.parent[u] < 0 else min(quota, share(int(tree.parent[u])))
        if not asks(u):
            return 0.0
        siblings = [v for v in range(count) if tree.parent[v] == tree.parent[u]]
        whole = CAPACITY if tree.parent[u] < 0 else share(int(tree.parent[u]))
        rest = whole - sum(float(tree.said_quota[v]) for v in siblings if not np.isnan(tree.said_quota[v]))
        by_weight = [v for v in siblings if np.isnan(tree.said_quota[v]) and asks(v)]
        return float(max(rest, 0.0) * tree.weight[u] / sum(tree.weight[v] for v in by_weight))

    return [share(u) for u in range(count)]


@st.composite
def trees(draw: st.DrawFn) -> Drawn:
    """Up to seven tenants anywhere below each other, and what their own jobs ask for at each of three times."""
    names: list[str] = []
    for number in range(draw(st.integers(1, 7))):
        above = draw(st.sampled_from(["", *names]))
        names.append(f"{above}/t{number}".lstrip("/"))
    said = {name: Tenant(weight=draw(st.sampled_from([0.5, 1.0, 3.0]))) for name in names}
    tree = Tenants.of(names, said)
    for u, name in enumerate(tree.names):  # a quota within what those of its siblings leave
        siblings = [v for v in range(len(tree.names)) if tree.parent[v] == tree.parent[u] and v != u]
        whole = CAPACITY if tree.parent[u] < 0 else divided(tree, np.ones(len(names)))[tree.parent[u]]
        room = whole - float(np.nansum(tree.said_quota[siblings]))
        if draw(st.booleans()) and not (tree.parent == u).any():
            said[name] = Tenant(said[name].weight, quota=draw(st.floats(0, max(room, 0.0))))
            tree = Tenants.of(names, said)
    demand = st.lists(st.integers(0, 20), min_size=3, max_size=3)
    return tree, np.array([draw(demand) for _ in names], dtype=float)


@given(trees())
def test_what_is_owed_within_a_tenant_is_at_most_its_quota_and_in_all_at_most_what_there_is(drawn: Drawn) -> None:
    tree, demand = drawn
    shares = FairShares(tree)
    for asked in demand.T:
        share, owed = divided(tree, asked), of_tenants(asked, shares.owned(CAPACITY, asked))
        assert owed.sum() <= CAPACITY + 1e-6
        assert (owed >= 0).all()
        assert all(owed[rows].sum() + owed[u] <= share[u] + 1e-6 for u, rows in shares.below.items())


@given(trees())
def test_a_tenant_without_children_owns_its_quota_or_its_part_by_weight_among_tenants_with_demand(drawn: Drawn) -> None:
    tree, demand = drawn
    leaf = ~np.isin(np.arange(len(tree.names)), tree.parent)
    shares = FairShares(tree)
    for asked in demand.T:
        share = divided(tree, asked)
        assert shares.shares(CAPACITY, asked > 0) == pytest.approx(share)
        assert shares.owned(CAPACITY, asked)[leaf] == pytest.approx(np.array(share)[leaf])


@given(trees())
def test_over_time_tenants_own_what_they_own_at_each_time(drawn: Drawn) -> None:
    tree, demand = drawn
    times, shares = np.array([0.0, 5.0, 6.0]), FairShares(tree)
    asked: list[Steps] = [(times, column) for column in demand]
    found = OwnedShares(tree, (np.zeros(1), np.array([CAPACITY])), asked)
    for step, at in enumerate(times):
        now = [at_times(found.owned(u), np.array([at]))[0] for u in range(len(tree.names))]
        assert now == pytest.approx(shares.owned(CAPACITY, demand[:, step]), abs=1e-6)


@given(trees())
def test_what_tenants_were_owed_and_had_to_lend_is_all_shares_of_the_top_and_none_twice(drawn: Drawn) -> None:
    tree, demand = drawn
    shares = FairShares(tree)
    own = np.array([divided(tree, asked) for asked in demand.T])
    owed = np.stack([of_tenants(asked, shares.owned(CAPACITY, asked)) for asked in demand.T])
    found = entitled(tree.parent, own, owed)
    assert (found >= owed - 1e-6).all()
    assert found.sum(axis=1) == pytest.approx(own[:, tree.parent < 0].sum(axis=1), abs=1e-6)
