"""The whole of Eunomia on a real Ray: `eunomia run`, and the service with its process killed at random."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.engines.walk import check_scenario, service_after_kills
from tests.ray_cluster.loopback import RayCluster
from tests.service.bench import until

WORLD = """\
[world]
backend = "ray"
[world.ray]
address = "{address}"
poll_s = 0.3
"""


def test_a_scenario_runs_on_ray_with_preemption_and_each_step_is_done_once(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    check_scenario(tmp_path, WORLD.format(address=ray_cluster.address))
    ray_cluster.repair()


def test_the_service_is_killed_at_random_and_ray_s_actors_are_adopted(ray_cluster: RayCluster, tmp_path: Path) -> None:
    service = service_after_kills(tmp_path, WORLD.format(address=ray_cluster.address))
    try:
        nodes = service.operator.get("/v1/nodes")["nodes"]
        ray_cluster.remove("v100-0")
        until(lambda: "Ray lost it" in str(service.operator.get("/v1/nodes")["nodes"][0]["reason"]))
        assert len(nodes) == 3
    finally:
        service.kill(signal.SIGTERM)
        ray_cluster.repair()
