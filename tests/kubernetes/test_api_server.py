"""What a world on Kubernetes relies on, of the real API server and its controller of Jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("lightkube")
import msgspec
from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Node, Pod, PodStatus
from lightkube.types import CascadeType, PatchType
from tests.engines.loopback import NODES, until


def job(name: str, **more: Any) -> Job:
    pod = {
        "schedulerName": "eunomia", "restartPolicy": "Never", "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "main", "image": "none", "command": ["true"],
                        "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
    }  # fmt: skip
    labels = {"eunomia.dev/cluster": "ab12"}
    return Job.from_dict({
        "metadata": {"name": name, "labels": labels, "annotations": {"eunomia.dev/mark": f"ab12:{name}:1"}},
        "spec": {"backoffLimit": 0, "parallelism": 1, "completions": 1, **more,
                 "template": {"metadata": {"labels": labels}, "spec": pod}},
    })  # fmt: skip


def pods(client: Client, name: str) -> list[Pod]:
    return list(client.list(Pod, labels={"job-name": name}))


def bind(client: Client, pod: Pod, node: str) -> None:
    body = {"metadata": {"name": pod.metadata.name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    with suppress(msgspec.ValidationError):  # the server answers with a Status, where the client expects the binding
        client.create(Pod.Binding.from_dict(body), pod.metadata.name)


def test_nodes_say_their_type_and_accelerators(client: Client) -> None:
    found = {
        node.metadata.name: (node.metadata.labels["gpu-type"], int(node.status.allocatable["nvidia.com/gpu"]))
        for node in client.list(Node)
    }
    assert found == NODES


def test_a_job_has_its_pod_made_and_a_pod_is_bound_once(client: Client) -> None:
    client.create(job("once"))
    until(lambda: len(pods(client, "once")) == 1, "the controller made the pod")
    bind(client, pods(client, "once")[0], "v100-0")
    with pytest.raises(ApiError) as caught:
        bind(client, pods(client, "once")[0], "k80-0")
    assert caught.value.status.code == 409
    pod = pods(client, "once")[0]
    assert pod.spec.nodeName == "v100-0"
    done = {"status": {"phase": "Succeeded"}}
    client.patch(PodStatus, pod.metadata.name, done, patch_type=PatchType.MERGE)
    until(lambda: client.get(Job, "once").status.succeeded == 1, "the controller counted the success")


def test_a_name_that_exists_is_not_made_again(client: Client) -> None:
    client.create(job("named"))
    with pytest.raises(ApiError) as caught:
        client.create(job("named"))
    assert caught.value.status.code == 409


def test_a_server_that_does_not_know_suspend_drops_it(client: Client) -> None:
    made = client.create(job("held", suspend=True))
    assert made.spec.suspend is None, "so a dry run of a creation tells whether a server can suspend"


def test_a_bound_pod_that_is_deleted_stays_until_the_kubelet_lets_it_go(client: Client) -> None:
    client.create(job("gone"))
    until(lambda: len(pods(client, "gone")) == 1, "the controller made the pod")
    bind(client, pods(client, "gone")[0], "v100-1")
    client.delete(Job, "gone", cascade=CascadeType.BACKGROUND)
    until(lambda: pods(client, "gone")[0].metadata.deletionTimestamp is not None, "the collector deleted the pod")
    client.delete(Pod, pods(client, "gone")[0].metadata.name, grace_period=0)
    assert not pods(client, "gone")
