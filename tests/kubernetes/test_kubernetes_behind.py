"""Users go on with kubectl: their Jobs are placed, preempted, explained and taken over again, on a real API server."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
pytest.importorskip("uvicorn", reason="needs the extra service")
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Pod
from lightkube.types import CascadeType
from tests.engines.walk import SITE
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.loopback import LoopbackServer
from tests.kubernetes.transport import Suspending
from tests.service.bench import LiveService, until

from eunomia.backends.engines.engine import GangRequest, Mark
from eunomia.backends.kubernetes.behind import KubernetesBehind
from eunomia.backends.kubernetes.objects import PodSettings

WORLD = """\
[world]
backend = "kubernetes"
adopt_submissions = true
[world.kubernetes]
poll_s = 0.3
"""
ALL = 8  # accelerators of the node k80-0


class Users:
    """What users create, and what they and the service see of it."""

    def __init__(self, server: LoopbackServer, folder: Path) -> None:
        self.server, self.service = server, LiveService(folder)
        (folder / "site.toml").write_text((SITE + WORLD).replace('name = "las"\nquantum = 60', 'name = "srtf"'))
        self.service.start()

    def create(
        self, name: str, script: str, *, each: int = 1, pods: int = 1, kind: str = "k80", deadline_s: int = 600,
        retries: int = 6,
    ) -> str:  # fmt: skip
        """Create a Job; return its uid."""
        container = {"name": "main", "image": "none", "command": ["sh", "-c", script],
                     "resources": {"limits": {"nvidia.com/gpu": str(each)}}}  # fmt: skip
        pod = {"schedulerName": "eunomia", "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
               "nodeSelector": {"gpu-type": kind}, "containers": [container]}  # fmt: skip
        meta = {"name": name, "namespace": "default", "labels": {"eunomia.dev/queue": "vision"}}
        spec = {"parallelism": pods, "completions": pods, "activeDeadlineSeconds": deadline_s, "backoffLimit": retries,
                "template": {"spec": pod}}  # fmt: skip
        return str(self.server.admin.create(Job.from_dict({"metadata": meta, "spec": spec})).metadata.uid)

    def delete(self, name: str) -> None:
        self.server.admin.delete(Job, name, cascade=CascadeType.BACKGROUND)

    def job(self, uid: str) -> dict[str, Any]:
        """Return the service's job of a Job."""
        jobs = self.service.operator.get("/v1/jobs")["jobs"]
        return next((one for one in jobs if one["labels"].get("engine-submission") == uid), {"state": ""})

    def until(self, uid: str, *states: str) -> None:
        until(lambda: self.job(uid)["state"] in states, within_s=300)

    def nodes(self, name: str) -> list[str]:
        """Return the nodes that pods of a Job are bound to."""
        pods = self.server.admin.list(Pod, labels={"job-name": name})
        return sorted(pod.spec.nodeName for pod in pods if pod.spec.nodeName)

    def said(self, name: str, reason: str) -> str:
        """Return what Events of a Job say."""
        events = self.server.admin.list(Event, fields={"involvedObject.name": name})
        return "\n".join(str(one.message) for one in events if one.reason == reason)


@pytest.fixture
def users(server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Users]:
    monkeypatch.setenv("KUBECONFIG", str(server.folder / "kubeconfig"))
    with closing(Kubelet(server)):
        one = Users(server, tmp_path)
        yield one
        one.service.kill(signal.SIGTERM)
        server.clear()


def test_a_short_job_preempts_a_long_one_and_events_say_why_others_wait(users: Users) -> None:
    long = users.create("long", "sleep 6", each=ALL, deadline_s=3600)
    users.until(long, "running")
    assert users.job(long)["tenant"] == "vision" and users.job(long)["name"] == "long"
    assert users.nodes("long") == ["k80-0"]
    waits = users.create("waits", "sleep 0", each=ALL, deadline_s=7200)
    users.until(waits, "pending")
    until(lambda: "long" in users.said("waits", "Waiting") or "held by" in users.said("waits", "Waiting"))
    short = users.create("short", "sleep 1", each=4, deadline_s=60)
    users.until(short, "running", "succeeded")
    assert users.nodes("long") == [], "it has left before"
    assert "start 1 was called back" in users.said("long", "Stopped")
    for one in (short, long, waits):
        users.until(one, "succeeded")
    assert (users.job(long)["epoch"], users.job(short)["epoch"]) == (2, 1)
    assert "k80-0 × 1" in users.said("short", "Placed")


