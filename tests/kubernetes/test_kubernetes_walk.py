"""The whole of Eunomia on a real API server: `eunomia run`, and the service with its process killed at random."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from lightkube.resources.batch_v1 import Job
from lightkube.types import CascadeType
from tests.engines.walk import check_scenario, service_after_kills
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.loopback import LoopbackServer
from tests.service.bench import until

WORLD = """\
[world]
backend = "kubernetes"
[world.kubernetes]
image = "none"
poll_s = 0.3
"""


@pytest.fixture
def kubelet(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubelet]:
    monkeypatch.setenv("KUBECONFIG", str(server.folder / "kubeconfig"))
    one = Kubelet(server)
    yield one
    for job in server.admin.list(Job):
        server.admin.delete(Job, job.metadata.name, cascade=CascadeType.BACKGROUND)
    one.close()


def test_a_scenario_runs_on_kubernetes_with_preemption_and_each_step_is_done_once(
    kubelet: Kubelet, tmp_path: Path
) -> None:
    check_scenario(tmp_path, WORLD)


def test_the_service_is_killed_at_random_and_its_pods_are_adopted(
    server: LoopbackServer, kubelet: Kubelet, tmp_path: Path
) -> None:
    service = service_after_kills(tmp_path, WORLD)
    try:
        node = service.operator.get("/v1/nodes")["nodes"][0]["name"]
        service.operator.send("PUT", f"/v1/nodes/{node}", {"action": "drain", "reason": "fans"})
        until(lambda: _is_cordoned(server))
        service.operator.send("PUT", f"/v1/nodes/{node}", {"action": "resume"})
        until(lambda: not _is_cordoned(server))
    finally:
        service.kill(signal.SIGTERM)


def _is_cordoned(server: LoopbackServer) -> bool:
    from lightkube.resources.core_v1 import Node

    return any(node.spec.unschedulable for node in server.admin.list(Node) if node.spec is not None)
