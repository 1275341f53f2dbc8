"""Jobs and placement groups of Ray, as its state API and its job API list them in JSON.

A placement group is a gang: it reserves its accelerators from its creation until it is removed, which Ray does not log;
the end of the job that created it counts. A job that reserves accelerators for its entry point, in its metadata or in a
field of its own, is a job too. Reference: Ray, ray.util.state PlacementGroupState, ray.job_submission JobDetails.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.traces.engine_objects import (
    EngineJob,
    Json,
    Objects,
    at,
    build_history,
    listed,
    load_objects,
    mapping,
    moment,
    texts,
)
from eunomia.traces.import_findings import History, ImportFindings
from eunomia.traces.table import Trace

COMMAND = (
    "ray list jobs --detail --format json --limit 10000; ray list placement-groups --detail --format json --limit 10000"
)
STATUS_BY_WORD = {"SUCCEEDED": "finished", "FAILED": "failed", "STOPPED": "cancelled"}
TYPE_RESOURCE = "accelerator_type:"
UNREAD = ("entry points", "runtime environments", "metadata but for the tenant")
PARTLY = "of the times and resources more than submission, duration and accelerators"


def detects(line: Sequence[str]) -> bool:
    """Return False: a list of JSON may be anything."""
    return False


def read(path: Path, *, tenant: str = "user") -> Trace:
    """Return the placement groups and jobs with accelerators; `tenant` is a key of the metadata of jobs.

    Raises InvalidInput for a file that is not of Ray, or without such jobs.
    """
    return read_history([path], tenant=tenant).trace


def read_history(paths: Sequence[Path], *, tenant: str = "user") -> History:
    """Return the jobs of lists of jobs and of placement groups; arguments and errors are those of `read`."""
    source = load_objects(paths, COMMAND)
    source.names = [texts(item, "placement_group_id") or _job_name(item) for item in source.items]
    findings = ImportFindings(source=source)
    groups = [m for m, item in enumerate(source.items) if texts(item, "placement_group_id")]
    jobs = [m for m, item in enumerate(source.items) if "placement_group_id" not in item and _job_name(item)]
    if not groups and not jobs:
        rule = "there is no job and no placement group of Ray here"
        raise refused(source.name, None, None, rule, f"write the files with: {COMMAND}")
    return _build(source, groups, jobs, tenant, findings)


def _job_name(item: Json) -> str:
    return texts(item, "submission_id") or texts(item, "job_id")


def _build(
    source: Objects, groups: Sequence[int], jobs: Sequence[int], tenant: str, findings: ImportFindings
) -> History:
    items = source.items
    now = max((value for m in jobs for value in _job_times(items[m]) if not isnan(value)), default=nan)
    by_id = {texts(items[m], "job_id"): m for m in jobs if texts(items[m], "job_id")}
    found: list[EngineJob] = []
    sorted_out: dict[str, list[int]] = {"plain": [], "lost": [], "late": [], "never": []}
    creators: set[int] = set()
    for m in groups:
        job = _of_group(items[m], m)
        creator = by_id.get(texts(items[m], "creator_job_id"))
        if job.width == 0:
            sorted_out["plain"].append(m)
            continue
        if creator is not None:
            creators.add(creator)
        if creator is None or isnan(_start(job, items[creator])):
            sorted_out["lost"].append(m)
        elif texts(items[m], "state") == "PENDING":
            sorted_out["never"].append(m)
        else:
            _complete(job, items[creator], now, tenant)
            sorted_out["late"].append(m)
            found.append(job)
    for m in jobs:
        alone = _of_job(items[m], m, now, tenant)
        if alone.width and not isnan(alone.started):
            found.append(alone)
        elif alone.width:
            sorted_out["never"].append(m)
        elif m not in creators:
            sorted_out["plain"].append(m)
    rows = {name: np.array(places, dtype=np.int64) for name, places in sorted_out.items()}
    findings.add(
        "left out", "jobs and placement groups reserve no accelerator; Ray does not list what tasks and actors held",
        rows["plain"],
    )  # fmt: skip
    findings.add("left out", "placement groups belong to a job that is not listed, or has no times", rows["lost"])
    findings.add("left out", "jobs and placement groups never started", rows["never"])
    findings.add(
        "assumed", "placement groups are taken to last until their job ended, as Ray does not log when they end",
        rows["late"],
    )  # fmt: skip
    if not found:
        rule = "no job here reserved accelerators in a placement group or for its entry point"
        fix = f"list jobs and placement groups of one cluster, and name both files: {COMMAND}"
        raise refused(source.name, None, None, rule, fix)
    return build_history(source.name, found, findings, unread=UNREAD, partly=PARTLY)


def _job_times(item: Json) -> tuple[float, float]:
    return moment(at(item, "start_time")), moment(at(item, "end_time"))


def _of_group(item: Json, row: int) -> EngineJob:
    """Return a placement group: its width, its type, and when it was asked for and created."""
    width, kinds, nodes = 0.0, list[str](), list[str]()
    for bundle in listed(item, "bundles"):
        resources = mapping(bundle, "unit_resources")
        held = _number(resources.get("GPU")) if isinstance(resources, dict) else 0.0
        width += held
        kinds += [str(name).removeprefix(TYPE_RESOURCE) for name in resources if str(name).startswith(TYPE_RESOURCE)]
        if held and texts(bundle, "node_id"):
            nodes.append(texts(bundle, "node_id"))
    asked = _number(at(item, "stats", "creation_request_received_ns")) / 1e9
    latency_s = _number(at(item, "stats", "end_to_end_creation_latency_us")) / 1e6
    return EngineJob(
        row=row,
        job_id=texts(item, "placement_group_id"),
        submitted=asked or nan,
        started=asked + latency_s if asked else nan,
        ended=nan,
        ran_s=0.0,
        width=int(np.ceil(width)),  # a part of an accelerator becomes a whole one
        tenant="",
        status="",
        asked_for=kinds[0] if kinds else "",
        machines=tuple(dict.fromkeys(nodes)),
    )


def _start(group: EngineJob, job: Json) -> float:
    return group.started if not isnan(group.started) else _job_times(job)[0]


def _complete(group: EngineJob, job: Json, now: float, tenant: str) -> None:
    """Fill in what the job that created a placement group says of it."""
    group.started = _start(group, job)
    group.submitted = group.started if isnan(group.submitted) else group.submitted
    group.ended = _job_times(job)[1]
    end = max(now, group.started) if isnan(group.ended) else group.ended
    group.ran_s = max(0.0, end - group.started)
    group.status = STATUS_BY_WORD.get(texts(job, "status"), "")
    group.tenant = texts(job, "metadata", tenant)


def _of_job(item: Json, row: int, now: float, tenant: str) -> EngineJob:
    """Return a job by the accelerators of its entry point."""
    started, ended = _job_times(item)
    held = _number(at(item, "entrypoint_num_gpus", default=at(item, "metadata", "entrypoint_num_gpus")))
    end = max(now, started) if isnan(ended) else ended
    return EngineJob(
        row=row,
        job_id=_job_name(item),
        submitted=started,
        started=started if texts(item, "status") != "PENDING" else nan,
        ended=ended,
        ran_s=0.0 if isnan(started) else max(0.0, end - started),
        width=int(np.ceil(held)),
        tenant=texts(item, "metadata", tenant),
        status=STATUS_BY_WORD.get(texts(item, "status"), ""),
    )


def _number(value: object) -> float:
    """Return a number, which may be spelled as text; 0 for anything else."""
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if 0 < number < 1e30 else 0.0
