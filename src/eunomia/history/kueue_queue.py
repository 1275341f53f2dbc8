"""Reads Kueue's queue from its objects: what `kubectl get clusterqueues,localqueues,workloads -A -o json` prints.

The objects are those of `kueue.x-k8s.io/v1beta1` and `v1beta2`: a Workload's pod sets say what it asks for, its
conditions whether it has its quota, its admission how many pods got it, and the flavors of a ClusterQueue stand for
accelerator types. Queues with a stop policy admit nothing. Borrowing within a cohort is not modelled.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from eunomia.history.queue_forecast import QueueJob, QueueSnapshot
from eunomia.inputs.json_text import parse_json
from eunomia.inputs.problems import refused

SUFFIXES = {"m": Decimal("0.001"), "k": Decimal(1000), "M": Decimal(1_000_000)}  # of the quantities of accelerators
ACCELERATORS = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "gpu.intel.com/i915", "habana.ai/gaudi")
SPENT = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")  # v1beta2; v1beta1, sic


def kueue_queue(path: Path, now: float | None = None) -> QueueSnapshot:
    """Return the queue of a dump. Raises InvalidInput if it cannot be read or has no ClusterQueue.

    `now`: wall-clock time of the dump; left out, the latest time that an object has.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"), unique=False)
        items = data.get("items", [data])
        kinds = [item["kind"] for item in items]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "write it with kubectl get clusterqueues,localqueues,workloads -A -o json"
        raise refused(str(path), "kueue", "", f"it is no list of Kueue's objects ({error})", fix) from error
    by_kind = {kind: [item for item in items if item["kind"] == kind] for kind in set(kinds)}
    if "ClusterQueue" not in by_kind:
        rule, fix = "it has no ClusterQueue, so the quota is not known", "add clusterqueues to the kubectl command"
        raise refused(str(path), "kueue", "", rule, fix)
    workloads = by_kind.get("Workload", [])
    at = max((_latest(item) for item in workloads), default=0.0) if now is None else now
    stopped = {one["metadata"]["name"] for one in by_kind["ClusterQueue"] if _is_stopped(one)}
    queues: dict[tuple[str, str], tuple[str, bool]] = {}
    for one in by_kind.get("LocalQueue", []):
        cluster_queue = one["spec"]["clusterQueue"]
        is_stopped = _is_stopped(one) or cluster_queue in stopped
        queues[one["metadata"].get("namespace", ""), one["metadata"]["name"]] = (cluster_queue, is_stopped)
    capacity = Counter[str]()
    try:
        for queue in by_kind["ClusterQueue"]:
            for flavor, count in _quota(queue).items():
                capacity[f"{queue['metadata']['name']}/{flavor}"] += count
        jobs = [job for item in workloads if (job := _job(item, queues, capacity, at)) is not None]
    except InvalidOperation as error:
        fix = "dump the objects with kubectl, which writes quantities as Kubernetes does"
        raise refused(str(path), "kueue", "", "a number of accelerators is no quantity of Kubernetes", fix) from error
    return QueueSnapshot(capacity=dict(capacity), jobs=jobs, source=str(path))


def _is_stopped(queue: dict[str, Any]) -> bool:
    """Whether a LocalQueue or ClusterQueue makes no new reservations."""
    return queue["spec"].get("stopPolicy", "None") in ("Hold", "HoldAndDrain")


def _whole(quantity: object) -> int:
    """Return a quantity of Kubernetes as a whole number: it writes 1000 as 1k. Raises InvalidOperation."""
    text = str(quantity)
    scale = SUFFIXES.get(text[-1:], Decimal(1))
    return int(Decimal(text[:-1] if text[-1:] in SUFFIXES else text) * scale)


