"""Jobs and Pods of Kubernetes, as `kubectl get jobs,pods,nodes --all-namespaces -o json` lists them.

The pods of a Job, or of one gang by a label of its operator, are one job: as wide as the accelerators that its pods
held at the same time, and as long as any of them ran. A Job whose pods are gone counts by its own template and times.
Reference: Kubernetes API, batch/v1 JobStatus and core/v1 PodStatus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

import numpy as np

from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.traces.engine_objects import (
    EngineJob,
    Json,
    Objects,
    at,
    build_history,
    busy_s,
    first_label,
    listed,
    load_objects,
    mapping,
    moment,
    most_at_once,
    texts,
)
from eunomia.traces.import_findings import History, ImportFindings
from eunomia.traces.table import Trace

COMMAND = "kubectl get jobs,pods,nodes --all-namespaces -o json"
GANG_LABELS = (  # of operators that start several pods for one job
    "training.kubeflow.org/job-name", "trainer.kubeflow.org/trainjob-ancestor-step", "volcano.sh/job-name",
    "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "ray.io/cluster", "pytorch-job-name",
)  # fmt: skip
JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")
QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "eunomia.dev/queue", "volcano.sh/queue-name")
TYPE_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name", "gpu.nvidia.com/class",
    "karpenter.k8s.aws/instance-gpu-name", "skypilot.co/accelerator", "accelerator",
)  # fmt: skip
TENANTS = ("namespace", "queue")
SERVICES = ("ReplicaSet", "StatefulSet", "DaemonSet")
UNREAD = ("CPUs and memory", "priorities", "events", "annotations")
PARTLY = "of the times of pods and containers more than submission and duration"


def detects(line: Sequence[str]) -> bool:
    """Say whether a first line may be that of kubectl's JSON."""
    return bool(line) and line[0].lstrip().startswith("{")


def read(path: Path, *, tenant: str = "namespace") -> Trace:
    """Return the jobs that ran on accelerators; the `tenant` is their namespace, or the queue that a label names.

    Raises InvalidInput for a file that is not of kubectl, or without such jobs.
    """
    return read_history([path], tenant=tenant).trace


def read_history(paths: Sequence[Path], *, tenant: str = "namespace") -> History:
    """Return the jobs of one or several files with the schedule as it was; arguments and errors are those of `read`."""
    one_of(str(paths[0]), "tenant", tenant, TENANTS)
    source = load_objects(paths, COMMAND)
    source.names = [_name(item) for item in source.items]
    findings = ImportFindings(source=source)
    kinds = [texts(item, "kind") for item in source.items]
    if not {"Job", "Pod"} & set(kinds):
        rule = f"there is no Job and no Pod here, but {', '.join(sorted(set(kinds)) or ['nothing'])}"
        raise refused(source.name, "kind", None, rule, f"write the file with: {COMMAND}")
    _leave_out_repeated(source, kinds, findings)
    pods = [_pod(source.items[m], m) for m, kind in enumerate(kinds) if kind == "Pod"]
    jobs = {_name(source.items[m]): m for m, kind in enumerate(kinds) if kind == "Job"}
    now = max((value for item in source.items for value in _times(item)), default=np.nan)
    type_by_node = {
        texts(item, "metadata", "name"): first_label(mapping(item, "metadata", "labels"), TYPE_LABELS)
        for item, kind in zip(source.items, kinds, strict=True)
        if kind == "Node"
    }
    return _build(source, pods, jobs, now, type_by_node, tenant, findings)


def _name(item: Json) -> str:
    return f"{texts(item, 'metadata', 'namespace')}/{texts(item, 'metadata', 'name')}"


def _leave_out_repeated(source: Objects, kinds: list[str], findings: ImportFindings) -> None:
    """Blank the kind of objects that a later one repeats, as overlapping files do: the later one says how it ended."""
    last: dict[str, int] = {}
    repeated = []
    for m, item in enumerate(source.items):
        uid = texts(item, "metadata", "uid")
        if uid and uid in last:
            repeated.append(last[uid])
        last[uid] = m
    findings.add("repaired", "objects are listed twice; the later one counts", np.array(repeated, dtype=np.int64))
    for m in repeated:
        kinds[m] = ""


@dataclass(slots=True, kw_only=True)
class _Pod:
    row: int
    group: str  # name of its job: namespace/name
    created: float
    started: float  # nan = never
    ended: float  # nan = runs, or never ran
    width: int
    is_sliced: bool  # asks for parts of accelerators (MIG)
    phase: str
    machine: str
    asked_for: str
    queue: str
    owner: str  # kind


