"""The life cycle of a job as one table, from which the diagram in the documentation is drawn."""

from __future__ import annotations

from enum import IntEnum, StrEnum

import numpy as np

from eunomia.model.arrays import Ints


class Stage(IntEnum):
    """Stage of a job; the numbers are stored in the core's arrays."""

    WAITING = 0
    RUNNING = 1
    FINISHED = 2
    FAILED = 3
    CANCELLED = 4
    REJECTED = 5
    PAUSED = 6


class Cause(StrEnum):
    """Cause of a transition."""

    STARTED = "Start"
    STOPPED = "Stop"
    NODE_LOST = "NodeLost"
    FINISHED = "JobFinished"
    FAILED_AGAIN = "JobFailed, no retry left"
    FAILED = "JobFailed, retried"
    CANCELLED = "JobCancelled"
    REFUSED = "Refuse (never ran)"
    PAUSED = "JobPaused"
    RESUMED = "JobResumed"


LIFE: dict[tuple[Stage, Cause], Stage] = {
    (Stage.WAITING, Cause.STARTED): Stage.RUNNING,
    (Stage.RUNNING, Cause.STOPPED): Stage.WAITING,
    (Stage.RUNNING, Cause.NODE_LOST): Stage.WAITING,
    (Stage.RUNNING, Cause.FAILED): Stage.WAITING,
    (Stage.RUNNING, Cause.FINISHED): Stage.FINISHED,
    (Stage.RUNNING, Cause.FAILED_AGAIN): Stage.FAILED,
    (Stage.WAITING, Cause.CANCELLED): Stage.CANCELLED,
    (Stage.RUNNING, Cause.CANCELLED): Stage.CANCELLED,
    (Stage.WAITING, Cause.REFUSED): Stage.REJECTED,
    (Stage.WAITING, Cause.PAUSED): Stage.PAUSED,
    (Stage.RUNNING, Cause.PAUSED): Stage.PAUSED,
    (Stage.PAUSED, Cause.RESUMED): Stage.WAITING,
    (Stage.PAUSED, Cause.CANCELLED): Stage.CANCELLED,
}
NEXT: dict[tuple[int, Cause], Stage] = {(int(stage), cause): end for (stage, cause), end in LIFE.items()}
PRESENT = frozenset({Stage.WAITING, Stage.RUNNING})  # asks for seats or has some
CAUSES = tuple(Cause)
# The same for compiled steps, (cause, stage): the number of the stage after, -1 = it cannot happen.
NEXT_STAGE: Ints = np.array([[NEXT.get((int(stage), cause), -1) for stage in Stage] for cause in CAUSES])
FINAL = frozenset(stage for stage in Stage if not any(start == stage for start, _ in LIFE))


class IllegalStep(AssertionError):
    """A transition that the table does not have: a bug of the core or a backend, never a user's mistake."""

    def __init__(self, job_id: str, text: str) -> None:
        super().__init__(text)
        self.job_id = job_id


def step(stage: int, cause: Cause, job_id: str) -> Stage:
    """Return the stage after `stage`, a number of Stage. Raises `IllegalStep` for a transition not in the table."""
    try:
        return NEXT[stage, cause]
    except KeyError:
        text = f"job {job_id!r} is {Stage(stage).name.lower()}; {cause.value} cannot happen to it"
        raise IllegalStep(job_id, text) from None


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    name = {stage: stage.name.lower() for stage in Stage}
    lines = ["stateDiagram-v2", "    [*] --> waiting: JobSubmitted"]
    lines += [f"    {name[start]} --> {name[end]}: {cause.value}" for (start, cause), end in LIFE.items()]
    return "\n".join([*lines, *(f"    {name[stage]} --> [*]" for stage in sorted(FINAL))])
