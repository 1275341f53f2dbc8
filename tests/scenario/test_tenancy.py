"""Tenants of jobs: missing ones, weights from a list, quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.tenants import PHILLY, owned
from eunomia.traces.table import Trace, trace_of

HEAD = "job_id,submitted_s,scale_factor,duration_s,job_type,tenant\n"


def some_trace(owners: tuple[str, ...], apps: tuple[str, ...] | None = None) -> Trace:
    jobs = len(owners)
    names, size = [f"job-{m}" for m in range(jobs)], np.ones(jobs, dtype=np.int64)
    return trace_of("here", names, np.arange(float(jobs)), size, tenant=owners, app=apps or ("",) * jobs)


def test_nameless_jobs_are_spread_in_proportion_to_the_named_and_counted() -> None:
    trace, notes = owned(some_trace(("a",) * 300 + ("b",) * 100 + ("",) * 4000), "spread", 0)
    count = Counter(trace.tenant[400:])
    assert set(count) == {"a", "b"}
    assert count["a"] / 4000 == pytest.approx(0.75, abs=0.03)
    assert notes[0].startswith("4,000 jobs name no tenant; they were spread over")


def test_a_seed_of_its_own_makes_the_spread_the_same_in_every_run() -> None:
    trace = some_trace(("a", "b") * 20 + ("",) * 60)
    spread = [owned(trace, "spread(7)", seed)[0].tenant for seed in (0, 1)]
    assert spread[0] == spread[1] != owned(trace, "spread(8)", 0)[0].tenant
    assert owned(trace, "spread", 7)[0].tenant == spread[0]


def test_nameless_jobs_can_be_left_out_or_have_no_tenant() -> None:
    trace = some_trace(("a", "", "b"))
    assert owned(trace, "drop", 0)[0].job_id == ("job-0", "job-2")
    kept, notes = owned(trace, "own", 0)
    assert kept.tenant == ("a", "", "b")
    assert notes == ("1 jobs name no tenant and belong to -.",)


@pytest.mark.parametrize("missing", ["spread", "drop", "own"])
def test_a_nameless_job_has_the_tenant_of_its_app(missing: str) -> None:
    """Jobs 1 and 3 are of apps of a and b; job 4 names neither tenant nor app."""
    owners, apps = ("a", "", "b", "", "", "a"), ("x", "x", "y", "y", "", "")
    trace, notes = owned(some_trace(owners, apps), missing, 0)
    assert trace.tenant[:4] == ("a", "a", "b", "b")
    assert notes[0] == "2 jobs name no tenant; others of their apps do."
    assert notes[1].startswith("1 jobs name no tenant")


def test_an_app_that_names_no_tenant_is_spread_whole() -> None:
    """A hundred apps of five jobs each, and jobs without an app among them; a job without both is drawn alone."""
    rng = np.random.default_rng(0)
    apps = tuple(f"app-{k}" if k < 100 else "" for k in rng.permutation(np.repeat(np.arange(120), 5)).tolist())
    named = ("a",) * 30 + ("b",) * 30
    trace, notes = owned(some_trace(named + ("",) * 600, ("",) * 60 + apps), "spread", 3)
    owners: dict[str, set[str]] = {}
    for app, tenant in zip(trace.app[60:], trace.tenant[60:], strict=True):
        owners.setdefault(app, set()).add(tenant)
    assert owners.pop("") == {"a", "b"}
    assert all(len(found) == 1 for found in owners.values())
    assert Counter(name for (name,) in owners.values())["a"] == pytest.approx(50, abs=20)
    result = "600 jobs name no tenant; they were spread over 2 in proportion to their jobs, 100 apps whole, seed 3."
    assert notes == (result,)
    assert owned(trace, "spread", 4) == (trace, ())


def test_a_trace_without_any_tenant_stays_as_it_is() -> None:
    trace = some_trace(("", ""))
    assert owned(trace, "drop", 0) == (trace, ())


@pytest.fixture
def scenario(load: Callable[..., Scenario], tmp_path: Path) -> Callable[..., Scenario]:
    """Return what loads a scenario of 8 accelerators whose two jobs are of tenants a and b."""
    (tmp_path / "jobs.csv").write_text(HEAD + "1,0,1,10,any,a\n2,0,1,10,any,b\n", encoding="utf-8")
    head = '[cluster]\naccelerators = { v100 = 8 }\n[throughputs]\nsource = "uniform"\n[workload]\ntrace = "jobs.csv"\n'
    return lambda text: load(head + text)


def test_a_list_of_weights_is_a_table_and_the_scenario_has_the_last_word(
    scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    (tmp_path / "weights.csv").write_text("tenant,weight,quota\na,3,\nb,1,2\nc,5,\n", encoding="utf-8")
    said = scenario('tenant_weights = "weights.csv"\n[tenants]\na = { weight = 7 }\nb = { may_borrow = false }\n')
    for one in (said, scenario_from_dict(said.as_dict(), said.base)):
        tenants = set_up(one).tenants
        assert [tenants[name].weight for name in "abc"] == [7.0, 1.0, 5.0]
        assert (tenants["b"].quota, tenants["b"].borrows, tenants["a"].borrows) == (2.0, False, True)


def test_a_tenant_that_the_list_lacks_is_named(scenario: Callable[..., Scenario], tmp_path: Path) -> None:
    (tmp_path / "weights.csv").write_text("tenant,weight\na,3\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as refusal:
        set_up(scenario('tenant_weights = "weights.csv"\n'))
    (problem,) = refusal.value.problems
    assert (problem.row, problem.value) == (7, "b")
    assert "has no weight in weights.csv" in problem.rule


def test_quotas_beyond_the_cluster_are_refused(scenario: Callable[..., Scenario]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        set_up(scenario("[tenants]\na = { quota = 5 }\nb = { quota = 4 }\n"))
    (problem,) = refusal.value.problems
    assert problem.rule == "the quotas of a, b add up to 9 accelerators, and the cluster has 8"
    assert problem.column == "tenants.b.quota"


def test_quotas_of_a_list_are_reported_where_the_list_is_named(
    scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    (tmp_path / "weights.csv").write_text("tenant,weight,quota\na,1,5\nb,1,4\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as refusal:
        set_up(scenario('tenant_weights = "weights.csv"\n'))
    (problem,) = refusal.value.problems
    assert (problem.row, problem.column) == (7, "workload.tenant_weights")


def test_what_is_wrong_with_a_list_is_reported_in_words_of_tenants(
    scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    said = []
    for rows in ("a,1\na,2\n", ""):
        (tmp_path / "weights.csv").write_text(f"tenant,weight\n{rows}", encoding="utf-8")
        with pytest.raises(InvalidInput) as refusal:
            set_up(scenario('tenant_weights = "weights.csv"\n'))
        said.append(refusal.value.problems[0])
    assert said[0].fix == "keep one of the two rows"
    assert said[1].rule == "a list of weights must hold at least one tenant"


def test_tenants_of_the_scenario_that_own_no_job_are_reported(scenario: Callable[..., Scenario]) -> None:
    none = "[tenants] names tenants that own no job of the workload: A, a/x."
    assert set_up(scenario('[tenants]\na = {}\nA = { quota = 5 }\n"a/x" = {}\n')).notes == (none,)
    assert set_up(scenario("[tenants]\na = {}\nb = {}\n")).notes == ()


def test_what_happens_to_nameless_jobs_is_one_of_three_words(
    complaints: Callable[..., tuple[object, ...]],
) -> None:
    text = '[cluster]\naccelerators = { v100 = 8 }\n[workload]\ntrace = "jobs.csv"\nmissing_vc = "scatter"\n'
    (problem,) = complaints(text)
    assert "must be spread, spread(seed), drop or own" in str(problem)
    assert str(problem).count("leave it out") == 1


def test_philly_has_fifteen_clusters() -> None:
    assert len(PHILLY) == 15
    assert sum(PHILLY.values()) == 28056.0