def _pod(item: Json, row: int) -> _Pod:
    """Return what counts of a pod."""
    labels = mapping(item, "metadata", "labels")
    owners = listed(item, "metadata", "ownerReferences")
    owner = next((one for one in owners if isinstance(one, dict)), {})
    kind = texts(owner, "kind")
    own = texts(owner, "name") if kind == "Job" else ""
    name = first_label(labels, GANG_LABELS) or own or first_label(labels, JOB_LABELS) or texts(item, "metadata", "name")
    width, is_sliced = accelerators_of(mapping(item, "spec"))
    return _Pod(
        row=row,
        group=f"{texts(item, 'metadata', 'namespace')}/{name}",
        created=moment(at(item, "metadata", "creationTimestamp")),
        started=moment(at(item, "status", "startTime")),
        ended=_end_of_pod(item),
        width=width,
        is_sliced=is_sliced,
        phase=texts(item, "status", "phase"),
        machine=texts(item, "spec", "nodeName"),
        asked_for=_asked_type(mapping(item, "spec")),
        queue=first_label(labels, QUEUE_LABELS),
        owner=kind,
    )


def accelerators_of(spec: Json) -> tuple[int, bool]:
    """Return the accelerators that the containers of a pod hold at once, and whether they are slices of some."""
    most = [0, 0]
    is_sliced = False
    for m, name in enumerate(("containers", "initContainers")):
        counts = []
        for container in listed(spec, name):
            asked = {
                **mapping(container, "resources", "requests"),
                **mapping(container, "resources", "limits"),
            }
            whole = sum(_count(value) for key, value in asked.items() if key.endswith("/gpu"))
            parts = sum(_count(value) for key, value in asked.items() if "/mig-" in key)
            is_sliced |= parts > 0
            counts.append(whole + parts)
        most[m] = sum(counts) if m == 0 else max(counts, default=0)  # init containers run one after the other
    return max(most), is_sliced


def _count(value: object) -> int:
    text = str(value)
    return int(text) if text.isdigit() else 0


def _asked_type(spec: Json) -> str:
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


def _end_of_pod(item: Json) -> float:
    """Return when the last container of a pod ended; nan while one runs, and where nothing says so."""
    if texts(item, "status", "phase") not in ("Succeeded", "Failed"):
        return np.nan
    statuses = listed(item, "status", "containerStatuses")
    ends = [moment(at(one, "state", "terminated", "finishedAt")) for one in statuses]
    changes = [moment(at(one, "lastTransitionTime")) for one in listed(item, "status", "conditions")]
    known = [end for end in ends if not isnan(end)] or [end for end in changes if not isnan(end)]
    return max(known, default=moment(at(item, "metadata", "deletionTimestamp")))


def _times(item: Json) -> list[float]:
    """Return the times that say when the list was made: its latest one."""
    found = [
        at(item, "metadata", "creationTimestamp"),
        at(item, "status", "startTime"),
        at(item, "status", "completionTime"),
    ]
    found += [at(one, "lastHeartbeatTime") for one in listed(item, "status", "conditions")]
    found += [at(one, "lastTransitionTime") for one in listed(item, "status", "conditions")]
    found += [at(one, "state", "terminated", "finishedAt") for one in listed(item, "status", "containerStatuses")]
    return [value for value in map(moment, found) if not isnan(value)]


def _build(
    source: Objects,
    pods: Sequence[_Pod],
    jobs: dict[str, int],
    now: float,
    type_by_node: dict[str, str],
    tenant: str,
    findings: ImportFindings,
) -> History:
    """Return the history of the groups of pods, and of Jobs without pods."""
    groups: dict[str, list[_Pod]] = {}
    for pod in pods:
        groups.setdefault(pod.group, []).append(pod)
    found: list[EngineJob] = []
    never, plain, gone = list[int](), list[int](), list[int]()
    for name, members in groups.items():
        job = None if name not in jobs else source.items[jobs[name]]
        ran = [pod for pod in members if pod.width and not isnan(pod.started)]
        if not any(pod.width for pod in members):
            plain.append(members[0].row)
        elif not ran:
            never.append(members[0].row)
        else:
            found.append(_of_pods(name, members, ran, job, now, type_by_node, tenant))
    for name, m in jobs.items():
        if name in groups:
            continue
        alone = _of_job(source.items[m], m, now, tenant)
        if alone.width == 0:
            plain.append(m)
        elif isnan(alone.started):
            never.append(m)
        else:
            gone.append(m)
            found.append(alone)
    as_rows = {
        key: np.array(rows, dtype=np.int64) for key, rows in (("plain", plain), ("never", never), ("gone", gone))
    }
    findings.add("left out", "jobs asked for no accelerator", as_rows["plain"])
    findings.add("left out", "jobs with accelerators never ran", as_rows["never"])
    findings.add("assumed", "Jobs have no pod any more: their template and their own times count", as_rows["gone"])
    services = [pod.row for pod in pods if pod.owner in SERVICES and pod.width and not isnan(pod.started)]
    findings.add(
        "assumed", "pods of deployments and other services are read as jobs", np.array(services, dtype=np.int64)
    )
    findings.add(
        "assumed", "pods ask for slices of accelerators (MIG); each slice is read as a whole one",
        np.array([pod.row for pod in pods if pod.is_sliced], dtype=np.int64),
    )  # fmt: skip
    if not found:
        rule = "no job here ran on an accelerator (a resource whose name ends in /gpu)"
        raise refused(source.name, None, None, rule, f"list the pods before they are deleted, with: {COMMAND}")
    return build_history(source.name, found, findings, unread=UNREAD, partly=PARTLY)


