"""Alibaba's trace of 2026: gangs of workers, organizations, and spot jobs beside those of high priority."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import Trace, read
from eunomia.traces.machine_lists import read_nodes

Write = Callable[..., Path]
ROWS = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type",
    "1,13,A10,20,1,1,0,7200,HP",
    "2,57,A100-SXM4-80GB,15,1,94,700,3600,Spot",
    "3,57,A10,4,0.5,2,600,0,Spot",
    "4,13,A10,8,0,1,900,60,HP",
)


@pytest.fixture
def trace(written: Write) -> Callable[..., Trace]:
    return lambda **options: read(written(*ROWS, name="job_info_df.csv"), **{"format": "auto", **options})


def test_a_job_is_as_wide_as_its_workers_together(trace: Callable[..., Trace]) -> None:
    found = trace()
    assert (found.job_id, found.scale_factor.tolist()) == (("1", "3", "2"), [1, 2, 94])
    assert (found.submitted_s.tolist(), found.duration_s.tolist()) == ([0, 600, 700], [7200, 1, 3600])
    assert (found.tenant, found.ran_on) == (("13", "57", "57"), ("a10", "a10", "a100-80gb"))
    assert found.cpus.tolist() == [20, 8, 15 * 94]
    assert "1 jobs ask for parts of accelerators; each part is read as a whole one" in found.notes
    assert "1 jobs have no accelerator and are left out" in found.notes
    assert "2 jobs are spot jobs, which may be stopped at any time" in found.notes
    assert "no schedule as it was" in found.notes[0]


def test_spot_jobs_may_be_tenants_of_their_own_weigh_less_or_be_read_alone(trace: Callable[..., Trace]) -> None:
    assert trace(tenant="job_type").tenant == ("HP", "Spot", "Spot")
    assert trace(spot_weight=0.1).weight.tolist() == [1, 0.1, 0.1]
    assert trace(only="HP").job_id == ("1",)
    for wrong in ({"only": "hp"}, {"spot_weight": 0}, {"spot_weight": "less"}, {"tenant": "gpu_model"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            trace(**wrong)


def test_the_machines_keep_their_cpus(written: Write) -> None:
    rows = ("node_name,gpu_model,gpu_capacity_num,cpu_num", "0,GPU-series-1,4,192", "1,A10,1,128")
    found = read_nodes(written(*rows, name="node_info_df.csv"))
    assert [(node.type, node.accelerators, node.cpus) for node in found.nodes] == [
        ("a10", 1, 128),
        ("gpu-series-1", 4, 192),
    ]
