"""A problem that says everything, as a JSON file has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Fields = dict[str, Any]
TYPES = ["v100", "p100", "k80"]
TRAINED = ["LM", "CNN", "GAN"]


def everything(seed: int = 0, jobs: int = 7) -> Fields:
    """Return all fields of a problem drawn by seed; every deadline alone can be met."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(5.0, 50.0, (jobs, 3))
    rates[0, 2] = 0.0
    steps = rng.uniform(1e4, 1e6, jobs)
    return {
        "types": TYPES,
        "capacity": [4, 6, 8],
        "throughput": rates.tolist(),
        "scale_factor": rng.choice([1, 1, 2, 4], jobs).tolist(),
        "weight": rng.choice([1.0, 2.0], jobs).tolist(),
        "job_ids": [f"job-{m}" for m in range(jobs)],
        "steps_remaining": steps.tolist(),
        "elapsed_s": rng.uniform(0.0, 1e4, jobs).tolist(),
        "isolated_time_s": rng.uniform(0.0, 1e4, jobs).tolist(),
        "isolated_throughput": rng.uniform(1.0, 10.0, jobs).tolist(),
        "attained_service": rng.uniform(0.0, 1e4, jobs).tolist(),
        "submitted_s": rng.permutation(jobs).astype(float).tolist(),
        "deadline_s": [None if m % 2 else float(20 * steps[m] / rates[m].max()) for m in range(jobs)],
        "price": [2.48, 1.46, 0.45],
        "throughput_apart": (rates * 0.5).tolist(),
        "accelerators_per_node": [2, 4, 4],
        "entity": [["vision", "text/small", "text/large"][m % 3] for m in range(jobs)],
        "entity_weight": {"vision": 1, "text": 2.5, "text/small": 1, "text/large": 3},
        "entity_inner": {"vision": "fifo"},
        "job_type": [TRAINED[m % 3] for m in range(jobs)],
        "pairs": [
            {"type": "v100", "job_type": "LM", "partner_job_type": "LM", "steps_per_s": 4.0},
            {"type": "p100", "job_type": "LM", "partner_job_type": "CNN", "steps_per_s": 9.0,
             "partner_steps_per_s": 8.0},
            {"type": "p100", "job_type": "LM", "partner_job_type": "CNN", "scale_factor": 2, "steps_per_s": 7.0,
             "partner_steps_per_s": 8.0},
        ],
    }  # fmt: skip


@pytest.fixture
def plain() -> Fields:
    """Two jobs of opposite tastes, and nothing that may be left out."""
    return {"types": ["v100", "k80"], "capacity": [1, 1], "throughput": [[3.0, 1.0], [1.0, 3.0]]}


@pytest.fixture
def full() -> Callable[..., Fields]:
    """Return what draws a problem that says everything."""
    return everything
