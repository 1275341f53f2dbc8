"""The whole of Eunomia on a real Ray: `eunomia run`, and the service with its process killed at random."""

from __future__ import annotations

import signal
from importlib import import_module
from pathlib import Path

import pytest
from tests.engines.walk import check_scenario, service_after_kills
from tests.ray_cluster.loopback import RayCluster
from tests.service.bench import until

from eunomia.ray import gang

WORLD = """\
[world]
backend = "ray"
[world.ray]
address = "{address}"
poll_s = 0.3
"""

TRIAL = """\
import os
import ray
def trial(lr):
    ray.init(namespace=os.environ["EUNOMIA_RAY_NAMESPACE"], log_to_driver=False)
    group = ray.util.get_placement_group(os.environ["EUNOMIA_RAY_PLACEMENT_GROUP"])
    return {"lr": lr, "gpus": sum(bundle["GPU"] for bundle in group.bundle_specs)}
"""


def test_a_scenario_runs_on_ray_with_preemption_and_each_step_is_done_once(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    check_scenario(tmp_path, WORLD.format(address=ray_cluster.address))
    ray_cluster.repair()


def test_the_service_is_killed_at_random_and_then_runs_a_function_on_ray_and_loses_a_node(
    ray_cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_after_kills(tmp_path, WORLD.format(address=ray_cluster.address))
    (tmp_path / "trial_functions.py").write_text(TRIAL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EUNOMIA_TOKEN", service.operator.address.token)
    try:
        trial = import_module("trial_functions").trial
        held = gang(trial, accelerators=4, folder=tmp_path, url=service.operator.address.url, lr=0.1)
        assert held == {"lr": 0.1, "gpus": 4.0}
        nodes = service.operator.get("/v1/nodes")["nodes"]
        ray_cluster.remove("v100-0")
        until(lambda: "Ray lost it" in str(service.operator.get("/v1/nodes")["nodes"][0]["reason"]))
        assert len(nodes) == 3
    finally:
        service.kill(signal.SIGTERM)
        ray_cluster.repair()