def _of_pods(
    name: str,
    members: Sequence[_Pod],
    ran: Sequence[_Pod],
    job: Json | None,
    now: float,
    type_by_node: dict[str, str],
    tenant: str,
) -> EngineJob:
    """Return the job of a group of pods."""
    ends = [pod.ended if not isnan(pod.ended) else max(now, pod.started) for pod in ran]
    spans = [(pod.started, max(end, pod.started)) for pod, end in zip(ran, ends, strict=True)]
    width = most_at_once(
        (start, max(end, start + 1e-3), pod.width) for (start, end), pod in zip(spans, ran, strict=True)
    )
    labels = {} if job is None else mapping(job, "metadata", "labels")
    queue = first_label(labels, QUEUE_LABELS) or next((pod.queue for pod in members if pod.queue), "")
    runs = any(isnan(pod.ended) for pod in ran)
    status = _status(job, members)
    machines = tuple(dict.fromkeys(pod.machine for pod in ran if pod.machine and pod.phase != "Failed"))
    machines = machines or tuple(dict.fromkeys(pod.machine for pod in ran if pod.machine))
    submitted = [pod.created for pod in members] + (
        [] if job is None else [moment(at(job, "metadata", "creationTimestamp"))]
    )
    failures = sum(pod.phase == "Failed" for pod in members)
    return EngineJob(
        row=members[0].row,
        job_id=name,
        submitted=min((value for value in submitted if not isnan(value)), default=spans[0][0]),
        started=min(start for start, _ in spans),
        ended=np.nan if runs else max(ends),
        ran_s=busy_s(spans),
        width=width,
        tenant=name.split("/", 1)[0] if tenant == "namespace" else queue,
        status=status,
        retries=failures if status == "finished" else max(0, failures - 1),
        ran_on=next((type_by_node[machine] for machine in machines if type_by_node.get(machine)), ""),
        asked_for=next((pod.asked_for for pod in ran if pod.asked_for), ""),
        machines=machines,
    )


def _of_job(item: Json, row: int, now: float, tenant: str) -> EngineJob:
    """Return a Job by its template and its own times."""
    spec = mapping(item, "spec", "template", "spec")
    started, ended = moment(at(item, "status", "startTime")), moment(at(item, "status", "completionTime"))
    for condition in listed(item, "status", "conditions"):
        if texts(condition, "type") in ("Failed", "Complete") and texts(condition, "status") == "True" and isnan(ended):
            ended = moment(at(condition, "lastTransitionTime"))
    labels = mapping(item, "metadata", "labels")
    end = ended if not isnan(ended) else now
    return EngineJob(
        row=row,
        job_id=_name(item),
        submitted=_or(moment(at(item, "metadata", "creationTimestamp")), started),
        started=started,
        ended=ended,
        ran_s=0.0 if isnan(started) else max(0.0, end - started),
        width=accelerators_of(spec)[0] * (_count(at(item, "spec", "parallelism", default=1))),
        tenant=texts(item, "metadata", "namespace") if tenant == "namespace" else first_label(labels, QUEUE_LABELS),
        status=_status(item, ()),
        asked_for=_asked_type(spec),
    )


def _or(value: float, other: float) -> float:
    return other if isnan(value) else value


def _status(job: Json | None, pods: Sequence[_Pod]) -> str:
    """Return how a job ended: as its conditions say, else as its pods did."""
    for condition in listed(job, "status", "conditions"):
        if texts(condition, "status") == "True" and texts(condition, "type") in ("Complete", "Failed"):
            return "finished" if texts(condition, "type") == "Complete" else "failed"
    phases = {pod.phase for pod in pods}
    if job is not None or not phases:
        return ""
    return "finished" if phases == {"Succeeded"} else "failed" if phases <= {"Succeeded", "Failed"} else ""
