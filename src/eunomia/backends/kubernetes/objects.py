"""The objects that a gang is made of, and what is read from those that the API server lists."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from eunomia.backends.engines.engine import EngineNode, GangRequest, Mark, whole

OWN = "eunomia.dev/"
CLUSTER, GANG = f"{OWN}cluster", f"{OWN}gang"  # labels
MARK, PART, NODE, POD = f"{OWN}mark", f"{OWN}part", f"{OWN}node", f"{OWN}pod"  # annotations; POD: uid of the bound one
REASON = f"{OWN}drained"  # annotation of a node
SCHEDULER = "eunomia"
HOLD = "trap 'exit 0' TERM INT; while :; do sleep 1 & wait $!; done"  # what keeps the accelerators of a further node
TYPE_LABELS = ("nvidia.com/gpu.product", "gpu-type")
OVER_PHASES = frozenset({"Succeeded", "Failed"})
KEPT_S = 86_400  # for which a Job that has ended can be looked at, on servers that remove them
UNITS = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """How pods are made."""

    image: str
    resource: str = "nvidia.com/gpu"  # what nodes call their accelerators
    claim: str = ""  # volume claim with the folder of the jobs; empty: the folder of the node itself
    mount: str = ""  # where the folder is, on the nodes and in the pods
    type_labels: Sequence[str] = TYPE_LABELS


def gang_name(mark: Mark) -> str:
    """Return a name that the server takes, made of the whole mark."""
    return f"eu-{mark.cluster}-{sha256(mark.job_id.encode()).hexdigest()[:16]}-{mark.epoch}"


def jobs_of(request: GangRequest, settings: PodSettings) -> list[dict[str, Any]]:
    """Return a Job for each node of a gang: the first runs its command, the others hold its accelerators."""
    name = gang_name(request.mark)
    total = sum(count for _, _, count in request.parts)
    command = f"exec {shlex.join(request.argv)} < {shlex.quote(str(request.stdin))} 2>> {shlex.quote(str(request.log))}"
    found = []
    for part, (node, _, count) in enumerate(request.parts):
        share = count / total
        resources: dict[str, str] = {settings.resource: str(count)}
        if request.cpus > 0:
            resources["cpu"] = str(max(math.ceil(request.cpus * share), 1))
        if request.memory_gib > 0:
            resources["memory"] = f"{math.ceil(request.memory_gib * share * 1024)}Mi"
        labels = {CLUSTER: request.mark.cluster, GANG: name}
        notes = {MARK: str(request.mark), PART: str(part), NODE: node}
        container: dict[str, Any] = {
            "name": "gang",
            "image": settings.image,
            "command": ["/bin/sh", "-c", HOLD if part else command],
            "resources": {"limits": resources},
        }
        pod: dict[str, Any] = {
            "schedulerName": SCHEDULER,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": max(math.ceil(request.grace_s), 1) if not part else 1,
            "containers": [container],
        }
        if settings.mount:
            source = {"persistentVolumeClaim": {"claimName": settings.claim}} if settings.claim else {
                "hostPath": {"path": settings.mount}
            }  # fmt: skip
            pod["volumes"] = [{"name": "jobs", **source}]
            container["volumeMounts"] = [{"name": "jobs", "mountPath": settings.mount}]
        template = {"metadata": {"labels": labels, "annotations": notes}, "spec": pod}
        found.append({
            "metadata": {"name": f"{name}-{part}", "labels": labels, "annotations": notes},
            "spec": {"backoffLimit": 0, "parallelism": 1, "completions": 1, "ttlSecondsAfterFinished": KEPT_S,
                     "template": template},
        })  # fmt: skip
    return found


@dataclass(slots=True)
class GangObjects:
    """The Jobs and pods of one gang as listed, by part."""

    mark: Mark
    jobs: dict[int, Any] = field(default_factory=dict)
    pods: dict[int, Any] = field(default_factory=dict)  # of the Job that is bound, or that waits

    @property
    def uid(self) -> str:
        """Return the uid of the Job whose pod runs the command; "" without one."""
        return str(self.jobs[0].metadata.uid) if 0 in self.jobs else ""

    @property
    def state(self) -> str:
        """Return waiting, bound, running, Succeeded, Failed, lost (its bound pod is gone) or deleted."""
        pod, job = self.pods.get(0), self.jobs.get(0)
        if pod is None:
            return "waiting" if job is not None and not bound_to(job) else "lost" if job is not None else "deleted"
        phase = pod.status.phase if pod.status else ""
        if phase in OVER_PHASES:
            return str(phase)
        if job is not None and bound_to(job) not in ("", pod.metadata.uid):
            return "lost"
        if phase == "Running":
            return "running"
        return "bound" if pod.spec.nodeName else "waiting"


def bound_to(job: Any) -> str:
    """Return the uid of the pod that a Job's accelerators were given to; "" = none yet."""
    return str((job.metadata.annotations or {}).get(POD, ""))


