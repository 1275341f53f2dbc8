"""Jobs of users as read: by hand, and whatever users have written into annotations that are not theirs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from eunomia.backends.engines.engine import EngineRefused, Mark
from eunomia.backends.kubernetes.objects import TYPE_LABELS, place_of
from eunomia.backends.kubernetes.user_jobs import FAILED, PLACES, WIDTH, UserJob, document, places_of, user_jobs

GPU = "nvidia.com/gpu"


def job(notes: dict[str, str] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Any:
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "2"}}}
    pod = {"schedulerName": "eunomia", "containers": [container], **spec.pop("pod", {})}
    meta = {"name": "train", "namespace": "lab", "uid": "u-1", "annotations": notes or {}}
    return Job.from_dict({"metadata": meta, "status": status or {}, "spec": {**spec, "template": {"spec": pod}}})


def pod(name: str, node: str = "", phase: str = "Pending", owner: str = "u-1") -> Any:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": owner}]
    return Pod.from_dict({"metadata": {"name": name, "ownerReferences": owners}, "status": {"phase": phase},
                          "spec": {"nodeName": node or None, "containers": []}})  # fmt: skip


def test_a_job_asks_for_the_pods_that_it_still_needs_at_once() -> None:
    assert UserJob(job()).width == 1
    assert UserJob(job(parallelism=4)).width == 4
    assert UserJob(job(parallelism=4, completions=6, status={"succeeded": 5})).width == 1
    assert UserJob(job({WIDTH: "3"}, parallelism=0)).width == 3


def test_its_state_is_that_of_its_pods_and_its_end_waits_until_they_have_left() -> None:
    ended = {"conditions": [{"type": "Failed", "status": "True"}], "failed": 1}
    places = {PLACES: "a=2,b=1", FAILED: "0"}
    [one] = user_jobs([job(places)], [pod("p-1", "a", "Running"), pod("p-2"), pod("q", owner="u-2")]).values()
    assert (one.state, dict(one.places), len(one.unbound)) == ("RUNNING", {"a": 1, "b": 1}, 1)
    assert user_jobs([job(places)], [pod("p-2")])["u-1"].state == "WAITING"
    assert user_jobs([job(places, {"failed": 1})], [])["u-1"].state == "RUNNING", "its controller tries again"
    assert user_jobs([job(places, {"failed": 1}, suspend=True)], [])["u-1"].state == "WAITING"
    assert user_jobs([job(places, ended)], [pod("p-1", "a", "Running")])["u-1"].state == "RUNNING"
    assert user_jobs([job(places, ended)], [pod("p-1", "a", "Failed")])["u-1"].state == "FAILED"


def test_a_gang_has_whole_pods_on_each_node_or_is_refused() -> None:
    assert places_of([("a", "v100", 4), ("b", "v100", 2)], 2) == {"a": 2, "b": 1}
    with pytest.raises(EngineRefused, match="2 accelerators each, and it was given 3 on a"):
        places_of([("a", "v100", 3)], 2)


def test_what_it_asks_for_is_its_job_document() -> None:
    rule = {"key": "gpu-type", "operator": "In", "values": ["V100", "p100"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    one = UserJob(job(parallelism=2, activeDeadlineSeconds=60,
                      pod={"affinity": affinity, "terminationGracePeriodSeconds": 30}))  # fmt: skip
    assert document(one, GPU, TYPE_LABELS) == {
        "name": "train", "command": ["kubectl", "create", "train"], "accelerators": 4, "types": ["p100", "v100"],
        "labels": {"engine-submission": "u-1", "job": "train"}, "duration_s": 60.0, "checkpoint": {"grace_s": 30.0},
    }  # fmt: skip
    selected = UserJob(job(pod={"nodeSelector": {"gpu-type": "K80"}}))
    assert document(selected, GPU, TYPE_LABELS)["types"] == ["k80"]


@pytest.mark.parametrize("number", ["", "-1", "²", "9" * 5000, "1e3", "x"])
def test_annotations_that_a_user_has_written_end_nothing(number: str) -> None:
    assert Mark.parse(f"ab12:train:{number}") is None
    one = UserJob(job({WIDTH: number, FAILED: number, PLACES: f"a={number},=3,b"}, parallelism=2))
    assert (one.width, one.has_failed_pods, dict(one.places)) == (2, False, {})
    notes = {"eunomia.dev/mark": "ab12:train:1", "eunomia.dev/node": "a", "eunomia.dev/part": number}
    assert place_of(job(notes)) is None
