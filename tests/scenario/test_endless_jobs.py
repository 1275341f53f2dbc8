"""A job whose steps would take longer than a duration may be is refused with its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.runs import simulate

HEADER = "job_id,submitted_s,scale_factor,job_type,total_steps,duration_s\n"


@pytest.mark.parametrize("steps", ["1.1e12", "1e15"])
def test_steps_that_take_longer_than_a_duration_may_be_are_refused_with_row_value_and_fix(
    steps: str, tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text(f"{HEADER}a,0,1,LM,1e12,\nb,0,1,LM,{steps},\n")
    asked = {
        "cluster": {"accelerators": {"v100": 2}},
        "workload": {"trace": str(tmp_path / "jobs.csv")},
        "throughputs": {"source": "uniform"},
    }
    with pytest.raises(InvalidInput) as refused:
        simulate(asked)
    (problem,) = refused.value.problems
    assert (problem.row, problem.column) == (3, "total_steps")
    assert "a job may take 1e+12 s at most" in problem.rule
    assert problem.fix == "give it fewer steps, or leave the job out"
