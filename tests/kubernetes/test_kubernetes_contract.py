"""A real API server of Kubernetes keeps the contract of worlds, with a kubelet of the tests that runs processes."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
import httpx2
from lightkube.core.exceptions import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Node, NodeStatus, Pod
from lightkube.types import CascadeType, PatchType
from tests.engines.driver import ORDER, EngineDriver
from tests.engines.loopback import NODES, until
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.loopback import LoopbackServer

from eunomia.backends.engines.engine import EngineAway, EngineEnd, EngineGang, GangRequest, Mark
from eunomia.backends.kubernetes.engine import Kubernetes
from eunomia.backends.kubernetes.objects import PodSettings, gang_name
from eunomia.testing import Work, WorldContract, WorldDriver
from eunomia.testing.world_contract import seats_on


class FaultyKubernetes(Kubernetes):
    """The engine, or what it answers during a fault."""

    fault = ""

    def close(self) -> None:
        """Keep the client, which the world has after a restart too."""

    def gangs(self) -> list[EngineGang]:
        if self.fault == "error":
            raise EngineAway("Kubernetes: 503")
        return [] if self.fault == "empty" else super().gangs()

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        return None if self.fault == "empty" else super().ended(request, number)

    def submit(self, request: GangRequest) -> str:
        if self.fault == "error":
            raise EngineAway("Kubernetes: 503")
        number = super().submit(request)
        if self.fault == "lost":
            raise EngineAway("Kubernetes did not answer in time")
        return number


class KubernetesDriver(EngineDriver):
    """Drives the world of a service whose engine is the API server of the tests."""

    def __init__(
        self, server: LoopbackServer, folder: Path, works: Mapping[str, Work], *, context: str = "loop", **options: Any
    ) -> None:
        self.server, self._kubelet = server, Kubelet(server)
        self._client = server.client(context, timeout=httpx2.Timeout(1.0), **options)
        self._namespace = self._client.namespace
        self.engine = FaultyKubernetes(self._client, PodSettings(image="none"))
        super().__init__(self.engine, folder, works)

    def close(self) -> None:
        super().close()
        self.engine.release()
        self._kubelet.close()
        self._client.close()
        self.server.clear(self._namespace)
        for name in ORDER:
            with suppress(ApiError):
                self.server.admin.delete(Node, name)
            self.server.add_node(name, *NODES[name])

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        """Return what the pods of the gang have."""
        found: Counter[int] = Counter()
        for pod in self.server.admin.list(Pod, namespace=self._namespace):
            if (pod.metadata.annotations or {}).get("eunomia.dev/mark", "").endswith(f":{job_id}:{epoch}"):
                found[ORDER.index(pod.spec.nodeName)] += int(pod.spec.containers[0].resources.limits["nvidia.com/gpu"])
        return dict(found)

    @contextmanager
    def away(self, how: str) -> Iterator[None]:
        self.engine.fault = how
        if how == "timeout":
            self.server.signal_server(signal.SIGSTOP)
        yield
        if how == "timeout":
            self.server.signal_server(signal.SIGCONT)
        self.engine.fault = ""

    @contextmanager
    def lost_answers(self) -> Iterator[None]:
        self.engine.fault = "lost"
        yield
        self.engine.fault = ""

    def remove(self, job_id: str, epoch: int) -> None:
        name = f"{gang_name(Mark(self.world.cluster, job_id, epoch))}-0"
        self.server.admin.delete(Job, name, namespace=self._namespace, cascade=CascadeType.BACKGROUND)

    @contextmanager
    def reused(self, job_id: str, epoch: int) -> Iterator[Callable[[], bool]]:
        name = f"{gang_name(Mark(self.world.cluster, job_id, epoch))}-0"
        self.remove(job_id, epoch)
        until(lambda: not any(job.metadata.name == name for job in self.server.admin.list(Job)), f"{name} is gone")
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        held = {"name": "main", "image": "none", "command": ["sleep", "600"], "resources": limits}
        pod = {"nodeName": ORDER[2], "restartPolicy": "Never", "automountServiceAccountToken": False,
               "containers": [held]}  # fmt: skip
        theirs = {"metadata": {"name": name, "namespace": self._namespace}, "spec": {"template": {"spec": pod}}}
        self.server.admin.create(Job.from_dict(theirs))

        def pods() -> list[Any]:
            return list(self.server.admin.list(Pod, namespace=self._namespace, labels={"job-name": name}))

        until(lambda: any(pod.status.phase == "Running" for pod in pods()), f"the other {name} runs")
        yield lambda: [pod.status.phase for pod in pods()] == ["Running"]
        self.server.admin.delete(Job, name, namespace=self._namespace, cascade=CascadeType.BACKGROUND)

    def drain(self, node: int) -> None:
        self._change(node, {"spec": {"unschedulable": True}})

    def resume(self, node: int) -> None:
        self._change(node, {"spec": {"unschedulable": None}})

    def lose(self, node: int) -> None:
        self._kubelet.lose(ORDER[node])
        self.server.admin.delete(Node, ORDER[node])
        for pod in self.server.admin.list(Pod):  # what the collector of pods does after a while
            if pod.spec.nodeName == ORDER[node]:
                self.server.admin.delete(Pod, pod.metadata.name, grace_period=0)

    @contextmanager
    def shrunk(self, node: int) -> Iterator[None]:
        self._room(node, 3)
        yield
        self._room(node, 4)

    def _room(self, node: int, count: int) -> None:
        room = {"status": {"allocatable": {"nvidia.com/gpu": str(count)}}}
        self.server.admin.patch(NodeStatus, ORDER[node], room, patch_type=PatchType.MERGE)

    def _change(self, node: int, change: dict[str, Any]) -> None:
        self.server.admin.patch(Node, ORDER[node], change, patch_type=PatchType.MERGE)

    @contextmanager
    def stranger(self, node: int) -> Iterator[Callable[[], bool]]:
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        held = {"name": "main", "image": "none", "command": ["sleep", "600"], "resources": limits}
        spec = {"nodeName": ORDER[node], "restartPolicy": "Never", "automountServiceAccountToken": False,
                "containers": [held]}  # fmt: skip
        admin = self.server.admin
        admin.create(Pod.from_dict({"metadata": {"name": "stranger", "namespace": "default"}, "spec": spec}))
        yield lambda: admin.get(Pod, "stranger").status.phase == "Running"
        admin.delete(Pod, "stranger", grace_period=1)


class TestKubernetesWorld(WorldContract):
    @pytest.fixture(autouse=True)
    def _with_server(self, server: LoopbackServer) -> None:
        self.server = server

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        return KubernetesDriver(self.server, folder, works)

    @pytest.mark.parametrize("notes", [{}, {"eunomia.dev/part": "first"}, {"eunomia.dev/part": "0"}])
    def test_a_job_that_only_looks_like_ours_is_left_alone(self, tmp_path: Path, notes: dict[str, str]) -> None:
        mark = {"eunomia.dev/mark": "ab12:theirs:1", "eunomia.dev/node": ORDER[1]}
        pod = {"restartPolicy": "Never", "schedulerName": "eunomia", "containers": [{"name": "main", "image": "none"}]}
        meta = {"labels": {"eunomia.dev/cluster": "ab12"}, "annotations": mark | notes}
        theirs = {"metadata": {"name": "theirs", "namespace": "default", **meta},
                  "spec": {"template": {"metadata": meta, "spec": pod}}}  # fmt: skip
        with self.world(tmp_path, a=Work(steps=3, step_s=0.2)) as world:
            self.server.admin.create(Job.from_dict(theirs))
            world.launch("a", 1, seats_on(world, node=1, count=2))
            assert self.until_over(world, "a") == "finished"
            (left,) = self.server.admin.list(Pod, labels={"job-name": "theirs"})
            assert left.spec.nodeName is None
            assert world.orphans() == []

    def test_a_job_of_others_that_has_the_name_already_is_not_taken_for_the_gang(self, tmp_path: Path) -> None:
        pod = {"restartPolicy": "Never", "schedulerName": "theirs", "containers": [{"name": "main", "image": "none"}]}
        with self.world(tmp_path, a=Work(steps=3, step_s=0.2)) as world:
            assert isinstance(world, KubernetesDriver)
            name = f"{gang_name(Mark(world.world.cluster, 'a', 1))}-0"
            theirs = {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": {"spec": pod}}}
            made = self.server.admin.create(Job.from_dict(theirs))
            world.launch("a", 1, seats_on(world, node=1, count=2))
            assert self.until_over(world, "a") == "failed"
            assert "another Job has the name" in world.reason("a", 1)
            assert self.server.admin.get(Job, name).metadata.uid == made.metadata.uid
