"""What became of gangs after the scheduler that started them had ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.backends.local.gang import Ending, sweep
from eunomia.backends.local.job_directory import JobFolder
from eunomia.model.decisions import Start
from eunomia.model.events import Event, JobFailed, JobFinished, Measured, NodeJoined, NodeLost, Progressed
from eunomia.model.job import Job
from eunomia.model.topology import Topology


def ended_well(folder: JobFolder) -> bool:
    """Whether the gang that ended last in this run finished the job."""
    found = folder.read_exit()
    return found is not None and found[0] == 0


def became_of(
    running: Sequence[tuple[Start, Job, JobFolder]],
    steps: Mapping[str, float],
    topology: Topology,
    *,
    with_losses: bool,
) -> list[Event]:
    """Return what is true of jobs that should be running: how far they are, and how each gang ended.

    A gang that neither finished nor failed by itself was stopped, or never started. To the scheduler that is a machine
    which was lost and is back: the job waits, keeps its retries, and its next start is a new epoch.
    """
    events: list[Event] = []
    lost: set[int] = set()
    done = dict[str, float]()
    for start, job, folder in running:
        step = folder.read_progress(job.total_steps)
        if step is not None and step != steps.get(job.job_id):
            done[job.job_id] = step
            if with_losses and not math.isnan(loss := folder.read_loss()):
                events.append(Measured(job.job_id, step, loss))
        found = folder.read_exit()
        code, cause, epoch = found or (0, "", -1)
        ending = Ending(code, cause)
        if found is not None and ending.finished:
            events.append(JobFinished(job.job_id, start.epoch))
        elif epoch == start.epoch and not ending.was_stopped:
            events.append(JobFailed(job.job_id, start.epoch, ending.reason(folder.last_words())))
        else:
            if found is None:  # its supervisor was killed too
                sweep(folder)
            lost.update(np.asarray(topology.node)[list(start.seats)].tolist())
    if done:
        names = tuple(sorted(done))
        events.append(Progressed(names, tuple(done[name] for name in names)))
    return events + [event for node in sorted(lost) for event in (NodeLost(node), NodeJoined(node))]
