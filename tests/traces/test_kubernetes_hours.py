"""Accelerator-hours of Kubernetes: what pods hold by all their containers, under any name, and until when."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import kubernetes
from eunomia.traces.import_findings import History
from eunomia.traces.machine_lists import kubernetes_nodes

Write = Callable[..., Path]
Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def at(hour: float) -> str:
    return f"2024-05-01T{int(hour):02d}:{int(60 * hour) % 60:02d}:00Z"


def container(name: str = GPU, number: object = 1, **more: object) -> Json:
    return {"resources": {"limits": {name: number}}, **more}


def pod(name: str, *containers: Json, init: tuple[Json, ...] = (), end: float | None = 9, **status: Any) -> Json:
    """Return a pod that ran from 8 o'clock on."""
    ended = {"terminated": {"finishedAt": at(end)}} if end else {"running": {"startedAt": at(8)}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "uid": name, "creationTimestamp": at(7)},
        "spec": {"nodeName": "n1", "containers": list(containers), "initContainers": list(init)},
        "status": {"phase": "Succeeded" if end else "Running", "startTime": at(8),
                   "containerStatuses": [{"state": ended}], **status},
    }  # fmt: skip


def history(written: Write, *items: Json, **options: Any) -> History:
    return kubernetes.read_history([written(raw=json.dumps(list(items)).encode())], **options)


def finding(found: History, words: str) -> tuple[str, int, str]:
    return next((one.kind, one.count, one.example) for one in found.findings if words in one.what)


def hours(found: History) -> float:
    assert found.hours is not None
    return found.hours.total


SIDECAR = container(number=1, restartPolicy="Always")


@pytest.mark.parametrize(
    ("containers", "init", "held"),
    [
        ((container(), container()), (container(number=4), container(number=2)), 4),
        ((container(number=2),), (SIDECAR,), 3),
        ((container(),), (SIDECAR, container(number=3)), 4),
        ((container(),), (container(number=3), SIDECAR), 3),  # the sidecar starts after the init container
        ((container(),), (SIDECAR, SIDECAR, container(number=1)), 3),
        ((container(GPU, 1), container("nvidia.com/mig-1g.5gb", 2)), (container(number=2),), 4),  # each name apart
        ((container(number="1k"),), (), 1000),
    ],
)
def test_a_pod_holds_its_containers_beside_its_sidecars_or_an_init_container_beside_those_before_it(
    written: Write, containers: tuple[Json, ...], init: tuple[Json, ...], held: int
) -> None:
    found = history(written, pod("p", *containers, init=init))
    assert found.trace.scale_factor.tolist() == [held]
    assert hours(found) == pytest.approx(held)


OTHERS = [
    pod("plain", container()),
    pod("tpu", container("google.com/tpu", 4)),
    pod("gaudi", container("habana.ai/gaudi", "8")),
    pod("net", container(), container("rdma/hca", 1)),
    pod("cpu", {"resources": {"limits": {"cpu": "4", "kubernetes.io/batteries": 3}}}),
]


def test_resources_that_are_not_read_are_named_with_their_counts(written: Write) -> None:
    found = history(written, *OTHERS)
    assert found.trace.job_id == ("a/plain", "a/net")
    assert finding(found, "ask for google.com/tpu, 4 in all") == ("left out", 1, "a/tpu")
    assert finding(found, "ask for habana.ai/gaudi, 8 in all") == ("left out", 1, "a/gaudi")
    assert finding(found, "ask for rdma/hca beside accelerators") == ("assumed", 1, "a/net")
    assert finding(found, "no accelerator") == ("left out", 1, "a/cpu")


def test_an_option_reads_further_resources_under_the_type_of_their_maker(written: Write) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
        "status": {"capacity": {GPU: "2", "google.com/tpu": "4"}},
    }
    found = history(written, *OTHERS, node, resources=("google.com/tpu",))
    assert found.trace.job_id == ("a/plain", "a/tpu", "a/net")
    assert found.ran_on == ("Tesla-T4", "tpu", "Tesla-T4")
    path = written(raw=json.dumps([node]).encode())
    assert [one.accelerators for one in kubernetes_nodes.read_named([path])] == [2]
    assert [one.accelerators for one in kubernetes_nodes.read_named([path], resources=("google.com/tpu",))] == [4, 2]


def test_a_resource_that_nothing_has_is_refused_with_the_nearest(written: Write) -> None:
    with pytest.raises(InvalidInput, match=r"google\.com/tpu") as error:
        history(written, *OTHERS, resources=("google.com/tpus",))
    assert error.value.problems[0].column == "--resource"