def _quota(queue: dict[str, Any]) -> dict[str, int]:
    """Return the nominal quota of accelerators by flavor."""
    found = Counter[str]()
    for group in queue["spec"].get("resourceGroups", []):
        for flavor in group.get("flavors", []):
            for resource in flavor.get("resources", []):
                if resource["name"] in ACCELERATORS:
                    found[flavor["name"]] += _whole(resource["nominalQuota"])
    return dict(found)


def _job(
    item: dict[str, Any], queues: dict[tuple[str, str], tuple[str, bool]], capacity: Counter[str], at: float
) -> QueueJob | None:
    """Return a workload that waits or runs; None for one that is over or asks for no accelerators."""
    spec, status, metadata = item["spec"], item.get("status", {}), item["metadata"]
    true = {one["type"]: one for one in status.get("conditions", []) if one.get("status") == "True"}
    admission = status.get("admission") or {}
    counts = _counts(status, admission)
    size = sum(_pods(one, counts) for one in spec.get("podSets", []))
    if "Finished" in true or size == 0:
        return None
    namespace = metadata.get("namespace", "")
    queue, is_stopped = queues.get((namespace, spec.get("queueName", "")), ("", False))
    runs = "QuotaReserved" in true or "Admitted" in true
    types = tuple(name for name in capacity if name.startswith(f"{queue}/"))
    elapsed = 0.0
    if runs:
        flavors = {
            flavor
            for one in admission.get("podSetAssignments", [])
            for resource, flavor in one.get("flavors", {}).items()
            if resource in ACCELERATORS
        }
        types = tuple(f"{admission.get('clusterQueue', queue)}/{flavor}" for flavor in sorted(flavors))[:1]
        elapsed = max(
            at - _time(true.get("Admitted", true.get("QuotaReserved", {})).get("lastTransitionTime", "")), 0.0
        )
    held = "it is not active" if spec.get("active") is False else ""
    if not queue and not runs:
        held = f"there is no LocalQueue {spec.get('queueName', '')!r} in namespace {namespace!r}"
    elif is_stopped and not runs:
        held = f"LocalQueue {spec.get('queueName', '')!r} or its ClusterQueue {queue!r} is stopped"
    limit = spec.get("maximumExecutionTimeSeconds")
    spent = next((status[key] for key in SPENT if status.get(key)), 0)  # while it was admitted before; it counts
    return QueueJob(
        job_id=f"{namespace}/{metadata['name']}",
        user=namespace,
        size=size,
        types=types,
        limit_s=math.inf if limit is None else max(float(limit) - spent, 0.0),
        elapsed_s=elapsed,
        runs=runs,
        held=held,
        priority=float(spec.get("priority") or 0),
        submitted=_time(metadata.get("creationTimestamp", "")),
    )


def _counts(status: dict[str, Any], admission: dict[str, Any]) -> dict[str, int]:
    """Return the pods that hold quota, by pod set: as many as were admitted, less those that need it no more."""
    counts = {one["name"]: int(one["count"]) for one in admission.get("podSetAssignments", []) if "count" in one}
    for one in status.get("reclaimablePods", []):
        if one["name"] in counts:
            counts[one["name"]] = max(counts[one["name"]] - int(one["count"]), 0)
    return counts


def _pods(pods: dict[str, Any], counts: dict[str, int]) -> int:
    """Return the accelerators of a pod set; `counts`: of pods, where they differ from what it asks for."""
    containers = pods.get("template", {}).get("spec", {}).get("containers", [])
    each = 0
    for container in containers:
        resources = container.get("resources", {})
        asked = {**resources.get("limits", {}), **resources.get("requests", {})}
        each += sum(_whole(asked[name]) for name in ACCELERATORS if name in asked)
    return each * counts.get(pods.get("name", "main"), int(pods.get("count", 1)))


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _latest(item: dict[str, Any]) -> float:
    times = [item["metadata"].get("creationTimestamp", "")]
    times += [one.get("lastTransitionTime", "") for one in item.get("status", {}).get("conditions", [])]
    return max(_time(text) for text in times)
