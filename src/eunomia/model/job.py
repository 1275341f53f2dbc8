"""A training job as submitted."""

from __future__ import annotations

import math
from dataclasses import dataclass


class InvalidJob(ValueError):
    """A job with values that no run can satisfy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training run as submitted; its progress is in the core's state.

    `total_steps` counts steps over all accelerators of the gang and may be fractional. `other_shapes` are further
    gang sizes at which the same work can be done; shape 0 is `scale_factor`.
    """

    job_id: str
    total_steps: float
    submitted: float = 0.0  # to the scheduler: when it became eligible to start
    not_eligible_s: float = 0.0  # before that: submitted by its user, and held, or waiting for a time or another job
    sequence: int = 0  # row in its trace: the order of jobs submitted at one instant
    scale_factor: int = 1
    job_type: str = ""  # model and batch size: the key into the throughputs
    other_shapes: tuple[int, ...] = ()
    tenant: str = ""
    app: str = ""
    weight: float = 1.0
    deadline: float = math.inf
    cpus: float = 0.0  # of the whole gang
    memory_gib: float = 0.0  # of the whole gang
    debug: bool = False  # short, for trying things out: see a policy's or a service's debug lane
    retries: int = 0  # restarts of a failed run
    status: str = ""  # how the job ended in its trace; "" = unknown
    command: tuple[str, ...] = ()  # argv, for backends that start processes
    checkpoint_dir: str = ""
    interruptible: bool = True  # it can save and go on from there; if not, it keeps its seats until it ends
    restart_within_s: float = 0.0  # so long after its first start it may be stopped once, though it cannot save
    loss: tuple[float, float, float] | None = None  # its learning curve (`model.curves`), if declared

    def may_retry(self, failures: int) -> bool:
        """Say whether the job may be tried again after so many failed runs."""
        return failures <= self.retries

    def __post_init__(self) -> None:
        if self.scale_factor < 1 or (self.other_shapes and min(self.other_shapes) < 1):
            raise InvalidJob(
                f"job {self.job_id!r}: scale_factor is {min(self.shapes)}, but a gang needs at least 1 "
                f"accelerator; leave scale_factor out for a single-accelerator job"
            )
        if not 0 < self.total_steps < math.inf:
            raise InvalidJob(
                f"job {self.job_id!r}: total_steps is {self.total_steps}, but a job needs a finite number above 0; "
                f"give the steps that it trains"
            )
        if not 0 < self.weight < math.inf:
            raise InvalidJob(
                f"job {self.job_id!r}: weight is {self.weight}, but it must be above 0; leave it out for 1"
            )
        if not (0 <= self.cpus < math.inf and 0 <= self.memory_gib < math.inf):
            raise InvalidJob(
                f"job {self.job_id!r}: cpus is {self.cpus} and memory_gib {self.memory_gib}, but they are numbers, at "
                f"least 0; leave them out for none"
            )

    @property
    def shapes(self) -> tuple[int, ...]:
        """Accelerators of each shape; the first is the scale factor."""
        return (self.scale_factor, *self.other_shapes)