def test_devices_by_resource_claims_are_named(written: Write) -> None:
    claims = pod("dra", {"name": "c"})
    claims["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    found = history(written, pod("plain", container()), claims)
    assert finding(found, "resource claims") == ("left out", 1, "a/dra")


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({"containerStatuses": [{"state": {"terminated": {"finishedAt": None}}}]}, None),
        ({"containerStatuses": [{"state": {"terminated": {"finishedAt": "1970-01-01T00:00:00Z"}}}]}, None),
        ({"containerStatuses": []}, None),
        ({"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(8.5)}]}, None),
        ({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at(8)}]}, None),
        ({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at(10)}]}, 10),
        ({"conditions": [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at(9.5)}]}, 9.5),
        ({"initContainerStatuses": [{"state": {"terminated": {"finishedAt": at(8.25)}}}]}, 8.25),
    ],
)
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_never_counts_until_it_was_listed(
    written: Write, status: Json, end: float | None, phase: str
) -> None:
    undated = pod("p", container(number=8)) | {
        "status": {"phase": phase, "startTime": at(8), "containerStatuses": [], **status}
    }
    late = pod("late", container(), end=20)
    found = history(written, undated, late)
    if end is None:
        assert found.trace.job_id == ("a/late",)
        assert finding(found, "nothing says when") == ("left out", 1, "a/p")
        assert hours(found) == pytest.approx(12)
    else:
        assert hours(found) == pytest.approx(12 + 8 * (end - 8))


def test_the_end_of_its_job_counts_for_a_pod_that_has_none(written: Write) -> None:
    owned = pod("p", container(number=8), containerStatuses=[])
    owned["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]
    job = {"kind": "Job", "metadata": {"name": "j", "namespace": "a", "creationTimestamp": at(7)}}
    job |= {"spec": {}, "status": {"completionTime": at(11)}}
    found = history(written, owned, job, pod("late", container(), end=20))
    assert finding(found, "only the end of their Job") == ("assumed", 1, "a/p")
    assert hours(found) == pytest.approx(12 + 24)


def test_of_two_lists_the_later_state_of_an_object_counts_in_either_order_of_files(tmp_path: Path) -> None:
    lists = {
        "jan": [pod("p", container(number=2), end=None), pod("gone", container(number=4), end=None)],
        "feb": [pod("p", container(number=2), end=11), pod("late", container(), end=20)],
    }
    lists["jan"].append(pod("other", container(), end=10))  # jan was listed at 10 o'clock
    for name, items in lists.items():
        (tmp_path / name).write_text(json.dumps(items))
    for names in (("jan", "feb"), ("feb", "jan")):
        found = kubernetes.read_history([tmp_path / name for name in names])
        lasted = dict(zip(found.trace.job_id, (found.trace.duration_s / 3600).tolist(), strict=True))
        assert lasted == {"a/p": 3, "a/gone": 2, "a/other": 2, "a/late": 12}


def test_widths_that_change_keep_the_sums_and_each_type_is_a_job_of_its_own(written: Write) -> None:
    nodes = [
        {"kind": "Node", "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": kind}}}
        for name, kind in (("n1", "Tesla-T4"), ("n2", "NVIDIA-H100-80GB-HBM3"))
    ]
    pods = [pod("w0", container(number=8), end=18), pod("w1", container(number=8), end=9)]
    for one, node in zip(pods, ("n1", "n2"), strict=True):
        one["metadata"]["labels"] = {"volcano.sh/job-name": "gang"}
        one["spec"]["nodeName"] = node
    found = history(written, *pods, *nodes)
    assert found.trace.job_id == ("a/gang", "a/gang@h100")
    assert (found.trace.scale_factor.tolist(), found.trace.duration_s.tolist()) == ([8, 8], [36_000, 3600])
    assert found.hours is not None
    assert found.hours.by_type() == pytest.approx({"Tesla-T4": 80, "NVIDIA-H100-80GB-HBM3": 8})
    assert finding(found, "several accelerator types") == ("assumed", 1, "a/w0")
    pods[1]["spec"]["nodeName"] = "n1"
    found = history(written, *pods, *nodes)
    assert (found.trace.scale_factor.tolist(), found.trace.duration_s.tolist()) == ([16], [5.5 * 3600])


def test_slices_are_types_and_machines_of_their_own(written: Write) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
    node = {"kind": "Node", "metadata": {"name": "n1", "labels": labels},
            "status": {"capacity": {GPU: "6", "nvidia.com/mig-1g.5gb": "14"}}}  # fmt: skip
    found = history(written, node, pod("p", container("nvidia.com/mig-1g.5gb", 1)), pod("q", container()))
    assert found.ran_on == ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB")
    assert finding(found, "slices") == ("assumed", 1, "a/p")
    nodes = kubernetes_nodes.read_named([written(raw=json.dumps([node]).encode())])
    assert {one.type: one.accelerators for one in nodes} == {
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb": 14,
        "NVIDIA-A100-SXM4-40GB": 6,
    }


def test_whole_devices_of_a_node_that_cuts_them_are_slices(written: Write) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
    node = {"kind": "Node", "metadata": {"name": "n1", "labels": labels}}
    assert finding(history(written, node, pod("p", container())), "slices")[:2] == ("assumed", 1)
