"""Jobs and Pods of Kubernetes, as `kubectl get jobs,pods,nodes --all-namespaces -o json` lists them.

The pods of a Job, or of one gang by a label of its operator, are one job: as wide as the accelerators that its pods
held at the same time, and with their accelerator-time. A Job whose pods are gone counts by its own template and times.
Reference: Kubernetes API, batch/v1 JobStatus and core/v1 PodStatus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path

from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.traces.accelerator_hours import HOUR_S
from eunomia.traces.engine_objects import (
    EngineJob,
    HeldRow,
    Json,
    Objects,
    ObjectsReader,
    at,
    build_history,
    first_label,
    held_row,
    load_objects,
    mapping,
    moment,
    row_hours,
    texts,
)
from eunomia.traces.gang_runs import one_run
from eunomia.traces.import_findings import History, ImportFindings, Kind
from eunomia.traces.kubernetes_objects import (
    ENDED,
    QUEUE_LABELS,
    Pod,
    asked_type,
    end_of_job,
    has_ended,
    latest_time,
    read_pod,
    status_of,
    template,
)
from eunomia.traces.machine_lists.named_nodes import type_name
from eunomia.traces.pod_resources import (
    accelerators,
    check_names,
    count,
    device_type,
    is_cut,
    is_slice,
    note_unread,
    requested,
    split_names,
)
from eunomia.traces.sacct_json import begins_sacct
from eunomia.traces.table import Trace

COMMAND = "kubectl get jobs,pods,nodes --all-namespaces -o json"
TENANTS = ("namespace", "queue")
SERVICES = ("ReplicaSet", "StatefulSet", "DaemonSet")
UNREAD = ("CPUs and memory", "priorities", "events", "annotations")
PARTLY = "of the times of pods and containers more than submission and duration"
FINDINGS: dict[str, tuple[Kind, str]] = {  # in the order in which they are reported
    "plain": ("left out", "jobs asked for no accelerator"),
    "never": ("left out", "jobs with accelerators never ran"),
    "undated": ("left out", "pods with accelerators ended, and nothing says when; what they held is not known"),
    "gone": ("assumed", "Jobs have no pod any more: their template and their own times count"),
    "by_job": ("assumed", "pods ended, and only the end of their Job says when: it counts"),
    "backwards": ("repaired", "pods ended before they started; they count 0 s"),
    "uneven": (
        "assumed", "jobs had pods that did not start and end together; each is read as one run of its largest width "
        "with the same accelerator-time",
    ),
    "types": ("assumed", "jobs ran on several accelerator types, at once or in turn; each is one job for each type"),
    "services": ("assumed", "pods of deployments and other services are read as jobs"),
    "sliced": ("assumed", "pods ask for slices of accelerators (MIG, or shared); each slice is read as a whole one"),
}  # fmt: skip


def detects(line: Sequence[str]) -> bool:
    """Say whether a first line may be that of kubectl's JSON."""
    return bool(line) and line[0].lstrip().startswith("{") and not begins_sacct(",".join(line))


def read(path: Path, *, tenant: str = "namespace", resource: str = "") -> Trace:
    """Return the jobs that ran on accelerators; the `tenant` is their namespace, or the queue that a label names.

    `resource` names further resources that are accelerators, such as google.com/tpu, separated by commas. Raises
    InvalidInput for a file that is not of kubectl, or without such jobs.
    """
    return read_history([path], tenant=tenant, resources=split_names(str(resource))).trace


def read_history(paths: Sequence[Path], *, tenant: str = "namespace", resources: Sequence[str] = ()) -> History:
    """Return the jobs of one or several files with the schedule as it was; arguments and errors are those of `read`."""
    return history_of(load_objects(paths, COMMAND), tenant=tenant, resources=resources)


def history_of(source: Objects, *, tenant: str = "namespace", resources: Sequence[str] = ()) -> History:
    """Return the jobs of objects that are loaded; arguments and errors are those of `read`."""
    one_of(source.files[0], "tenant", tenant, TENANTS)
    source.names = [_name(item) for item in source.items]
    kinds = [texts(item, "kind") for item in source.items]
    if not {"Job", "Pod"} & set(kinds):
        rule = f"there is no Job and no Pod here, but {', '.join(sorted(set(kinds)) or ['nothing'])}"
        raise refused(source.name, "kind", None, rule, f"write the file with: {COMMAND}")
    return _Reader(source=source, kinds=kinds, tenant=tenant, resources=resources).history()


def _name(item: Json) -> str:
    return f"{texts(item, 'metadata', 'namespace')}/{texts(item, 'metadata', 'name')}"


