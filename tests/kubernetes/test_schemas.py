"""What is written to Kubernetes has the fields and types of today's schemas, those of 1.37 in the client's models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
import msgspec
import yaml
from lightkube.core.resource import Resource
from lightkube.models.batch_v1 import JobSpec
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Event, Node, Pod, ServiceAccount
from lightkube.resources.rbac_authorization_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

from eunomia.backends.engines.engine import GangRequest, Mark
from eunomia.backends.kubernetes.events import event
from eunomia.backends.kubernetes.objects import PodSettings, jobs_of

MANIFEST = Path(__file__).parents[2] / "docs" / "operations" / "kubernetes.yaml"
KINDS = {kind.__name__: kind for kind in (ServiceAccount, Role, RoleBinding, ClusterRole, ClusterRoleBinding)}
REQUEST = GangRequest(
    mark=Mark("ab12", "a job", 3), name="eu-a-3", parts=(("n-0", "v100", 4), ("n-1", "v100", 2)),
    argv=("python", "-S"), stdin=Path("/jobs/in.json"), log=Path("/jobs/log"), grace_s=10.0, cpus=4.0, memory_gib=8.0,
)  # fmt: skip
READ_BY_THREADS = """\
import sys, threading
from lightkube.core.decoders import decode_list
from eunomia.backends.kubernetes.engine import Job, Node, Pod
sys.setswitchinterval(1e-6)
together = threading.Barrier(4)
def read(kind):
    together.wait()
    decode_list(b'{"items": [{"metadata": {"name": "a"}}]}', kind)
threads = [threading.Thread(target=read, args=(kind,)) for kind in (Job, Pod, Job, Node)]
for each in (threading.Thread.start, threading.Thread.join):
    for thread in threads:
        each(thread)
"""
USERS = {"metadata": {"name": "train", "namespace": "lab", "uid": "u-1"}, "spec": {"template": {}}}


def lost(kind: type[Any], document: dict[str, Any]) -> list[str]:
    """Return the fields of a document that the schema does not have; raise for those with another type."""
    kept = msgspec.to_builtins(msgspec.convert(document, kind))
    return [path for path in _paths(document) if path not in _paths(kept)]


def _paths(value: Any, at: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in _paths(one, f"{at}/{key}")]
    if isinstance(value, list):
        return [found for number, one in enumerate(value) for found in _paths(one, f"{at}/{number}")]
    return [at]


@pytest.mark.parametrize("settings", [PodSettings(image="x"), PodSettings(image="x", claim="jobs", mount="/jobs")])
def test_jobs_of_gangs_have_fields_of_the_schema_alone(settings: PodSettings) -> None:
    for document in jobs_of(REQUEST, settings):
        assert lost(Job, document) == []


def test_events_leases_and_bindings_have_fields_of_the_schema_alone() -> None:
    job = Job.from_dict(USERS)
    assert lost(Event, event("train.1", job, "Waiting", "no room", "2026-11-23T03:00:00Z")) == []
    lease = {"holderIdentity": "ab12", "leaseDurationSeconds": 15, "renewTime": "2026-11-23T03:00:00.000000Z"}
    assert lost(Lease, {"metadata": {"name": "eunomia"}, "spec": lease}) == []
    target = {"apiVersion": "v1", "kind": "Node", "name": "n-0"}
    assert lost(Pod.Binding, {"metadata": {"name": "a-0"}, "target": target}) == []


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (JobSpec, {"suspend": True, "template": {}}),
        (JobSpec, {"suspend": False, "parallelism": 2, "template": {}}),
        (Node, {"metadata": {"annotations": {"eunomia.dev/drained": "fans"}}, "spec": {"unschedulable": True}}),
    ],
)
def test_what_is_changed_has_fields_of_the_schema_alone(kind: type[Any], change: dict[str, Any]) -> None:
    assert lost(kind, change) == []


def test_a_field_that_is_misspelt_or_has_another_type_is_noticed() -> None:
    assert lost(JobSpec, {"suspended": True, "template": {}}) == ["/suspended"]
    with pytest.raises(msgspec.ValidationError):
        lost(JobSpec, {"suspend": "yes", "template": {}})


def test_the_manifest_has_fields_of_the_schema_alone() -> None:
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    assert {one["kind"] for one in documents} == KINDS.keys()
    for document in documents:
        kind: type[Resource] = KINDS[document["kind"]]
        assert lost(kind, document) == []


@pytest.mark.slow
def test_threads_may_read_the_first_objects_of_a_kind_at_once() -> None:
    for _ in range(3):  # without the types built beforehand about one in two crashes
        subprocess.run([sys.executable, "-c", READ_BY_THREADS], check=True, stdin=subprocess.DEVNULL)
