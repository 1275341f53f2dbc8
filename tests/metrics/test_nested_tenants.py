"""Whatever tenants lie within each other and ask for: an accelerator is owed once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.metrics.entitlement import owned_by
from eunomia.metrics.hourly_usage import entitled
from eunomia.metrics.step_functions import Steps, at_times
from eunomia.model.arrays import Floats
from eunomia.model.fair_share import of_tenants, owned, rows_below
from eunomia.model.tenants import Tenant, Tenants

CAPACITY = 16.0
Drawn = tuple[Tenants, Floats]  # the tree, and (tenant, step) accelerators asked for


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
        whole = CAPACITY if tree.parent[u] < 0 else tree.quota(CAPACITY)[tree.parent[u]]
        room = whole - float(np.nansum(tree.said_quota[siblings]))
        if draw(st.booleans()) and not (tree.parent == u).any():
            said[name] = Tenant(said[name].weight, quota=draw(st.floats(0, max(room, 0.0))))
            tree = Tenants.of(names, said)
    demand = st.lists(st.integers(0, 20), min_size=3, max_size=3)
    return tree, np.array([draw(demand) for _ in names], dtype=float)


@given(trees())
def test_what_is_owed_within_a_tenant_is_at_most_its_quota_and_in_all_at_most_what_there_is(drawn: Drawn) -> None:
    tree, demand = drawn
    quota, below = tree.quota(CAPACITY), rows_below(tree.parent)
    for asked in demand.T:
        owed = of_tenants(asked, owned(asked, quota, below))
        assert owed.sum() <= CAPACITY + 1e-6
        assert (owed >= 0).all()
        assert all(owed[rows].sum() + owed[u] <= quota[u] + 1e-6 for u, rows in below.items())


@given(trees())
def test_a_tenant_without_children_owns_its_quota(drawn: Drawn) -> None:
    tree, demand = drawn
    leaf = ~np.isin(np.arange(len(tree.names)), tree.parent)
    quota = tree.quota(CAPACITY)
    assert np.array_equal(owned(demand[:, 0], quota, rows_below(tree.parent))[leaf], quota[leaf])


@given(trees())
def test_over_time_tenants_own_what_they_own_at_each_time(drawn: Drawn) -> None:
    tree, demand = drawn
    quota, times = tree.quota(CAPACITY), np.array([0.0, 5.0, 6.0])
    asked: list[Steps] = [(times, column) for column in demand]
    found = owned_by(tree.parent, (np.zeros(1), quota[None, :]), asked)
    for step, at in enumerate(times):
        now = [at_times(each, np.array([at]))[0] for each in found]
        assert now == pytest.approx(owned(demand[:, step], quota, rows_below(tree.parent)), abs=1e-6)


@given(trees())
def test_what_tenants_were_owed_and_had_to_lend_is_all_quotas_of_the_top_and_none_twice(drawn: Drawn) -> None:
    tree, demand = drawn
    quota = tree.quota(CAPACITY)
    own = np.tile(quota, (3, 1))
    owed = np.stack([of_tenants(asked, owned(asked, quota, rows_below(tree.parent))) for asked in demand.T])
    found = entitled(tree.parent, own, owed)
    assert (found >= owed - 1e-6).all()
    assert found.sum(axis=1) == pytest.approx(np.full(3, quota[tree.parent < 0].sum()), abs=1e-6)
