"""Jobs and Pods of Kubernetes, jobs and placement groups of Ray: what becomes of them, and what is said of the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import kubernetes, ray, read
from eunomia.traces.gang_runs import busy_s, most_at_once
from eunomia.traces.import_findings import History
from eunomia.traces.machine_lists import kubernetes_nodes, slurm_nodes

Write = Callable[..., Path]
Json = dict[str, Any]


def at(minute: int) -> str:
    return f"2024-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z"


def pod(name: str, start: int | None, end: int | None, gpus: int = 4, *, owner: str = "", **more: Any) -> Json:
    """Return a pod that was created at minute 0, and ran from one minute to another."""
    phase = "Pending" if start is None else "Running" if end is None else more.pop("phase", "Succeeded")
    status: Json = {"phase": phase}
    if start is not None:
        status["startTime"] = at(start)
    if end is not None:
        status["containerStatuses"] = [{"state": {"terminated": {"startedAt": at(start or 0), "finishedAt": at(end)}}}]
    meta: Json = {
        "name": name,
        "namespace": "lab",
        "uid": name,
        "creationTimestamp": at(0),
        "labels": more.pop("labels", {}),
    }
    if owner:
        meta["ownerReferences"] = [{"kind": "Job", "name": owner}]
    spec: Json = (
        {"containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]} if gpus else {"containers": [{}]}
    )
    return {"kind": "Pod", "metadata": meta, "spec": spec | {"nodeName": f"n-{name}"} | more, "status": status}


def job(name: str, **status: Any) -> Json:
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]}}
    meta = {
        "name": name,
        "namespace": "lab",
        "uid": f"job-{name}",
        "creationTimestamp": at(0),
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
    }
    return {"kind": "Job", "metadata": meta, "spec": {"parallelism": 3, "template": template}, "status": status}


def of_kubernetes(written: Write, *items: Json, **options: str) -> History:
    return kubernetes.read_history([written(raw=json.dumps({"kind": "List", "items": items}).encode())], **options)


def finding(found: History, words: str) -> tuple[str, int, str]:
    return next((one.kind, one.count, one.example) for one in found.findings if words in one.what)


def test_the_pods_of_a_job_are_one_gang_as_wide_as_they_ran_together(written: Write) -> None:
    pods = [pod("a-0", 10, 70, owner="a"), pod("a-1", 12, 72, owner="a")]
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": at(73)}
    found = of_kubernetes(written, job("a", startTime=at(9), conditions=[complete]), *pods)
    assert found.trace.job_id == ("lab/a",)
    assert found.trace.scale_factor.tolist() == [8]
    assert found.trace.duration_s.tolist() == [60 * 60]  # each pod held its 4 for an hour
    assert found.started_s.tolist() == [600]
    assert found.ended_s.tolist() == [70 * 60]
    assert finding(found, "did not start and end together") == ("assumed", 1, "lab/a-0")
    assert found.trace.tenant == ("lab",)
    assert found.trace.status == ("finished",)
    assert found.machines == (("n-a-0", "n-a-1"),)


def test_a_pod_that_failed_and_was_replaced_is_a_retry(written: Write) -> None:
    pods = [pod("a-0", 10, 20, owner="a", phase="Failed"), pod("a-1", 40, 50, owner="a")]
    found = of_kubernetes(written, *pods)
    assert found.trace.scale_factor.tolist() == [4]
    assert found.trace.duration_s.tolist() == [1200]
    assert (found.trace.ended_s.tolist(), found.trace.pauses) == ([3000], (((600, 1800),),))
    assert found.trace.retries.tolist() == [0]
    assert found.trace.status == ("failed",)  # no Job says that it completed
    done = {"type": "Complete", "status": "True"}
    assert of_kubernetes(written, job("a", conditions=[done]), *pods).trace.retries.tolist() == [1]


def test_gangs_of_other_operators_are_found_by_their_label(written: Write) -> None:
    labels = {"training.kubeflow.org/job-name": "bert"}
    found = of_kubernetes(written, pod("m", 1, 9, labels=labels), pod("w", 1, 9, labels=labels), pod("alone", 1, 9))
    assert dict(zip(found.trace.job_id, found.trace.scale_factor.tolist(), strict=True)) == {
        "lab/bert": 8,
        "lab/alone": 4,
    }


def test_a_job_whose_pods_are_gone_counts_by_its_template(written: Write) -> None:
    found = of_kubernetes(written, job("a", startTime=at(5), completionTime=at(65)))
    assert found.trace.scale_factor.tolist() == [6]
    assert found.trace.duration_s.tolist() == [3600]
    assert finding(found, "no pod any more") == ("assumed", 1, "lab/a")


def test_what_never_ran_or_needs_no_accelerator_is_left_out(written: Write) -> None:
    found = of_kubernetes(written, pod("a", 1, 9), pod("b", None, None), pod("c", 1, 9, 0), job("d", conditions=[]))
    assert found.trace.job_id == ("lab/a",)
    assert finding(found, "never ran")[:2] == ("left out", 2)
    assert finding(found, "no accelerator")[1] == 1


def test_a_running_pod_is_cut_off_at_the_latest_time_in_the_list(written: Write) -> None:
    found = of_kubernetes(written, pod("a", 10, None), pod("b", 1, 40))
    assert found.trace.duration_s.tolist() == [1800, 39 * 60]
    assert np.isnan(found.ended_s).tolist() == [True, False]
    assert finding(found, "still ran")[1] == 1


def test_the_tenant_may_be_the_queue_and_types_come_from_nodes_and_selectors(written: Write) -> None:
    node = {"kind": "Node", "metadata": {"name": "n-a", "labels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}}}
    asks = pod("a", 1, 9, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, owner="j")
    found = of_kubernetes(written, node, job("j"), asks, tenant="queue")
    assert found.trace.tenant == ("q",)
    assert found.ran_on == ("Tesla-V100-SXM2-16GB",)
    assert found.asked_for == ("NVIDIA-H100-80GB-HBM3",)


def test_a_type_may_be_required_by_affinity(written: Write) -> None:
    need = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [need]}}
    assert of_kubernetes(written, pod("a", 1, 9, affinity={"nodeAffinity": required})).asked_for == ("Tesla-T4",)


def test_init_containers_slices_services_and_repeated_objects(written: Write) -> None:
    first = pod("a", 1, 9, initContainers=[{"resources": {"limits": {"nvidia.com/gpu": 8}}}] * 2)
    sliced = pod("b", 1, 9, 0)
    sliced["spec"]["containers"] = [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}]
    served = pod("c", 1, 9)
    served["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web"}]
    found = of_kubernetes(written, first, sliced, served, served)
    assert found.trace.scale_factor.tolist() == [8, 1, 4]
    assert finding(found, "slices of accelerators")[1] == 1
    assert finding(found, "services")[1] == 1
    assert finding(found, "listed twice")[:2] == ("repaired", 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("{", "not JSON"),
        ("[]", "the list is empty"),
        ("[1]", "list of objects"),
        ('{"items": []}', "empty"),
        ('[{"kind": "Secret"}]', "there is no Job and no Pod here, but Secret"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps([pod("a", None, None)]), "ran on an accelerator"),
    ],
)
def test_other_files_are_refused_with_the_command(written: Write, text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(written(raw=text.encode()), "kubernetes")
    assert says in str(error.value)
    assert "kubectl get" in str(error.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kind",
                        "metadata",
                        "spec",
                        "status",
                        "labels",
                        "name",
                        "containers",
                        "resources",
                        "limits",
                        "nvidia.com/gpu",
                        "conditions",
                        "startTime",
                        "placement_group_id",
                        "bundles",
                        "unit_resources",
                        "job_id",
                        "stats",
                        "GPU",
                        "type",
                        "ownerReferences",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=30,
    )
)
def test_json_of_any_shape_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, inner: object) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(
        json.dumps(
            [
                {"kind": "Pod", "metadata": inner, "spec": inner, "status": inner},
                {"kind": "Job", "spec": inner},
                {"kind": "Node", "status": inner},
                {"placement_group_id": "p", "bundles": [inner], "stats": inner},
                {"job_id": "j", "start_time": inner, "metadata": inner},
            ]
        )
    )
    for reader in (kubernetes.read, ray.read, kubernetes_nodes.read):
        try:
            reader(path)
        except InvalidInput:
            continue


def of_ray(written: Write, *items: Json, **options: str) -> History:
    return ray.read_history([written(raw=json.dumps(items).encode())], **options)


DRIVER = {
    "job_id": "01",
    "submission_id": "raysubmit_1",
    "status": "SUCCEEDED",
    "start_time": 1704067200000,
    "end_time": 1704070800000,
    "metadata": {"user": "ann"},
}


def group(name: str = "pg", creator: str = "01", gpus: float = 2.0, state: str = "REMOVED") -> Json:
    bundle = {"unit_resources": {"GPU": gpus, "CPU": 4, "accelerator_type:V100": 0.001}, "node_id": "n1"}
    stats = {"creation_request_received_ns": "1704067260000000000", "end_to_end_creation_latency_us": "120000000"}
    return {
        "placement_group_id": name,
        "creator_job_id": creator,
        "state": state,
        "bundles": [bundle] * 2,
        "stats": stats,
    }


def test_a_placement_group_is_a_gang_that_lasts_until_its_job_ends(written: Write) -> None:
    found = of_ray(written, DRIVER, group())
    assert found.trace.job_id == ("pg",)
    assert found.trace.scale_factor.tolist() == [4]
    assert str(found.trace.began) == "2024-01-01 00:01:00"
    assert found.started_s.tolist() == [120]
    assert found.trace.duration_s.tolist() == [3600 - 180]
    assert found.trace.tenant == ("ann",)
    assert found.trace.status == ("finished",)
    assert found.asked_for == ("V100",)
    assert finding(found, "until their job ended")[:2] == ("assumed", 1)


def test_a_job_that_reserves_accelerators_for_its_entry_point_is_a_job(written: Write) -> None:
    found = of_ray(written, DRIVER | {"entrypoint_num_gpus": 0.5})
    assert found.trace.job_id == ("raysubmit_1",)
    assert found.trace.scale_factor.tolist() == [1]
    assert found.trace.duration_s.tolist() == [3600]


def test_what_has_no_end_or_no_accelerator_is_left_out(written: Write) -> None:
    other = DRIVER | {"job_id": "02", "submission_id": None}
    found = of_ray(
        written, DRIVER, other, group(), group("lost", "99"), group("cpu", gpus=0), group("late", state="PENDING")
    )
    assert found.trace.job_id == ("pg",)
    assert finding(found, "not listed") == ("left out", 1, "lost")
    assert finding(found, "reserve no accelerator")[1] == 2
    assert finding(found, "never started") == ("left out", 1, "late")


def test_files_that_are_not_of_ray_are_refused(written: Write) -> None:
    for items, says in (([{"a": 1}], "no job and no placement group"), ([DRIVER], "reserved accelerators")):
        with pytest.raises(InvalidInput, match=says):
            of_ray(written, *items)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6))
def test_time_and_width_of_intervals_are_those_counted_second_by_second(spans: list[tuple[int, int, int]]) -> None:
    whole = [(start, start + length, width) for start, length, width in spans]
    held = [sum(width for start, end, width in whole if start <= second < end) for second in range(20)]
    assert busy_s((start, end) for start, end, _ in whole) == sum(map(bool, held))
    assert most_at_once(whole) == max(held)


SCONTROL = (
    "NodeName=gpu01 Arch=x86_64 CPUTot=64 Gres=gpu:a100:4(S:0-1) RealMemory=512000 State=IDLE+DRAIN Partitions=a,b",
    "NodeName=gpu02 Arch=x86_64 CPUTot=64 Gres=gpu:a100:4 RealMemory=512000 State=MIXED Reason=x [root@y]",
    "NodeName=login CPUTot=8 Gres=(null) State=IDLE",
)


def test_machines_of_scontrol(written: Write) -> None:
    path = written(*SCONTROL)
    nodes = {node.name: node for node in slurm_nodes.read_named(path)}
    assert [(node.type, node.accelerators, node.cpus) for node in nodes.values()] == [
        ("a100", 4, 64),
        ("a100", 4, 64),
        ("", 0, 8),
    ]
    assert nodes["gpu01"].memory_gib == 500
    assert nodes["gpu01"].note
    assert not nodes["gpu02"].note
    listed = slurm_nodes.read(path)
    assert [(node.type, node.accelerators) for node in listed.nodes] == [("a100-40gb", 4)] * 2
    assert len(listed.notes) == 2


def test_scontrol_over_several_lines(written: Write) -> None:
    path = written("NodeName=a Arch=x", "   CPUTot=4 State=IDLE", "   Gres=gpu:2", "", "NodeName=b", "   Gres=gpu:t4:1")
    assert [(node.name, node.accelerators) for node in slurm_nodes.read_named(path)] == [("a", 2), ("b", 1)]


def test_machines_of_sinfo_in_either_form(written: Write) -> None:
    by_node = written(
        "NODELIST GRES CPUS MEMORY STATE",
        "gpu01 gpu:v100:8 64 512000 idle",
        "gpu01 gpu:v100:8 64 512000 idle",
        "gpu02 gpu:v100:8 64 512000 down*",
    )
    assert [(node.name, bool(node.note)) for node in slurm_nodes.read_named(by_node)] == [
        ("gpu01", False),
        ("gpu02", True),
    ]
    ranges = written("NODELIST|GRES", "gpu[01-04]|gpu:v100:8")
    assert len(slurm_nodes.read_named(ranges)) == 4
    counted = written("NODES GRES", "3 gpu:t4:2")
    assert [node.accelerators for node in slurm_nodes.read_named(counted)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["PARTITION AVAIL", "a up"], "no list of Slurm's machines"),
        (["NODELIST GRES", "a"], "has 1 values for the 2 columns"),
        (["NODELIST GRES", "a (null)"], "no machine here has an accelerator"),
    ],
)
def test_lists_that_cannot_be_read_are_refused(written: Write, lines: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        slurm_nodes.read(written(*lines))


def test_machines_of_kubernetes_and_of_ray(written: Write) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    ready = {"type": "Ready", "status": "True"}
    node = {
        "kind": "Node",
        "metadata": {"name": "a", "labels": labels},
        "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "96"}, "conditions": [ready]},
    }
    away = {"kind": "Node", "metadata": {"name": "b"}, "spec": {"unschedulable": True}, "status": {"capacity": {}}}
    of_ray = {"node_id": "r", "state": "ALIVE", "resources_total": {"GPU": 2.0, "accelerator_type:T4": 1.0}}
    nodes = kubernetes_nodes.read_named([written(raw=json.dumps([node, away, of_ray]).encode())])
    assert [(one.name, one.type, one.accelerators, bool(one.note)) for one in nodes] == [
        ("a", "NVIDIA-A100-SXM4-80GB", 8, False),
        ("b", "", 0, True),
        ("r", "T4", 2, False),
    ]
