"""Slurm with users who type sbatch: their held jobs are placed and released, and requeued to preempt them.

Slurm runs the users' own scripts, so there is no supervisor: how a gang ended is what Slurm says. The mark of a job is
its administrator's comment, which leaves the user's own alone; the commands need the rights of a Slurm operator.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from eunomia.backends.engines.engine import (
    OVER,
    EngineGang,
    EngineRefused,
    GangRequest,
    HeldSubmission,
    Mark,
    SubmissionMissing,
)
from eunomia.backends.engines.job_files import SUBMISSION
from eunomia.backends.slurm.commands import records
from eunomia.backends.slurm.engine import Slurm
from eunomia.backends.slurm.queue import QueuedJob, read_queue
from eunomia.backends.slurm.states import phase

FIRST = 0  # epoch in the mark of a job that was taken over and not started yet


class SlurmBehind(Slurm):
    """The Slurm cluster; jobs without a number of a user's submission are started as `Slurm` does."""

    adopts = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._held: list[QueuedJob] = []

    def gangs(self) -> list[EngineGang]:
        """Return all jobs; the mark of a user's job is its administrator's comment."""
        found = super().gangs()
        jobs = {job.number: job for job in self._queue()}
        self._held = [job for job in jobs.values() if job.is_held]
        return [
            replace(gang, mark=Mark.parse(jobs[gang.number].mark), is_held=jobs[gang.number].is_held)
            if gang.number in jobs and jobs[gang.number].mark
            else gang
            for gang in found
        ]

    def _queue(self) -> list[QueuedJob]:
        found = records(self.call("scontrol", "show", "job"))
        return read_queue(found, sorted({name for node in self.nodes() for name in node.accelerators}))

    def submissions(self, cluster: str, new_key: Any) -> list[HeldSubmission]:
        """Return the held jobs of users that no start was ordered for; each gets a mark that keeps its key."""
        found = []
        for job in self._held:
            mark = Mark.parse(job.mark)
            if not job.accelerators or job.tasks > 1 or (mark is not None and mark.epoch != FIRST):
                continue
            if mark is None or mark.cluster != cluster:
                mark = Mark(cluster, new_key(), FIRST)
                self.call("scontrol", "update", f"JobId={job.number}", f"AdminComment={mark}")
            found.append(HeldSubmission(job.number, mark.job_id, job.account or job.user, job.user, document(job)))
        return found

    def submit(self, request: GangRequest) -> str:
        """Place and release a user's job; return its number."""
        if not request.submission:
            return super().submit(request)
        job = self._submission(request)
        given = Counter({node: count for node, _, count in request.parts})
        if job.per_node and (len(given) != job.nodes or set(given.values()) != {job.per_node}):
            shape = f"{job.nodes} × {job.per_node}"
            shown = " + ".join(str(count) for count in given.values())
            raise EngineRefused(
                f"it asked for {shape} accelerators, and was given {shown}; --gpus=N lets them be apart"
            )
        self.call(
            "scontrol", "update", f"JobId={job.number}", f"ReqNodeList={','.join(given)}",
            f"AdminComment={request.mark}", "StartTime=now",
        )  # fmt: skip
        self.call("scontrol", "release", job.number)
        return job.number

    def _submission(self, request: GangRequest) -> QueuedJob:
        """Return a user's job, which must still be the one that was taken over."""
        for job in self._queue():
            mark = Mark.parse(job.mark)
            if job.number == request.submission and mark is not None and mark.cluster == request.mark.cluster:
                if phase(job.state) == OVER:
                    raise SubmissionMissing(f"job {job.number} is over: {job.state}")
                return job
        raise SubmissionMissing(f"there is no job {request.submission} any more, or it is another one")

    def call_back(self, request: GangRequest, number: str) -> None:
        """Send a running job SIGTERM, and hold it when it is gone: Slurm kills it after its KillWait."""
        if not request.submission:
            super().call_back(request, number)
        elif self._is(request, number):
            self.call("scontrol", "requeuehold", number)

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """Hold a job that waits; one that runs is requeued and held."""
        if not request.submission:
            super().cancel(request, number, only_waiting=only_waiting)
        elif self._is(request, number):
            self.call("scontrol", "hold" if only_waiting else "requeuehold", number)

    def _is(self, request: GangRequest, number: str) -> bool:
        """Whether the number is still that of the gang."""
        return any(job.number == number and Mark.parse(job.mark) == request.mark for job in self._queue())


def document(job: QueuedJob) -> dict[str, Any]:
    """Return the job document of a submission: its time limit is the length that it declares.

    Only one that Slurm may requeue can be preempted.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", job.name)[:63].lstrip(".-") or f"slurm-{job.number}"
    found: dict[str, Any] = {
        "name": name,
        "command": ["sbatch", job.name or job.number],
        "accelerators": job.accelerators,
        "interruptible": job.may_requeue,
        "labels": {SUBMISSION: job.number, "user": job.user},
    }
    if job.types:
        found["types"] = list(job.types)
    if not math.isinf(job.limit_s):
        found["duration_s"] = max(job.limit_s, 1.0)
    return found