def mark_of(found: Any) -> Mark | None:
    """Return the mark of a Job or pod; None for those of others."""
    return Mark.parse((found.metadata.annotations or {}).get(MARK, ""))


def place_of(found: Any) -> tuple[Mark, str, int] | None:
    """Return mark, gang and part of a Job or pod of ours; None for what others made, whatever it claims to be."""
    mark, notes = mark_of(found), found.metadata.annotations or {}
    part = whole(notes.get(PART, ""))
    if mark is None or NODE not in notes or part is None:
        return None
    name = gang_name(mark)
    return (mark, name, part) if (found.metadata.labels or {}).get(GANG) == name else None


def holds(pod: Any, resource: str) -> int:
    """Return how many accelerators a pod has or asks for, 0 for one that has ended."""
    return 0 if pod.status and pod.status.phase in OVER_PHASES else asked_by(pod.spec, resource)


def asked_by(spec: Any, resource: str) -> int:
    """Return how many accelerators a pod of this spec asks for."""
    found = 0.0
    for container in spec.containers:
        limits = (container.resources.limits or {}) if container.resources else {}
        found += quantity(str(limits.get(resource, "0")))
    return int(found)


def node_of(node: Any, used: int, settings: PodSettings) -> EngineNode:
    """Return a node as engines report it."""
    labels, notes, room = node.metadata.labels or {}, node.metadata.annotations or {}, node.status.allocatable or {}
    kind = next((str(labels[label]).lower() for label in settings.type_labels if labels.get(label)), "gpu")
    count = int(quantity(str(room.get(settings.resource, "0"))))
    ready = [one for one in node.status.conditions or [] if one.type == "Ready"]
    away = ""
    if not ready or ready[0].status != "True":
        away = f"not ready, {ready[0].reason or 'no reason'}" if ready else "not ready"
    elif node.spec is not None and node.spec.unschedulable:
        away = f"cordoned{f', {notes[REASON]}' if REASON in notes else ''}"
    return EngineNode(
        name=str(node.metadata.name),
        accelerators={kind: count} if count else {},
        used={kind: used} if used else {},
        away=away,
        cpus=quantity(str(room.get("cpu", "0"))),
        memory_gib=quantity(str(room.get("memory", "0"))) / 2.0**30,
    )


def quantity(text: str) -> float:
    """Return the value of a quantity such as `4`, `500m` or `64Gi`; 0 for one that is none."""
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    number = text[: len(text) - len(unit)]
    try:
        return float(number) * UNITS.get(unit, 1.0)
    except ValueError:
        return 0.0


def counted(pods: Sequence[Any], resource: str) -> Mapping[str, int]:
    """Return accelerators that pods hold, by node."""
    found: dict[str, int] = {}
    for pod in pods:
        if pod.spec.nodeName:
            found[pod.spec.nodeName] = found.get(pod.spec.nodeName, 0) + holds(pod, resource)
    return found