@dataclass(kw_only=True)
class _Reader(ObjectsReader):
    """The reader of Kubernetes; `held` is by each pod, and by each Job without pods."""

    resources: Sequence[str]
    labels: dict[str, Json] = field(default_factory=dict)  # of nodes

    def history(self) -> History:
        """Return the history of the groups of pods, and of Jobs without pods."""
        findings = ImportFindings(source=self.source)
        self.leave_out_repeated(map(self._version, range(len(self.source))), findings)
        items = self.source.items
        pods = [read_pod(items[m], m, self.resources) for m in self.of_kind("Pod")]
        jobs = {_name(items[m]): m for m in self.of_kind("Job")}
        nodes = [items[m] for m in self.of_kind("Node")]
        self.labels = {texts(item, "metadata", "name"): mapping(item, "metadata", "labels") for item in nodes}
        self._check_names(pods, jobs.values(), nodes)
        found = self._jobs_of_pods(pods, jobs)
        groups = {pod.group for pod in pods}
        gone = [m for name, m in jobs.items() if name not in groups]
        found += self._jobs_alone(gone)
        findings.hours = row_hours(self.held)
        self._say_of_pods(pods)
        asked = [(pod.row, pod.asked) for pod in pods]
        asked += [(m, requested(template(items[m]))) for m in gone]
        note_unread(asked, self.resources, findings)
        self.add_findings(findings, FINDINGS)
        if not found:
            rule = "no job here ran on an accelerator (a resource whose name ends in /gpu, or given by --resource)"
            said = [finding for finding in findings.notes() if "not read" in finding]
            rule += f"; {'; '.join(said)}" * bool(said)
            raise refused(self.source.name, None, None, rule, f"list the pods before they are deleted, with: {COMMAND}")
        return build_history(self.source.name, found, findings, unread=UNREAD, partly=PARTLY)

    def _version(self, m: int) -> tuple[str, bool, float]:
        """Return identity, whether it has ended, and latest time of an object."""
        item = self.source.items[m]
        made = texts(item, "metadata", "creationTimestamp")
        identity = texts(item, "metadata", "uid") or (f"{self.kinds[m]} {_name(item)} {made}" if made else "")
        return identity, texts(item, "status", "phase") in ENDED or has_ended(item), latest_time(item)

    def _check_names(self, pods: Sequence[Pod], jobs: Iterable[int], nodes: Sequence[Json]) -> None:
        seen = {name for pod in pods for name in pod.asked}
        seen |= {name for m in jobs for name in requested(template(self.source.items[m]))}
        seen |= {name for item in nodes for name in mapping(item, "status", "capacity")}
        check_names(self.resources, seen, self.source.name)

    def _jobs_of_pods(self, pods: Sequence[Pod], jobs: Mapping[str, int]) -> list[EngineJob]:
        groups: dict[str, list[Pod]] = {}
        for pod in pods:
            groups.setdefault(pod.group, []).append(pod)
        found = []
        for name, members in groups.items():
            job = self.source.items[jobs[name]] if name in jobs else None
            started = [pod for pod in members if pod.width and not isnan(pod.started)]
            ran = self._dated(started, job)
            if not any(pod.width for pod in members):
                if not any(pod.asked for pod in members):
                    self.rows["plain"].append(members[0].row)
            elif not started:
                self.rows["never"].append(members[0].row)
            elif ran:
                for k, (kind, alike) in enumerate(self._by_type(ran)):
                    found.append(self._of_pods(name, members, alike, job, kind, is_main=k == 0))
        return found

    def _dated(self, started: Sequence[Pod], job: Json | None) -> list[Pod]:
        """Return the pods of which something says when they ended, if only their Job does."""
        if not any(pod.is_undated for pod in started):
            return list(started)
        end = end_of_job(job)
        for pod in started:
            if pod.is_undated and end > pod.started:
                pod.ended = end
                self.rows["by_job"].append(pod.row)
        self.rows["undated"] += [pod.row for pod in started if pod.is_undated]
        return [pod for pod in started if not pod.is_undated]

    def _of_pods(
        self, name: str, members: Sequence[Pod], ran: Sequence[Pod], job: Json | None, kind: str, *, is_main: bool
    ) -> EngineJob:
        """Return the job of those pods of a group that ran on one type; the main type is that of most of its time."""
        spans = [self._span(pod) for pod in ran]
        self.rows["backwards"] += [pod.row for pod in ran if pod.ended < pod.started]
        run = one_run(spans)
        if run.is_uneven:
            self.rows["uneven"].append(members[0].row)
        labels = {} if job is None else mapping(job, "metadata", "labels")
        queue = first_label(labels, QUEUE_LABELS) or next((pod.queue for pod in members if pod.queue), "")
        status = status_of(job, {pod.phase for pod in members})
        machines = tuple(dict.fromkeys(pod.machine for pod in ran if pod.machine and pod.phase != "Failed"))
        machines = machines or tuple(dict.fromkeys(pod.machine for pod in ran if pod.machine))
        submitted = [pod.created for pod in members] + (
            [] if job is None else [moment(at(job, "metadata", "creationTimestamp"))]
        )
        failures = sum(pod.phase == "Failed" for pod in members)
        tenant = name.split("/", 1)[0] if self.tenant == "namespace" else queue
        self.held += [
            HeldRow(row=pod.row, type=kind, tenant=tenant, hours=(end - start) * width / HOUR_S)
            for pod, (start, end, width) in zip(ran, spans, strict=True)
        ]
        return EngineJob(
            row=members[0].row,
            job_id=name if is_main else f"{name}@{type_name(kind)}",
            submitted=min((value for value in submitted if not isnan(value)), default=run.started),
            started=run.started,
            ended=nan if any(isnan(pod.ended) for pod in ran) else run.ended,
            ran_s=run.ran_s,
            width=int(run.width),
            tenant=tenant,
            status=status,
            retries=0 if not is_main else failures if status == "finished" else max(0, failures - 1),
            ran_on=kind,
            asked_for=next((pod.asked_for for pod in ran if pod.asked_for), ""),
            machines=machines,
            pauses=run.pauses,
        )

    def _span(self, pod: Pod) -> tuple[float, float, float]:
        """Return from when to when a pod held its accelerators, and how many."""
        end = self.listed_at[self.source.file[pod.row]] if isnan(pod.ended) else pod.ended
        return pod.started, max(end, pod.started), pod.width

    def _by_type(self, ran: Sequence[Pod]) -> list[tuple[str, list[Pod]]]:
        """Return pods by the accelerator type that they held, "" where none is named; most accelerator-time first."""
        by_type: dict[str, list[Pod]] = {}
        for pod in ran:
            resource = max(pod.held, key=pod.held.__getitem__)
            by_type.setdefault(device_type(self.labels.get(pod.machine, {}), resource), []).append(pod)
        if len(by_type) == 1:
            return list(by_type.items())
        self.rows["types"].append(ran[0].row)
        spans = {kind: map(self._span, pods) for kind, pods in by_type.items()}
        held_s = {kind: sum((end - start) * width for start, end, width in each) for kind, each in spans.items()}
        return sorted(by_type.items(), key=lambda item: (-held_s[item[0]], item[0]))

    def _jobs_alone(self, jobs: Sequence[int]) -> list[EngineJob]:
        """Return Jobs without pods, by their template and their own times."""
        found = []
        for m in jobs:
            item = self.source.items[m]
            held = accelerators(requested(template(item)), self.resources)
            started, ended = moment(at(item, "status", "startTime")), end_of_job(item)
            if not held:
                if not requested(template(item)):
                    self.rows["plain"].append(m)
                continue
            if isnan(started):
                self.rows["never"].append(m)
                continue
            if isnan(ended) and has_ended(item):
                self.rows["undated"].append(m)
                continue
            end = self.listed_at[self.source.file[m]] if isnan(ended) else ended
            created = moment(at(item, "metadata", "creationTimestamp"))
            parallel = count(at(item, "spec", "parallelism", default=1))
            queue = first_label(mapping(item, "metadata", "labels"), QUEUE_LABELS)
            self.rows["gone"].append(m)
            job = EngineJob(
                row=m,
                job_id=_name(item),
                submitted=started if isnan(created) else created,
                started=started,
                ended=ended,
                ran_s=max(0.0, end - started),
                width=sum(held.values()) * min(parallel, count(at(item, "spec", "completions")) or parallel),
                tenant=texts(item, "metadata", "namespace") if self.tenant == "namespace" else queue,
                status=status_of(item, set()),
                ran_on=device_type({}, max(held, key=held.__getitem__)),
                asked_for=asked_type(template(item)),
            )
            found.append(job)
            self.held.append(held_row(job))
        return found

    def _say_of_pods(self, pods: Sequence[Pod]) -> None:
        ran = [pod for pod in pods if pod.width and not isnan(pod.started)]
        self.rows["services"] = [pod.row for pod in ran if pod.owner in SERVICES]
        self.rows["sliced"] = [
            pod.row
            for pod in pods
            if pod.width and (any(map(is_slice, pod.held)) or is_cut(self.labels.get(pod.machine, {})))
        ]
