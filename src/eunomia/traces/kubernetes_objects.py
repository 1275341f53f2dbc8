"""Pods and Jobs of Kubernetes as far as accounting goes: what they held, where, and from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan

from eunomia.traces.engine_objects import Json, at, first_label, listed, mapping, moment, texts
from eunomia.traces.pod_resources import TYPE_LABELS, accelerators, requested

GANG_LABELS = (  # of operators that start several pods for one job
    "training.kubeflow.org/job-name", "trainer.kubeflow.org/trainjob-ancestor-step", "volcano.sh/job-name",
    "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "ray.io/cluster", "pytorch-job-name",
)  # fmt: skip
JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")
QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "eunomia.dev/queue", "volcano.sh/queue-name")
ENDED = ("Succeeded", "Failed")
USUAL = len("2024-01-31T00:00:00Z")
STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


@dataclass(slots=True, kw_only=True)
class Pod:
    """What counts of a pod. Times are seconds since 1970."""

    row: int
    group: str  # name of its job: namespace/name
    created: float
    started: float  # nan = never
    ended: float  # nan = runs, never ran, or not written
    asked: dict[str, int]  # extended resources that it holds
    held: dict[str, int]  # those of them that are accelerators
    phase: str
    machine: str
    asked_for: str
    queue: str
    owner: str  # kind
    width: int  # accelerators

    @property
    def is_undated(self) -> bool:
        """Whether it ended, at a time that is not written."""
        return self.phase in ENDED and isnan(self.ended)


def read_pod(item: Json, row: int, resources: Sequence[str]) -> Pod:
    """Return what counts of a pod; `resources` are names that count as accelerators beside the usual ones."""
    labels = mapping(item, "metadata", "labels")
    owners = listed(item, "metadata", "ownerReferences")
    owner = next((one for one in owners if isinstance(one, dict)), {})
    kind = texts(owner, "kind")
    own = texts(owner, "name") if kind == "Job" else ""
    name = first_label(labels, GANG_LABELS) or own or first_label(labels, JOB_LABELS) or texts(item, "metadata", "name")
    asked = requested(mapping(item, "spec"))
    started = moment(at(item, "status", "startTime"))
    if isnan(started):
        began = [moment(at(one, "startedAt")) for one in _runs(item)]
        started = min((value for value in began if not isnan(value)), default=nan)
    held = accelerators(asked, resources)
    return Pod(
        row=row,
        group=f"{texts(item, 'metadata', 'namespace')}/{name}",
        created=moment(at(item, "metadata", "creationTimestamp")),
        started=started,
        ended=_end_of_pod(item, started),
        asked=dict(asked),
        held=held,
        phase=texts(item, "status", "phase"),
        machine=texts(item, "spec", "nodeName"),
        asked_for=asked_type(mapping(item, "spec")),
        queue=first_label(labels, QUEUE_LABELS),
        owner=kind,
        width=sum(held.values()),
    )


def asked_type(spec: Json) -> str:
    """Return the accelerator type that a pod's selector or required affinity names; "" for none, or several."""
    selected = first_label(mapping(spec, "nodeSelector"), TYPE_LABELS)
    terms = listed(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    named = {
        str(value)
        for term in terms
        for need in listed(term, "matchExpressions")
        if texts(need, "key") in TYPE_LABELS and texts(need, "operator") == "In"
        for value in listed(need, "values")
    }
    return selected or (named.pop() if len(named) == 1 else "")


def _runs(item: Json) -> list[Json]:
    """Return the states of containers that say when one began or ended: those now, and those before a restart."""
    statuses = [one for name in STATUSES for one in listed(item, "status", name)]
    return [
        state
        for one in statuses
        for when in ("state", "lastState")
        for word in ("terminated", "running")
        if (state := mapping(one, when, word))
    ]


def _end_of_pod(item: Json, started: float) -> float:
    """Return when the last container of a pod ended; nan while one runs, and where nothing says so.

    Without the ends of containers it is when the pod ceased to be ready, else when it was deleted or evicted. A
    condition that did not change since the start says nothing of the end.
    """
    if texts(item, "status", "phase") not in ENDED:
        return nan
    statuses = [one for name in STATUSES for one in listed(item, "status", name)]
    ends = [moment(at(one, "state", "terminated", "finishedAt")) for one in statuses]
    known = [end for end in ends if not isnan(end)]
    if not known:
        ends = [
            moment(at(one, "lastTransitionTime"))
            for one in listed(item, "status", "conditions")
            if (texts(one, "type"), texts(one, "status"))
            in (("Ready", "False"), ("ContainersReady", "False"), ("DisruptionTarget", "True"))
        ]
        ends.append(moment(at(item, "metadata", "deletionTimestamp")))
        known = [end for end in ends if end > started]
    return max(known, default=nan)


def latest_time(item: Json) -> float:
    """Return the latest time that an object holds, which says when it was listed at the earliest; -inf for none."""
    status = mapping(item, "status")
    found = [at(item, "metadata", "creationTimestamp"), status.get("startTime"), status.get("completionTime")]
    for one in listed(status, "conditions"):
        found += [at(one, "lastHeartbeatTime"), at(one, "lastTransitionTime")]
    for one in listed(status, "containerStatuses"):
        found.append(at(one, "state", "terminated", "finishedAt"))
    texts = [text for text in found if isinstance(text, str)]
    usual = max((text for text in texts if len(text) == USUAL and text[-1] == "Z"), default="")  # by text as by time
    other = [text for text in texts if len(text) != USUAL or text[-1] != "Z"]
    return max((value for value in map(moment, (usual, *other)) if not isnan(value)), default=-inf)


def template(job: Json) -> Json:
    """Return the specification of a Job's pods."""
    return mapping(job, "spec", "template", "spec")


def has_ended(job: Json | None) -> bool:
    """Say whether a Job completed or failed."""
    return any(_is_end(condition) for condition in listed(job, "status", "conditions"))


def _is_end(condition: object) -> bool:
    return texts(condition, "type") in ("Complete", "Failed") and texts(condition, "status") == "True"


def end_of_job(job: Json | None) -> float:
    """Return when a Job completed or failed; nan for none, and where nothing says when."""
    ended = moment(at(job, "status", "completionTime"))
    for condition in listed(job, "status", "conditions"):
        if _is_end(condition) and isnan(ended):
            ended = moment(at(condition, "lastTransitionTime"))
    return ended


def status_of(job: Json | None, phases: set[str]) -> str:
    """Return how a job ended: as its conditions say, else as the phases of its pods do."""
    for condition in listed(job, "status", "conditions"):
        if _is_end(condition):
            return "finished" if texts(condition, "type") == "Complete" else "failed"
    if job is not None or not phases:
        return ""
    return "finished" if phases == {"Succeeded"} else "failed" if phases <= {"Succeeded", "Failed"} else ""
