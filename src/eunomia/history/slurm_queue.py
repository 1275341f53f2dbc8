"""Reads the queue of the Slurm that this machine's commands speak to, and how much of their limits jobs used before."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

from eunomia.backends.engines.engine import EngineAway, EngineRefused
from eunomia.backends.slurm.commands import records, setting
from eunomia.backends.slurm.engine import TAIL_BYTES, Slurm
from eunomia.backends.slurm.queue import QueuedJob, read_queue
from eunomia.history.queue_forecast import EarlierJob, QueueJob, QueueSnapshot
from eunomia.inputs.problems import refused
from eunomia.inputs.slurm_values import expand_hosts, seconds

SACCT = (
    "sacct",
    "--noheader",
    "--parsable2",
    "--allocations",
    "--allusers",
    "--starttime=now-14days",
    "--state=CD,F,TO,CA",
    "--format=User,ElapsedRaw,TimelimitRaw",
)


def slurm_queue(slurm: Slurm | None = None) -> QueueSnapshot:
    """Return Slurm's queue. Raises InvalidInput if Slurm does not answer."""
    slurm = slurm or Slurm()
    try:
        nodes = slurm.nodes()
        kinds = {node.name: next(iter(node.accelerators)) for node in nodes}
        jobs = read_queue(records(slurm.call("scontrol", "show", "job")), sorted(set(kinds.values())))
        shares = _shares(slurm)
    except (EngineAway, EngineRefused) as error:
        raise refused("Slurm", "queue", "", str(error), "run this where squeue works") from error
    capacity = Counter[str]()
    for node in nodes:
        if not node.away:
            capacity.update(node.accelerators)
    found = [one for job in jobs if job.accelerators and (job.waits or job.runs) for one in _jobs(job, kinds)]
    earlier = [one for job in jobs if (one := _earlier(job, kinds)) is not None]
    return QueueSnapshot(capacity=dict(capacity), jobs=found, shares=shares, earlier=earlier, source="Slurm's queue")


def _earlier(job: QueuedJob, kinds: dict[str, str]) -> EarlierJob | None:
    """Return when a job started and ended, so far; None for arrays, held jobs, and those that never ran."""
    one, *others = _jobs(job, kinds)
    started, ended = (math.inf, math.inf) if job.waits else (job.started, math.inf if job.runs else job.ended)
    if others or one.held or not one.size or not one.submitted or (not started < ended and not job.waits):
        return None
    return EarlierJob(job=one, started=started, ended=ended)


def _jobs(job: QueuedJob, kinds: dict[str, str]) -> list[QueueJob]:
    """Return a job, or each of the waiting tasks of an array."""
    on = kinds.get(next(iter(expand_hosts(job.node_list)), ""), "")
    types = job.types if job.waits else ((on,) if on else job.types[:1])
    held = job.reason if job.is_held or job.reason.startswith("Dependency") else ""
    one = QueueJob(
        job_id=job.number,
        user=job.user,
        size=job.accelerators,
        types=types,
        limit_s=job.limit_s,
        elapsed_s=job.elapsed_s,
        runs=job.runs,
        held=held,
        priority=job.priority,
        submitted=0.0 if math.isnan(job.submitted) else job.submitted,
    )
    return [one] * job.tasks


def _shares(slurm: Slurm) -> dict[str, list[float]]:
    """Return which share of their limits the jobs of each user used, from accounting or the completion log."""
    config = slurm.config()
    found: defaultdict[str, list[float]] = defaultdict(list)
    if setting(config, "AccountingStorageType").endswith("slurmdbd"):
        for line in slurm.call(*SACCT).splitlines():
            user, elapsed, limit = line.split("|")
            if elapsed.isdigit() and limit.isdigit() and int(limit) > 0:
                found[user].append(min(int(elapsed) / (60.0 * int(limit)), 1.0))
    elif setting(config, "JobCompType") == "jobcomp/filetxt":
        for line in _tail(Path(setting(config, "JobCompLoc"))):
            fields = dict(word.partition("=")[::2] for word in line.split(" ") if "=" in word)
            share = _share(fields)
            if share is not None:
                found[fields["UserId"].partition("(")[0]].append(share)
    return dict(found)


def _share(fields: dict[str, str]) -> float | None:
    """Return the share of its limit that a job of the completion log used; None if it does not say."""
    limit = fields.get("TimeLimit", "")
    limit_s = 60.0 * int(limit) if limit.isdigit() else seconds(limit)
    try:
        begun, ended = (datetime.fromisoformat(fields[name]) for name in ("StartTime", "EndTime"))
    except (KeyError, ValueError):
        return None
    run_s = (ended - begun).total_seconds()
    return min(run_s / limit_s, 1.0) if limit_s and run_s > 0 and "UserId" in fields else None


def _tail(path: Path) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
