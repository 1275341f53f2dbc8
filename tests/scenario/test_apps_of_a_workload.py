"""Apps that a workload may and may not have, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import Scenario
from eunomia.setup.run_config import set_up

HEAD = "job_id,submitted_s,scale_factor,duration_s,job_type,app,tenant\n"
CLUSTER = "[cluster]\naccelerators = { v100 = 8 }\n"


@pytest.fixture
def scenario(load: Callable[..., Scenario], tmp_path: Path) -> Callable[..., Scenario]:
    """Return what loads a scenario of these jobs."""

    def loaded(jobs: str, more: str = "") -> Scenario:
        (tmp_path / "jobs.csv").write_text(HEAD + jobs, encoding="utf-8")
        return load(f'{CLUSTER}[throughputs]\nsource = "uniform"\n[workload]\ntrace = "jobs.csv"\n{more}')

    return loaded


def test_an_app_whose_jobs_belong_to_several_tenants_is_refused_with_their_names(
    scenario: Callable[..., Scenario],
) -> None:
    jobs = "a,0,1,10,any,x,u\nb,0,1,10,any,x,v\nc,0,1,10,any,y,v\n"
    with pytest.raises(InvalidInput) as refusal:
        set_up(scenario(jobs))
    assert "jobs.csv:3: app is 'x': its jobs belong to several tenants (u, v)" in str(refusal.value)
    assert "'y'" not in str(refusal.value)


def test_jobs_that_name_no_tenant_or_no_app_split_no_app(scenario: Callable[..., Scenario]) -> None:
    jobs = "a,0,1,10,any,x,u\nb,0,1,10,any,x,\nc,0,1,10,any,,v\nd,0,1,10,any,,u\n"
    assert len(set_up(scenario(jobs)).jobs) == 4


def test_weights_of_tenants_beside_a_workload_without_any_are_reported_to_have_no_effect(
    scenario: Callable[..., Scenario],
) -> None:
    weights = 'tenant_weights = "philly"\n'
    (note,) = [one for one in set_up(scenario("a,0,1,10,any,,\n", weights)).notes if "weights" in one]
    assert note == "The workload names no tenants, so the weights of tenant_weights = 'philly' have no effect."
    named = set_up(scenario("a,0,1,10,any,,6214e9\n", weights)).notes
    assert not [one for one in named if "weights" in one]


def test_made_up_searches_beside_throughputs_without_their_models_are_answered_with_what_to_write(
    load: Callable[..., Scenario],
) -> None:
    work = '[workload]\ngenerator = "searches"\njobs = 20\n'
    with pytest.raises(InvalidInput, match=r'gnmt.*write \[throughputs\] source = "linear"'):
        set_up(load(CLUSTER + work))
    assert len(set_up(load(f'{CLUSTER}{work}[throughputs]\nsource = "linear"\n')).jobs) == 20
