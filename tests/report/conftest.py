"""Small runs to report on: the fixtures are the functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from eunomia.verdict.run_figures import ReportContent, RunFigures

HOUR = 3600.0


def run_of(label: str, jct_s: Sequence[float], *, load: float = 1.0, seed: int = 0, **changes: Any) -> RunFigures:
    """Return a run whose jobs took `jct_s`; `changes` replace fields, and `summary` is laid over its own."""
    jct = np.array(jct_s, dtype=float)
    jobs, bins = jct.size, 3
    summary = {
        "jobs_submitted": jobs,
        "jobs_finished": jobs,
        "jct_mean_s": float(jct.mean()) if jobs else None,
        "jct_p99_s": float(np.quantile(jct, 0.99)) if jobs else None,
        "queueing_mean_s": 60.0,
        "utilization": 0.5,
        "utilization_v100": 0.5,
        "cost_usd": 12.5,
        "preemptions": 0,
        "rho_themis_max": 1.5,
    }
    fields: dict[str, Any] = {
        "policy": label,
        "load": load,
        "seed": seed,
        "jct_s": jct,
        "queueing_s": jct / 4,
        "slowdown": jct / 1800,
        "rho_themis": jct / 7200,
        "scale_factor": np.ones(jobs, dtype=int),
        "tenant": ("alone",) * jobs,
        "types": ("v100",),
        "utilization_at_s": np.arange(bins) * HOUR,
        "utilization": np.full((1, bins), 0.5),
        "running_jobs": np.ones(bins),
        "waiting_jobs": np.zeros(bins),
    }
    fields |= changes | {"summary": summary | changes.get("summary", {})}
    return RunFigures(label=label, **fields)


def report_on(*runs: RunFigures, **changes: Any) -> ReportContent:
    """Return a report on `runs`."""
    words = {"title": "Tiny", "subtitle": "two policies", "scenario_toml": "seed = 0\n", "notes": ()}
    return ReportContent(runs=runs, **(words | changes))


@pytest.fixture
def a_run() -> Callable[..., RunFigures]:
    """Return the maker of runs."""
    return run_of


@pytest.fixture
def a_report() -> Callable[..., ReportContent]:
    """Return the maker of reports."""
    return report_on
