"""Slurm's states of jobs and its accelerators in the words of engines."""

from __future__ import annotations

from eunomia.backends.engines.engine import OVER, QUEUED, RUNS
from eunomia.inputs.slurm_values import JOB_STATES, gres_counts

PHASES = {"waits": QUEUED, "starts": QUEUED, "runs": RUNS, "resizes": RUNS, "over": OVER}


def phase(state: str) -> str:
    """Return QUEUED, RUNS or OVER for a state of Slurm."""
    return PHASES[JOB_STATES.get(state, ("over", ""))[0]]


def accelerators(text: str) -> dict[str, int]:
    """Return accelerators by type from a text such as `gpu:v100:4(S:0-1),gpu:k80:2`; untyped ones are `gpu`."""
    return {kind or "gpu": count for kind, count in gres_counts(text).items()}
