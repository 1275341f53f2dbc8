"""`[world] backend = "local"`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from eunomia.backends.inputs import BackendInputs
from eunomia.backends.process_backend import ProcessBackend
from eunomia.backends.processes.environment_filter import check_runnable
from eunomia.backends.processes.gangs import LocalGangs
from eunomia.backends.world import ProcessWorld, WorldInputs
from eunomia.model.job import Job
from eunomia.model.topology import Topology


class LocalBackend(ProcessBackend):
    """Gangs are processes of this machine, and end with the run. Raises InvalidInput for jobs that cannot run here."""

    repeats_starts = False

    def __init__(self, jobs: Sequence[Job], topology: Topology, *, grace_s: float = 10.0, **options: Any) -> None:
        check_runnable(jobs, topology, grace_s, os.environ)
        super().__init__(jobs, topology, grace_s=grace_s, **options)

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here."""
        check_runnable(inputs.jobs, inputs.topology, inputs.grace_s, os.environ)

    @classmethod
    def open_world(cls, inputs: WorldInputs) -> ProcessWorld:
        """Return the world of this machine."""
        return LocalGangs(inputs)
