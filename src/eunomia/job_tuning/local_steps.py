"""Measures a job's steps in processes on this machine, with the supervisors of `eunomia run`."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.backends.processes.backend import LocalBackend
from eunomia.backends.processes.discovery import discovered
from eunomia.backends.processes.environment import NO_DEVICE
from eunomia.backends.processes.folder import JobFolder
from eunomia.inputs.problems import Problems, refused
from eunomia.job_tuning.measurements import MeasuredShape
from eunomia.job_tuning.progress import Progress, StepsToMeasure
from eunomia.job_tuning.shapes import PLACEHOLDERS, JobShape, ShapeSpace
from eunomia.model.decisions import SetTimer, Start
from eunomia.model.events import JobFailed, JobFinished, JobSubmitted, Moment, Progressed, TimerFired
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology

GRACE_S = 2.0  # to stop after a measurement: what it trained is not kept
WAIT_S = 15.0  # for the processes of an interrupted search to end
WORK = "work"


def accelerators_here(space: ShapeSpace) -> Topology:
    """Return the accelerators of this machine; those of type `cpu` are seats without a device, as many as are asked.

    Raises InvalidInput for types that the machine does not have, or not often enough.
    """
    nodes = []
    if set(space.types) != {NO_DEVICE}:
        nodes = [Node(type=group["type"], accelerators=group["accelerators"]) for group in discovered()[0]]
    if NO_DEVICE in space.types:
        nodes.append(Node(type=NO_DEVICE, accelerators=space.workers[-1]))
    topology = Topology.of(nodes)
    count = dict(zip(topology.types, topology.capacity().astype(int).tolist(), strict=True))
    here = ", ".join(f"{number} of type {name}" for name, number in count.items())
    problems = Problems("command line")
    for name in space.types:
        if name not in count:
            fix = "choose one of these, or give --service to measure through a service that has it"
            problems.add(f"this machine has {here}", fix, column="--type", value=name)
        elif count[name] < space.workers[-1]:
            rule = f"every worker has an accelerator, and this machine has {here}"
            problems.add(rule, "give fewer workers", column="--workers", value=space.workers[-1])
    problems.raise_if_any()
    return topology


def check_program(command: Sequence[str], folder: Path) -> None:
    """Raise InvalidInput where the first word of a command is no program here."""
    first = command[0]
    if first == "python" or any(f"{{{key}}}" in first for key in PLACEHOLDERS):
        return
    place = str(folder / first) if "/" in first else first
    if shutil.which(place) is None:
        rule, fix = "there is no such program", "give the program and its arguments after --, as in -- python train.py"
        raise refused("command line", "COMMAND", first, rule, fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSteps:
    """Measures shapes one after the other; logs are in `folder`/work."""

    command: tuple[str, ...]
    topology: Topology
    wanted: StepsToMeasure
    folder: Path
    cwd: Path

    def measure(self, shape: JobShape) -> MeasuredShape:
        """Run the command in a shape until it has reported enough steps, and stop it."""
        job = Job(
            job_id=shape.name,
            scale_factor=shape.workers,
            total_steps=self.wanted.total,
            job_type=shape.name,
            command=shape.fill(self.command),
        )
        work = (self.folder / WORK).resolve()
        place, progress = JobFolder.of(work, job.job_id), Progress(shape, self.wanted)
        with LocalBackend([job], self.topology, workdir=work, grace_s=GRACE_S, cwd=self.cwd, wait_s=WAIT_S) as world:
            shutil.rmtree(place.path, ignore_errors=True)  # a checkpoint of an interrupted measurement would go on
            for moment in world.moments():
                for event in moment.events:
                    match event:
                        case JobSubmitted():
                            world.carry_out(Start(job.job_id, 1, self._seats(shape), math.inf))
                            world.carry_out(SetTimer(moment.at + self.wanted.limit_s))
                        case Progressed():
                            _take(place, progress, job.total_steps)
                found = _ended(moment, progress)
                if found is not None:
                    return found
        return progress.result("it ended")

    def _seats(self, shape: JobShape) -> tuple[int, ...]:
        """Return the first accelerators of the type."""
        own = np.flatnonzero(self.topology.type == self.topology.types.index(shape.type))
        return tuple(own[: shape.workers].tolist())


def _ended(moment: Moment, progress: Progress) -> MeasuredShape | None:
    """Return the measurement if it is over after this moment."""
    if progress.is_enough:
        return progress.result("")
    for event in moment.events:
        if isinstance(event, JobFailed):
            return progress.failed(event.reason)
        if isinstance(event, JobFinished):
            return progress.result("it ended by itself")
    if any(isinstance(event, TimerFired) for event in moment.events):
        return progress.result(f"it was stopped after {progress.wanted.limit_s:g} s")
    return None


def _take(place: JobFolder, progress: Progress, total: float) -> None:
    """Read the newest report with the time at which it was written, which is more exact than when it was noticed."""
    with contextlib.suppress(FileNotFoundError):  # the job removed it after its report was noticed
        while True:
            before = place.progress.stat()
            steps = place.read_progress(total)
            if place.progress.stat().st_ino == before.st_ino:
                break
        if steps is not None:
            progress.add(before.st_mtime_ns / 1e9, steps)
