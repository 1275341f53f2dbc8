"""Finds out how gangs ended after the process of their scheduler had ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.processes.gang import Ending, kill_processes
from eunomia.model.decisions import Start
from eunomia.model.events import Event, JobFailed, JobFinished, Measured, NodeJoined, NodeLost, Progressed
from eunomia.model.job import Job
from eunomia.model.topology import Topology


def has_finished(folder: JobFolder) -> bool:
    """Whether the last gang that ended in this run finished the job."""
    record = folder.read_exit()
    return record is not None and record[0] == 0


def recover_events(
    running: Sequence[tuple[Start, Job, JobFolder]],
    steps: Mapping[str, float],
    topology: Topology,
    *,
    with_losses: bool,
) -> list[Event]:
    """Return the events of jobs that should be running: their progress, and how each gang ended.

    A gang that neither finished nor failed by itself was stopped, or never started. It is reported as a node that was
    lost and has joined again: the job is pending, keeps its retries, and its next start has a new epoch.
    """
    events: list[Event] = []
    lost: set[int] = set()
    progress = dict[str, float]()
    for start, job, folder in running:
        step = folder.read_progress(job.total_steps)
        if step is not None and step != steps.get(job.job_id):
            progress[job.job_id] = step
            if with_losses and not math.isnan(loss := folder.read_loss()):
                events.append(Measured(job.job_id, step, loss))
        record = folder.read_exit()
        code, cause, epoch = record or (0, "", -1)
        ending = Ending(code, cause)
        if record is not None and ending.finished:
            events.append(JobFinished(job.job_id, start.epoch))
        elif epoch == start.epoch and not ending.was_stopped:
            events.append(JobFailed(job.job_id, start.epoch, ending.reason(folder.last_line())))
        else:
            if record is None:  # its supervisor was killed too
                kill_processes(folder)
            lost.update(np.asarray(topology.node)[list(start.seats)].tolist())
    if progress:
        names = tuple(sorted(progress))
        events.append(Progressed(names, tuple(progress[name] for name in names)))
    return events + [event for node in sorted(lost) for event in (NodeLost(node), NodeJoined(node))]