def test_a_gang_of_pods_is_bound_whole_and_a_job_that_is_deleted_is_cancelled(users: Users) -> None:
    wide = users.create("wide", "sleep 3", each=4, pods=2, kind="v100")
    users.until(wide, "running")
    until(lambda: users.nodes("wide") == ["v100-0", "v100-1"])
    gone = users.create("gone", "sleep 3", each=4, pods=2, kind="v100")
    users.until(gone, "pending")
    users.delete("gone")
    users.until(gone, "cancelled")
    again = users.create("gone", "sleep 0", each=1, kind="v100")
    assert again != gone
    users.until(wide, "succeeded")
    users.until(again, "succeeded")


def test_a_pod_that_fails_is_tried_again_by_its_own_job_on_the_same_seats(users: Users, tmp_path: Path) -> None:
    file = tmp_path / "tried"
    uid = users.create("retry", f"test -e {file} && exit 0; touch {file}; sleep 2; exit 3", each=2, retries=3)
    users.until(uid, "succeeded")
    assert users.job(uid)["epoch"] == 1
    failing = users.create("failing", "exit 3", retries=0)
    users.until(failing, "failed")


def test_jobs_are_taken_over_again_by_the_next_service(users: Users) -> None:
    runs = users.create("runs", "sleep 4", each=ALL)
    users.until(runs, "running")
    waits = users.create("next", "sleep 0", each=ALL, deadline_s=900)
    users.until(waits, "pending")
    users.service.kill(signal.SIGKILL)
    users.service.start()
    users.until(runs, "succeeded")
    users.until(waits, "succeeded")
    assert (users.job(runs)["epoch"], users.job(waits)["epoch"]) == (1, 1)
    assert len(users.service.operator.get("/v1/jobs")["jobs"]) == 2


def test_a_job_whose_pods_another_scheduler_places_is_left_alone_with_an_event_that_says_so(users: Users) -> None:
    spec = {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}  # fmt: skip
    meta = {"name": "theirs", "namespace": "default", "labels": {"eunomia.dev/queue": "vision"}}
    users.server.admin.create(Job.from_dict({"metadata": meta, "spec": {"template": {"spec": spec}}}))
    until(lambda: "schedulerName: eunomia" in users.said("theirs", "NotTakenOver"))
    assert not users.service.operator.get("/v1/jobs")["jobs"]


def test_where_the_server_can_suspend_a_job_is_started_and_stopped_by_that_alone(
    server: LoopbackServer, tmp_path: Path
) -> None:
    """The server of the tests cannot: what stands before it keeps `suspend` as servers since 1.21 do."""
    between = Suspending()
    with closing(Kubelet(server)), closing(server.client(transport=between)) as client:
        engine = KubernetesBehind(client, PodSettings(image="none"))
        engine.cluster = "ab12"
        container = {"name": "main", "image": "none", "command": ["sleep", "600"],
                     "resources": {"limits": {"nvidia.com/gpu": "2"}}}  # fmt: skip
        pod = {"schedulerName": "eunomia", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
               "containers": [container]}  # fmt: skip
        meta = {"name": "held", "namespace": "default", "labels": {"eunomia.dev/queue": "vision"}}
        made = client.create(Job.from_dict({"metadata": meta, "spec": {"suspend": True, "template": {"spec": pod}}}))
        try:
            [listed] = engine.gangs()
            assert (listed.phase, listed.is_held) == ("queued", True)
            [held] = engine.submissions("ab12", lambda: "key")
            assert (held.number, held.document["accelerators"]) == (made.metadata.uid, 2)
            request = GangRequest(
                mark=Mark("ab12", "1-x", 1), name="eu-1", parts=(("v100-0", "v100", 2),), argv=(), stdin=tmp_path,
                log=tmp_path, grace_s=1.0, submission=held.number,
            )  # fmt: skip
            engine.submit(request)
            until(lambda: [one.phase for one in engine.gangs()] == ["runs"])
            engine.call_back(request, held.number)
            until(lambda: [(one.phase, one.is_held) for one in engine.gangs()] == [("queued", True)])
            assert between.suspended == [True, False, True]
        finally:
            engine.release()
            server.clear()
