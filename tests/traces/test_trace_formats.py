"""What the published formats mean, on small files and on the real ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read

Real = Callable[[str], Path]
Write = Callable[..., Path]
GAVEL = "LM (batch size 5)\tpython3 main.py --data %s\tlm\t--steps\t1\t{steps}\t{gang}\t{weight}\t{slo}\t{at}"
PHILLY = "job_index,submit_time,submit_s,gpus,span_s,service_s,vc,vc_source,status,status_source"
VENUS = "job_id,log_row,submit_time,submit_s,gpus,service_s,clamped"


def test_a_gavel_job_is_named_by_its_line_counted_from_zero(written: Write) -> None:
    trace = read(
        written(
            GAVEL.format(steps=100, gang=2, weight=5, slo="-1.000000", at="0"),
            GAVEL.format(steps=7.5, gang=1, weight=1, slo="-1", at="3.25"),
        ),
        "gavel",
    )
    assert trace.job_id == ("0", "1")
    assert trace.row.tolist() == [1, 2]
    assert trace.job_type == ("LM (batch size 5)",) * 2
    assert trace.total_steps.tolist() == [100, 7.5]
    assert np.isnan(trace.duration_s).all()
    assert (trace.scale_factor.tolist(), trace.weight.tolist()) == ([2, 1], [5, 1])
    assert (trace.submitted_s.tolist(), trace.deadline_s.tolist()) == ([0, 3.25], [inf, inf])
    assert (trace.command, trace.notes) == (((), ()), ())


def test_a_gavel_objective_is_counted_and_said(written: Write) -> None:
    trace = read(written(GAVEL.format(steps=1, gang=1, weight=1, slo="1.2", at="0")), "gavel")
    assert trace.deadline_s.tolist() == [inf]
    assert trace.notes[0].startswith("1 jobs have an SLO")


def test_quotes_in_a_gavel_command_are_only_characters(written: Write) -> None:
    row = GAVEL.format(steps=1, gang=1, weight=1, slo="-1", at="0").replace("%s", '"a')
    assert len(read(written(row, row), "gavel")) == 2


@pytest.fixture
def philly(written: Write) -> Path:
    return written(
        PHILLY,
        "00,2017-08-14,5,1,100,90,abc,pollux,Pass,inferred",
        "1,2017-08-14,5,8,200,,,,Killed,listed",
        "2,2017-08-14,3,12,0,,,,Failed,listed",
        "3,2017-08-14,3,1,7,,,,Unsuccessful,inferred",
    )


def test_a_philly_job_runs_its_service_time_or_else_its_span_and_at_least_a_second(philly: Path) -> None:
    trace = read(philly, "philly")
    assert dict(zip(trace.job_id, trace.duration_s.tolist(), strict=True)) == {"00": 90, "1": 200, "2": 1, "3": 7}
    assert [note.split(" jobs ")[0] for note in trace.notes] == ["3", "1", "1", "3"]
    assert trace.job_type is None


def test_philly_jobs_come_by_submission_and_those_of_one_second_as_in_the_file(philly: Path) -> None:
    trace = read(philly, "philly")
    assert trace.job_id == ("2", "3", "00", "1")
    assert trace.row.tolist() == [4, 5, 2, 3]
    assert trace.status == ("failed", "failed", "finished", "cancelled")
    assert trace.tenant == ("", "", "abc", "")


def test_passed_only_keeps_the_jobs_that_passed_and_says_how_many_it_left_out(philly: Path, written: Write) -> None:
    trace = read(philly, "philly", passed_only=True)
    assert trace.job_id == ("00",)
    assert trace.notes == ("3 jobs did not pass and are left out",)
    with pytest.raises(InvalidInput, match="no job of this file passed"):
        read(written(PHILLY, "1,,5,8,200,,,,Killed,listed"), "philly", passed_only=True)


def test_a_venus_job_takes_its_tenant_and_status_from_the_status_file(written: Write) -> None:
    written(
        "row,submit_time,submit_s,user,gpus,cpus,nodes,run_time_s,status,job_id",
        "0,,0,17,1,1,1,84,Pass,07",
        "1,,0,18,0,4,1,84,Failed,",
        "2,,0,18,0,4,1,84,Failed,",
        name="status.csv",
    )
    path = written(VENUS, "07,0,,0,32,172800,1", "8,2,,1,8,60,0")
    trace = read(path, "venus", status_file="status.csv")
    assert (trace.tenant, trace.status) == (("17", ""), ("finished", ""))
    assert trace.duration_s.tolist() == [172800, 60]
    assert [note.split(" ")[0] for note in trace.notes] == ["1", "1"]
    assert set(read(path, "venus").tenant) == {""}


def test_the_real_philly_trace_is_read_whole(real: Real) -> None:
    trace = read(real("traces/philly/philly_jobs.csv.gz"), "philly")
    assert len(trace) == 84_605
    assert Counter(trace.status) == {"finished": 64_483, "failed": 19_109, "cancelled": 1_013}
    assert (trace.submitted_s[-1], trace.scale_factor.max(), trace.duration_s.min()) == (7_950_773, 128, 1)
    assert [note.split(" ")[0] for note in trace.notes] == ["20,122", "7", "18,180", "15,522"]
    assert (trace.row[0], trace.row[-1]) == (2, 84_606)


def test_the_real_venus_trace_is_read_whole_with_its_users(real: Real) -> None:
    path = real("traces/helios-venus/venus_gpu_jobs.csv.gz")
    trace = read(path, "venus", status_file="venus_status_15k.csv.gz")
    assert len(trace) == 99_707
    assert (trace.duration_s.max(), trace.scale_factor.max()) == (172_800, 200)
    assert sum(tenant != "" for tenant in trace.tenant) == 10_796
    assert trace.notes[0].startswith("1,907 jobs")


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        ("cont_multi_prio_r2.0_s1_n200", 200),
        ("cont_multi_r2.6_s0_n300", 300),
        ("cont_single_r5.6_s0_n400", 400),
        ("gen_trace_multi_l642_s0_n200", 200),
        ("max_min_fairness", 96),
        ("minimize_makespan", 100),
        ("small_test", 20),
        ("static_multi_s0_n100", 100),
        ("static_single_s2_n100", 100),
    ],
)
def test_the_real_gavel_traces_are_read_whole(name: str, jobs: int, real: Real) -> None:
    trace = read(real(f"gavel/traces/{name}.trace"), "gavel")
    assert len(trace) == jobs
    assert trace.job_id[-1] == str(jobs - 1)
    assert set(trace.weight.tolist()) <= {1, 5}
    assert set(trace.scale_factor.tolist()) <= {1, 2, 4, 8}
    assert trace.notes == ()
