"""Slurm's states of jobs."""

from __future__ import annotations

from eunomia.backends.engines.engine import OVER, QUEUED, RUNS

WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
RUNNING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})
NODE_LOST = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})


def phase(state: str) -> str:
    """Return QUEUED, RUNS or OVER for a state of Slurm."""
    if state in WAITING:
        return QUEUED
    return RUNS if state in RUNNING else OVER
