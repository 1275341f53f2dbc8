"""Lists of Ray: entry points and placement groups with parts of accelerators, tasks, actors, and lists that overlap."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from tests.traces.generated.truth import BEGAN, HOUR_S, TENANTS, TYPES, Truth, chance

from eunomia.traces import ray
from eunomia.traces.import_findings import History

Json = dict[str, Any]
LISTED = BEGAN + 400_000


def generate(rng: Random, folder: Path) -> tuple[History, Truth]:
    """Return the history that is read of lists of jobs, placement groups and tasks, and what they hold."""
    truth = Truth()
    earlier, jobs, groups, tasks = list[Json](), list[Json](), list[Json](), list[Json]()
    for k in range(rng.randrange(2, 25)):
        name, tenant = f"{k:02d}000000", rng.choice(TENANTS)
        start = BEGAN + rng.randrange(200_000)
        end = rng.choice((start + rng.randrange(60, 90_000), None))
        until = LISTED if end is None else end
        status = "RUNNING" if end is None else rng.choice(("SUCCEEDED", "FAILED", "STOPPED"))
        item = {"job_id": name, "submission_id": f"raysubmit_{k}", "status": status, "start_time": 1000 * start,
                "end_time": None if end is None else 1000 * end, "metadata": {"user": tenant}}  # fmt: skip
        what = rng.randrange(6)
        if what == 0:
            width = rng.choice((0.5, 1, 4))
            item["entrypoint_num_gpus"] = width
            hours = (until - start) / HOUR_S
            truth.add("gpu", tenant, width * hours, written=ceil(width) * hours)
            truth.wait_s[f"raysubmit_{k}"] = 0
        elif what == 1:
            kind, sizes = rng.choice(TYPES), [rng.choice((0.5, 1, 2)) for _ in range(rng.randrange(1, 4))]
            asked, took = start + 5, rng.randrange(50)
            bundles = [
                {"unit_resources": {"GPU": size, f"accelerator_type:{kind}": 0.001}, "node_id": "n"} for size in sizes
            ]
            stats = {"creation_request_received_ns": asked * 10**9, "end_to_end_creation_latency_us": took * 10**6}
            groups.append({"placement_group_id": f"pg{k}", "creator_job_id": name, "bundles": bundles, "stats": stats,
                           "state": rng.choice(("REMOVED", "CREATED"))})  # fmt: skip
            hours = (until - asked - took) / HOUR_S
            truth.add(kind, tenant, sum(sizes) * hours, written=ceil(sum(sizes)) * hours)
            truth.wait_s[f"pg{k}"] = took
        elif what == 2:
            width = rng.choice((1, 2))
            for m in range(rng.randrange(1, 5)):
                first = start + rng.randrange(50)
                last = first + rng.randrange(1000, 4000)
                tasks.append({"task_id": f"t{k}-{m}", "attempt_number": 0, "job_id": name, "type": "NORMAL_TASK",
                              "required_resources": {"GPU": width, "CPU": 1}, "placement_group_id": None,
                              "start_time_ms": 1000 * first, "end_time_ms": 1000 * last})  # fmt: skip
                truth.add("gpu", tenant, width * (last - first) / HOUR_S)
        elif what == 3:
            item |= {"status": "SUCCEEDED", "end_time": 0, "entrypoint_num_gpus": 2}  # ended, and nothing says when
        elif what == 4:
            item |= {"status": "PENDING", "start_time": None, "end_time": None, "entrypoint_num_gpus": 2}
        jobs.append(item)
        if end is not None and chance(rng, 0.3):
            earlier.append({**item, "status": "RUNNING", "end_time": None})
    jobs.append({"job_id": "ff", "status": "SUCCEEDED", "start_time": 1000 * BEGAN, "end_time": 1000 * LISTED,
                 "metadata": {"user": "ann"}, "entrypoint_num_gpus": 1})  # fmt: skip
    truth.add("gpu", "ann", (LISTED - BEGAN) / HOUR_S)
    paths = []
    for name, items in (("earlier", earlier), ("jobs", jobs), ("groups", groups), ("tasks", tasks)):
        if items:
            rng.shuffle(items)
            paths.append(folder / f"{name}.json")
            paths[-1].write_text(json.dumps({"result": {"result": items}} if chance(rng, 0.5) else items))
    rng.shuffle(paths)
    return ray.read_history(paths), truth
