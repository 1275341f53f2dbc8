"""Lists of kubectl with gangs, sidecars, slices, retries, and pods of which the end is not written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.traces.generated.truth import BEGAN, HOUR_S, TYPES, Truth, chance

from eunomia.traces import kubernetes
from eunomia.traces.import_findings import History

Json = dict[str, Any]
NAMESPACES = ("ann", "bo", "cy")
PRODUCTS = {"v100": "Tesla-V100-SXM2-16GB", "t4": "Tesla-T4", "h100": "NVIDIA-H100-80GB-HBM3"}
LISTED = BEGAN + 400_000  # latest time of the last list


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def container(name: str, number: int, rng: Random, **more: object) -> Json:
    asked = {name: rng.choice((number, str(number)))}
    return {"resources": rng.choice(({"limits": asked}, {"limits": asked, "requests": asked})), **more}


def containers(rng: Random, width: int, gpu: str = "nvidia.com/gpu") -> Json:
    """Return a specification of a pod that holds so many accelerators, in one of the ways in which it may."""
    way = rng.randrange(4)
    if way == 0 and width > 1:
        return {"containers": [container(gpu, 1, rng), container(gpu, width - 1, rng)]}
    if way == 1 and width > 1:  # a sidecar beside the container
        sidecar = container(gpu, 1, rng, restartPolicy="Always")
        return {"containers": [container(gpu, width - 1, rng)], "initContainers": [sidecar]}
    if way == 2:  # an init container that holds more
        return {"containers": [container(gpu, 1, rng)], "initContainers": [container(gpu, width, rng)]}
    return {"containers": [container(gpu, width, rng), {"name": "no-resources"}]}


class Lists:
    """Two lists of one cluster, of which the second was made later."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.truth = Truth()
        self.first: list[Json] = []
        self.second: list[Json] = []
        for kind, product in PRODUCTS.items():
            meta = {"name": f"n-{kind}", "uid": f"n-{kind}", "labels": {"nvidia.com/gpu.product": product}}
            heartbeat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": stamp(LISTED)}]
            self.second.append({"kind": "Node", "metadata": meta, "status": {"conditions": heartbeat}})

    def pod(self, name: str, tenant: str, kind: str, spec: Json, created: float, start: float | None, end: float | None,
            *, owner: str = "", phase: str = "Succeeded", is_dated: bool = True) -> None:  # fmt: skip
        """Add a pod, and sometimes an earlier state of it to the first list."""
        meta: Json = {"name": name, "namespace": tenant, "uid": f"{tenant}/{name}", "creationTimestamp": stamp(created)}
        if owner:
            meta["ownerReferences"] = [{"kind": "Job", "name": owner}]
        status: Json = {"phase": "Pending" if start is None else phase if end else "Running"}
        if start is not None:
            status["startTime"] = stamp(start)
        running = {**status, "phase": "Running"}
        if end and is_dated:
            stopped = {"terminated": {"startedAt": stamp(start or 0), "finishedAt": stamp(end)}}
            status["containerStatuses"] = [{"state": stopped}]
            if end != start and chance(self.rng, 0.2):  # containers are forgotten, the condition is not
                since = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(end)}
                status |= {"containerStatuses": [], "conditions": [since]}
        elif end and chance(self.rng, 0.5):
            status["containerStatuses"] = [{"state": {"terminated": {"finishedAt": "1970-01-01T00:00:00Z"}}}]
        item = {"kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": f"n-{kind}"}, "status": status}
        self.second.append(item)
        if start is not None and end and chance(self.rng, 0.3):
            self.first.append({**item, "status": running})

    def job(self, k: int) -> None:
        """Add one job of a random kind."""
        rng, truth = self.rng, self.truth
        tenant, kind, name = rng.choice(NAMESPACES), rng.choice(TYPES), f"j{k}"
        created = BEGAN + rng.randrange(200_000)
        start = created + rng.randrange(5000)
        end = start + rng.choice((0, 1, 60, rng.randrange(1, 90_000)))
        width, what = rng.choice((1, 2, 4, 8)), rng.randrange(10)
        hours = width * (end - start) / HOUR_S
        key = f"{tenant}/{name}"
        if what == 0:  # never ran, or asks for what is not read
            self.pod(name, tenant, kind, containers(rng, width), created, None, None)
            other = {"containers": [container(rng.choice(("google.com/tpu", "habana.ai/gaudi")), 8, rng)]}
            self.pod(f"{name}-o", tenant, kind, other, created, start, end)
        elif what == 1:  # ended, and nothing says when
            self.pod(name, tenant, kind, containers(rng, width), created, start, end, is_dated=False,
                     phase=rng.choice(("Succeeded", "Failed")))  # fmt: skip
        elif what == 2:  # still runs
            self.pod(name, tenant, kind, containers(rng, width), created, start, None)
            truth.add(kind, tenant, width * (LISTED - start) / HOUR_S)
            truth.wait_s[key] = start - created
        elif what == 3:  # failed, and was started again
            again = end + rng.randrange(10, 1000)
            self.pod(f"{name}-0", tenant, kind, containers(rng, width), created, start, end, owner=name, phase="Failed")
            self.pod(f"{name}-1", tenant, kind, containers(rng, width), end, again, again + 600, owner=name)
            truth.add(kind, tenant, hours + width * 600 / HOUR_S)
            truth.wait_s[key] = start - created
        elif what in (4, 5):  # a gang whose pods do not start and end together, on one type or on two
            kinds = [kind, kind] if what == 4 else [kind, rng.choice(TYPES)]
            lasts = 4000 + rng.randrange(9000)
            spans = [(start + rng.randrange(60), start + lasts + rng.randrange(2000)) for _ in kinds]
            for m, ((first, last), own) in enumerate(zip(spans, kinds, strict=True)):
                self.pod(f"{name}-{m}", tenant, own, containers(rng, width), created, first, last, owner=name)
            parts = [width * (last - first) / HOUR_S for first, last in spans]
            longest = kinds[0] if parts[0] >= parts[1] else kinds[1]
            for own, part in zip(kinds, parts, strict=True):
                truth.add(own, tenant, part)
            for own in set(kinds):
                first = min(first for (first, _), one in zip(spans, kinds, strict=True) if one == own)
                truth.wait_s[key if own == longest else f"{key}@{own}"] = first - created
        elif what == 6:  # a Job whose pods are gone, which names no type
            template = {"spec": {"containers": [container("nvidia.com/gpu", width, rng)],
                                 "nodeSelector": {"nvidia.com/gpu.product": PRODUCTS[kind]}}}  # fmt: skip
            meta = {"name": name, "namespace": tenant, "uid": key, "creationTimestamp": stamp(created)}
            done = {"type": "Complete", "status": "True", "lastTransitionTime": stamp(end)}
            status = {"startTime": stamp(start), "conditions": [done]}
            self.second.append({"kind": "Job", "metadata": meta, "status": status,
                                "spec": {"parallelism": 3, "completions": 2, "template": template}})  # fmt: skip
            truth.add("gpu", tenant, 2 * hours, written=0.0)
            truth.add(kind, tenant, 0.0, written=2 * width * max(end - start, 1) / HOUR_S)
            truth.wait_s[key] = start - created
        else:
            is_slice = chance(rng, 0.3)
            gpu = "nvidia.com/mig-1g.5gb" if is_slice else "nvidia.com/gpu"
            self.pod(name, tenant, kind, containers(rng, width, gpu), created, start, end)
            kind = f"{PRODUCTS[kind]}-MIG-1g.5gb".lower() if is_slice else kind
            truth.add(kind, tenant, hours, written=width * max(end - start, 1) / HOUR_S)
            truth.wait_s[key] = start - created


def generate(rng: Random, folder: Path) -> tuple[History, Truth]:
    """Return the history that is read of two lists, in either order, and what they hold."""
    lists = Lists(rng)
    for k in range(rng.randrange(3, 30)):
        lists.job(k)
    lists.pod("always", "ann", "v100", containers(rng, 1), BEGAN, BEGAN, BEGAN + 60)
    lists.truth.add("v100", "ann", 60 / HOUR_S)
    paths = [folder / "first.json", folder / "second.json"]
    for path, items in zip(paths, (lists.first or lists.second[:1], lists.second), strict=True):
        rng.shuffle(items)
        path.write_text(json.dumps({"kind": "List", "items": items}))
    rng.shuffle(paths)
    return kubernetes.read_history(paths), lists.truth
