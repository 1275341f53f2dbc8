"""A workload of one search, written to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Scene = Callable[..., Mapping[str, Any]]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return what makes a scenario of `trials` trials of an app, and a job of its own, on four accelerators."""

    def written(tuner: str, trials: int = 9, **more: Any) -> Mapping[str, Any]:
        rows = [f"t{m},0,1,2700,any,app" for m in range(trials)]
        rows.append("alone,100,2,900,any,")
        text = "job_id,submitted_s,scale_factor,duration_s,job_type,app\n" + "\n".join(rows) + "\n"
        (tmp_path / "jobs.csv").write_text(text, encoding="utf-8")
        return {
            "cluster": {"accelerators": {"v100": 4}},
            "workload": {"trace": str(tmp_path / "jobs.csv")},
            "throughputs": {"source": "uniform"},
            "policy": {"name": "las", "quantum": 100.0},
            "check": True,
            "apps": {"tuner": tuner},
            **more,
        }

    return written
