"""Jobs that users create on Kubernetes themselves, as read: what each asks for, and where its pods are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eunomia.backends.engines.engine import OVER, QUEUED, RUNS, EngineRefused, Mark, whole
from eunomia.backends.engines.job_files import SUBMISSION
from eunomia.backends.kubernetes.objects import OVER_PHASES, OWN, SCHEDULER, asked_by, mark_of

QUEUE = f"{OWN}queue"  # label: whose it is
PLACES, WIDTH, FAILED = f"{OWN}places", f"{OWN}parallelism", f"{OWN}failed"  # annotations, see `UserJob`
ENDS = {"Complete": "COMPLETED", "Failed": "FAILED"}  # by condition of a Job


@dataclass(slots=True)
class UserJob:
    """A Job of a user, and those of its pods that have not ended.

    Its annotations are the mark, the pods that each node has in this start, how many pods had failed before it, and
    on servers that cannot suspend, the parallelism that it had before it was held.
    """

    job: Any
    pods: list[Any] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return str(self.job.metadata.uid)

    @property
    def name(self) -> str:
        return str(self.job.metadata.name)

    @property
    def mark(self) -> Mark | None:
        return mark_of(self.job)

    @property
    def waits_for_us(self) -> bool:
        """Whether no scheduler but ours places its pods."""
        return bool(self.job.spec.template.spec.schedulerName == SCHEDULER)

    @property
    def width(self) -> int:
        """How many of its pods run at once."""
        noted, given = whole(self._note(WIDTH)), self.job.spec.parallelism
        width = noted if noted is not None else 1 if given is None else int(given)
        done = (self.job.status.succeeded or 0) if self.job.status else 0
        return width if self.job.spec.completions is None else min(width, int(self.job.spec.completions) - done)

    @property
    def is_held(self) -> bool:
        """Whether its controller makes no pods of it."""
        return bool(self.job.spec.suspend) or self.job.spec.parallelism == 0

    @property
    def bound(self) -> list[Any]:
        """Pods that hold accelerators, also those that end."""
        return [pod for pod in self.pods if pod.spec.nodeName]

    @property
    def unbound(self) -> list[Any]:
        """Pods that wait to be bound, in order of their names."""
        waiting = [pod for pod in self.pods if not pod.spec.nodeName and pod.metadata.deletionTimestamp is None]
        return sorted(waiting, key=lambda pod: str(pod.metadata.name))

    @property
    def state(self) -> str:
        """Return COMPLETED, FAILED, RUNNING (or between two tries of its own) or WAITING."""
        for condition in (self.job.status.conditions or []) if self.job.status else []:
            if condition.type in ENDS and condition.status == "True":
                return "RUNNING" if self.bound else ENDS[condition.type]
        return "RUNNING" if self.bound or (not self.is_held and self.has_failed_pods) else "WAITING"

    @property
    def phase(self) -> str:
        return {"RUNNING": RUNS, "WAITING": QUEUED}.get(self.state, OVER)

    @property
    def has_failed_pods(self) -> bool:
        """Whether a pod of this start has failed, so that its controller makes another."""
        before = whole(self._note(FAILED))
        return before is not None and self.failed_pods > before

    @property
    def failed_pods(self) -> int:
        return int(self.job.status.failed or 0) if self.job.status else 0

    @property
    def places(self) -> Counter[str]:
        """Return the pods that each node is to have, as far as none of its pods is there."""
        return Counter(parse_places(self._note(PLACES))) - Counter(str(pod.spec.nodeName) for pod in self.bound)

    def _note(self, name: str) -> str:
        return str((self.job.metadata.annotations or {}).get(name, ""))

    def per_pod(self, resource: str) -> int:
        """Return the accelerators of each pod."""
        return asked_by(self.job.spec.template.spec, resource)


def parse_places(text: str) -> dict[str, int]:
    """Return pods by node, from `node-a=2,node-b=1`."""
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    return {node: number for node, _, count in pairs if node and (number := whole(count)) is not None}


def places_of(parts: Iterable[tuple[str, str, int]], per_pod: int) -> dict[str, int]:
    """Return how many pods each node gets. Raises EngineRefused where a pod would have to be divided."""
    found: Counter[str] = Counter()
    for node, _, count in parts:
        if count % per_pod:
            raise EngineRefused(
                f"its pods ask for {per_pod} accelerators each, and it was given {count} on {node}; "
                "pods with one accelerator each fit everywhere"
            )
        found[node] += count // per_pod
    return dict(found)


def user_jobs(jobs: Iterable[Any], pods: Iterable[Any]) -> dict[str, UserJob]:
    """Return Jobs by uid, with their pods; pods of a Job that was deleted are left out."""
    found = {str(job.metadata.uid): UserJob(job) for job in jobs}
    for pod in pods:
        for owner in pod.metadata.ownerReferences or []:
            if owner.uid in found and not (pod.status and pod.status.phase in OVER_PHASES):
                found[owner.uid].pods.append(pod)
    return found


def document(one: UserJob, resource: str, type_labels: Sequence[str]) -> dict[str, Any]:
    """Return the job document of a user's Job: its deadline is the length that it declares."""
    spec, pod = one.job.spec, one.job.spec.template.spec
    name = re.sub(r"[^A-Za-z0-9._-]", "_", one.name)[:63].lstrip(".-") or "job"
    found: dict[str, Any] = {
        "name": name,
        "command": ["kubectl", "create", one.name],
        "accelerators": one.width * one.per_pod(resource),
        "labels": {SUBMISSION: one.uid, "job": one.name},
    }
    if types := _types(pod, type_labels):
        found["types"] = types
    if spec.activeDeadlineSeconds:
        found["duration_s"] = float(spec.activeDeadlineSeconds)
    if pod.terminationGracePeriodSeconds is not None:
        found["checkpoint"] = {"grace_s": min(float(pod.terminationGracePeriodSeconds), 3600.0)}
    return found


def _types(pod: Any, type_labels: Sequence[str]) -> list[str]:
    """Return the accelerator types that a pod selects its nodes by; none = any."""
    selector: Mapping[str, str] = pod.nodeSelector or {}
    if named := [selector[label] for label in type_labels if label in selector]:
        return [str(named[0]).lower()]
    affinity = pod.affinity.nodeAffinity if pod.affinity else None
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity else None
    terms = required.nodeSelectorTerms if required else []
    if len(terms) == 1:
        for rule in terms[0].matchExpressions or []:
            if rule.key in type_labels and rule.operator == "In":
                return sorted({str(value).lower() for value in rule.values or []})
    return []
