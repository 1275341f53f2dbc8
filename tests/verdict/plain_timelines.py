"""What happened to each job, read from the lines of a record and of jobs.csv with nothing of the package."""

from __future__ import annotations

import csv
import gzip
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Span = tuple[float, float]


@dataclass(kw_only=True)
class Lease:
    """A job on some accelerators of one type."""

    begin: float
    type: str
    seats: tuple[int, ...]
    epoch: int
    end: float = math.nan


@dataclass(kw_only=True)
class Timeline:
    """One job: when it was present, and where it ran."""

    job_id: str
    submitted: float
    size: int
    job_type: str
    steps: float
    tenant: str
    app: str
    weight: float
    deadline: float
    retries: int
    leases: list[Lease] = field(default_factory=list)
    preemptions: int = 0
    failures: int = 0
    ended: float = math.nan
    status: str = "unfinished"
    by_tuner: bool = False

    @property
    def running(self) -> Lease | None:
        """The lease that has not ended."""
        return self.leases[-1] if self.leases and math.isnan(self.leases[-1].end) else None

    def release(self, at: float) -> None:
        """End the lease, if there is one."""
        if (lease := self.running) is not None:
            lease.end = at

    def close(self, at: float, status: str) -> None:
        """End the job."""
        self.release(at)
        self.ended, self.status = at, status

    def ran_s(self, type: str) -> float:
        """Return the seconds on accelerators of a type."""
        return sum(lease.end - lease.begin for lease in self.leases if lease.type == type)


@dataclass(kw_only=True)
class History:
    """A whole run."""

    jobs: dict[str, Timeline]  # in order of submission
    end_s: float  # last event of a job
    outages: list[tuple[int, float, float]]  # machine, since, until


def number(value: Any) -> float:
    """Return a number of a record, which writes those that are not finite as text."""
    return float(value["number"]) if isinstance(value, dict) else float(value)


def read_history(record: Path, type_of: list[str]) -> History:
    """Read a record; `type_of` (accelerator) is the cluster."""
    jobs: dict[str, Timeline] = {}
    away: dict[int, float] = {}
    outages: list[tuple[int, float, float]] = []
    end_s = 0.0
    with gzip.open(record, "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            one = json.loads(line)
            at = one["at"]
            for event in one.get("events", ()):
                if _event(event, at, jobs):
                    end_s = at
                if event["is"] == "NodeLost":
                    away.setdefault(event["node"], at)
                if event["is"] == "NodeJoined" and event["node"] in away:
                    outages.append((event["node"], away.pop(event["node"]), at))
            if "decision" in one:
                _decision(one["decision"], at, jobs, type_of)
    for job in jobs.values():
        job.release(end_s)
    outages += [(node, since, math.inf) for node, since in away.items()]
    return History(jobs=jobs, end_s=end_s, outages=outages)


def _event(event: dict[str, Any], at: float, jobs: dict[str, Timeline]) -> bool:
    """Apply an event; return whether it was one of a job."""
    kind = event["is"]
    if kind == "JobSubmitted":
        job = event["job"]
        jobs[job["job_id"]] = Timeline(
            job_id=job["job_id"], submitted=job.get("submitted", 0.0), size=job.get("scale_factor", 1),
            job_type=job["job_type"], steps=job["total_steps"], tenant=job.get("tenant", ""), app=job.get("app", ""),
            weight=job.get("weight", 1.0), deadline=number(job.get("deadline", math.inf)),
            retries=job.get("retries", 0),
        )  # fmt: skip
        return True
    if kind not in ("JobFinished", "JobFailed", "JobCancelled"):
        return False
    job = jobs[event["job_id"]]
    lease = job.running
    if kind == "JobCancelled":
        job.by_tuner = event.get("by_tuner", False)
        if math.isnan(job.ended):
            job.close(at, "cancelled")
    elif lease is not None and lease.epoch == event["epoch"]:
        if kind == "JobFinished":
            job.close(at, "finished")
        else:
            job.failures += 1
            job.release(at)
            if job.failures > job.retries:
                job.close(at, "failed")
    return True


def _decision(decision: dict[str, Any], at: float, jobs: dict[str, Timeline], type_of: list[str]) -> None:
    if decision["is"] == "Start":
        seats = tuple(decision["seats"])
        names = [(decision["job_id"], decision["epoch"])]
        if decision.get("partner_id") is not None:
            names.append((decision["partner_id"], decision["partner_epoch"]))
        for name, epoch in names:
            jobs[name].leases.append(Lease(begin=at, type=type_of[seats[0]], seats=seats, epoch=epoch))
    elif decision["is"] == "Stop":
        for name in decision["job_ids"]:
            job = jobs[name]
            if job.running is not None:
                job.release(at)
                job.preemptions += decision.get("save", True)
    elif decision["is"] == "Refuse":
        job = jobs[decision["job_id"]]
        if math.isnan(job.ended):
            job.close(at, "failed" if job.failures else "rejected")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def value(text: str) -> float:
    """Return a number of a CSV file; nan for an empty field."""
    return float(text) if text else math.nan
