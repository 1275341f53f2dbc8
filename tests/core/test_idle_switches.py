"""What is asked for and finds nothing to act on is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.runs.simulation import simulate
from eunomia.scenario import scenario_from_dict

TREE = {"lab": {"quota": 4.0}, "lab/vision": {"quota": 2.0}}


def output(policy: str = "fifo", **more: Any) -> str:
    """Return the notes on a run of four jobs."""
    said = {
        "cluster": {"nodes": [{"type": "gpu", "count": 1, "accelerators": 4}]},
        "workload": {"generator": "philly-like", "jobs": 4},
        "throughputs": {"source": "uniform"},
        "policy": {"name": policy},
    }
    return " ".join(simulate(scenario_from_dict(said | more, Path())).notes)


def test_a_search_without_apps_is_reported() -> None:
    assert 'apps.tuner = "halving" changes nothing: no job' in output(apps={"tuner": "halving"})
    assert "changes nothing" not in output(apps={"tuner": "off"})


@pytest.mark.parametrize("policy", ["quotas", "kueue_fair_share", "philly"])
def test_quotas_below_others_are_reported_where_only_the_top_counts(policy: str) -> None:
    assert f"{policy} looks at quotas of tenants at the top only; not at that of lab/vision" in output(
        policy, tenants=TREE
    )
    assert "at the top only" not in output(policy, tenants={"lab": {"quota": 4.0}})
