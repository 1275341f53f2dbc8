"""Checks jobs and accelerators before real processes are started."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from eunomia.backends.processes.environment import NO_DEVICE, given_devices
from eunomia.inputs.problems import Problems
from eunomia.model.job import Job
from eunomia.model.topology import Topology


def check_runnable(jobs: Sequence[Job], topology: Topology, grace_s: float, inherited: Mapping[str, str]) -> None:
    """Raise InvalidInput with every job and setting that cannot run on this machine."""
    problems = Problems('[world] backend = "local"')
    if not 0 <= grace_s < math.inf:
        rule, fix = "a gang must have some time to save, and not forever", "give seconds from 0 up"
        problems.add(rule, fix, column="grace_s", value=grace_s)
    _check_devices(topology, inherited, problems)
    _check_jobs(jobs, problems)
    problems.raise_if_any()


def check_commands(jobs: Sequence[Job]) -> None:
    """Raise InvalidInput with every job that no process can be started for."""
    problems = Problems("[world] backend")
    _check_jobs(jobs, problems)
    problems.raise_if_any()


def _check_jobs(jobs: Sequence[Job], problems: Problems) -> None:
    seen: set[str] = set()
    for job in jobs:
        _check_job(job, seen, problems)


def _check_devices(topology: Topology, inherited: Mapping[str, str], problems: Problems) -> None:
    given, wanted = given_devices(inherited), sum(topology.types[j] != NO_DEVICE for j in topology.type.tolist())
    if given is not None and wanted > len(given):
        problems.add(
            f"the cluster has {wanted} accelerators, but CUDA_VISIBLE_DEVICES leaves only {len(given)}",
            f"declare fewer, declare them as type {NO_DEVICE!r}, or unset the variable",
            column="nodes",
        )


def _check_job(job: Job, seen: set[str], problems: Problems) -> None:
    if job.job_id in seen:
        problems.add("job ids must differ", "name this job otherwise", column="job_id", value=repr(job.job_id))
    seen.add(job.job_id)
    if not job.command:
        problems.add(
            f"job {job.job_id!r} has no command, so there is nothing to run",
            'add a column command to the trace, like ["python", "train.py"]',
            column="command",
        )
    texts = (job.job_id, job.checkpoint_dir, *job.command)
    if any("\0" in text or not _can_encode(text) for text in texts):
        problems.add(
            f"job {job.job_id!r}: its id, command and checkpoint_dir must be text that a process can be given",
            "leave out NUL characters and halves of surrogate pairs",
            column="command",
        )


def _can_encode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
