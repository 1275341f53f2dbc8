"""A fluid gives every job its share all the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia.experiment.wiring import set_up
from eunomia.reproduction.gavel.fluid import fluid_jct
from eunomia.scenario import scenario_from_dict


def test_two_jobs_on_one_accelerator_have_half_of_it_each_while_both_are_there(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,duration_s\na,0,1,x,100\nb,50,1,x,100\n"
    )
    scenario = scenario_from_dict(
        {
            "cluster": {"accelerators": {"gpu": 1}},
            "workload": {"trace": "jobs.csv"},
            "throughputs": {"source": "uniform"},
            "policy": {"name": "max_min_fairness"},
        },
        tmp_path,
    )
    # a runs alone for 50 s and at half speed for 100 s; b is half done then and goes on alone
    assert fluid_jct(set_up(scenario)).tolist() == pytest.approx([150.0, 150.0])
