"""Measures a job's steps through a running service: a short job for each shape, cancelled when it has reported."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.backends.processes.gangs import POLL_S as READ_S
from eunomia.inputs.problems import Problems
from eunomia.job_tuning.measurements import MeasuredShape
from eunomia.job_tuning.progress import Progress, StepsToMeasure
from eunomia.job_tuning.shapes import JobShape, ShapeSpace
from eunomia.service.client import Client, ServiceRefusal
from eunomia.service.job_row import SEATED, TERMINAL

POLL_S = 0.2  # between looks at the job
LATE_S = POLL_S + READ_S  # from a report to its arrival here: the service reads it first
REFUSED_JOB = 422  # status with which a service refuses a document
LABEL = "tuning"


def check_types(client: Client, space: ShapeSpace) -> None:
    """Raise InvalidInput for types that the service's cluster does not have, or not often enough."""
    count = {name: int(one["total"]) for name, one in client.get("/v1/cluster")["types"].items()}
    here = ", ".join(f"{number} of type {name}" for name, number in count.items())
    rule = f"the service's cluster has {here}"
    problems = Problems("command line")
    for name in space.types:
        if name not in count:
            problems.add(rule, "choose one of these", column="--type", value=name)
        elif count[name] < space.workers[-1]:
            problems.add(rule, "give fewer", column="--workers", value=space.workers[-1])
    problems.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSteps:
    """Measures shapes one after the other, each as a job of its own with the label `tuning`."""

    client: Client
    command: tuple[str, ...]
    wanted: StepsToMeasure
    cwd: Path
    variables: Mapping[str, str]  # of the job's environment

    def measure(self, shape: JobShape) -> MeasuredShape:
        """Submit the command in a shape, read its progress, and cancel it.

        Raises Unreachable if the service stops answering; the job is cancelled before that if it can be.
        """
        progress = Progress(shape, replace(self.wanted, late_s=LATE_S))
        try:
            job_id = self.client.submit(self._document(shape))["id"]
        except ServiceRefusal as error:
            if error.status != REFUSED_JOB:
                raise
            return progress.failed("; ".join([str(error), *(one["rule"] for one in error.problems)]))
        path = self.client.job_path(job_id)
        try:
            return self._watch(path, progress)
        finally:
            if self.client.get(path)["state"] not in TERMINAL:
                self.client.send("DELETE", path)

    def _watch(self, path: str, progress: Progress) -> MeasuredShape:
        """Read the job's progress until the measurement is over. Time in the queue has no limit."""
        epoch, since = 0, math.inf  # of the start that is measured
        while True:
            found, now = self.client.get(path), time.monotonic()
            if found["epoch"] != epoch:
                epoch, since = found["epoch"], now
                progress.reports.clear()
            if found["steps"]:
                progress.add(now, found["steps"])
            if progress.is_enough:
                return progress.result("")
            if found["state"] == "succeeded":
                return progress.result("it ended by itself")
            if found["state"] in TERMINAL:
                return progress.failed(f"{found['state']}: {found['reason'] or 'without a reason'}")
            if found["state"] in SEATED and now - since > self.wanted.limit_s:
                return progress.result(f"it was stopped after {self.wanted.limit_s:g} s")
            time.sleep(POLL_S)

    def _document(self, shape: JobShape) -> dict[str, Any]:
        """Return the job: it ends soon after the limit even without a cancellation."""
        return {
            "name": f"tune-{shape.name}",
            "command": list(shape.fill(self.command)),
            "accelerators": shape.workers,
            "types": [shape.type],
            "total_steps": self.wanted.total,
            "max_run_s": 2 * self.wanted.limit_s,
            "cwd": str(self.cwd),
            "labels": {LABEL: "job"},
        } | ({"env": dict(self.variables)} if self.variables else {})
