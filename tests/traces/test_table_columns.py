"""Columns of other systems' tables: which is which, what stands for nothing, and what the sums are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces.accounting_csv import read_history
from eunomia.traces.import_findings import History

Read = Callable[..., History]


@pytest.fixture
def table(tmp_path: Path) -> Read:
    def read(header: str, *rows: str, timezone: str = "", **columns: str) -> History:
        (tmp_path / "jobs.csv").write_text("\n".join([header, *rows, ""]))
        return read_history(tmp_path / "jobs.csv", columns, timezone=timezone)

    return read


def hours(found: History) -> float:
    assert found.hours is not None
    return found.hours.total


def finding(found: History, words: str) -> tuple[str, int]:
    return next((one.kind, one.count) for one in found.findings if words in one.what)


def test_the_mapping_of_columns_is_kept_in_the_order_of_fields(table: Read) -> None:
    found = table("User,GPUs,job name,submit time,runtime,note", "u,2,a,0,7200,x")
    assert list(found.columns.items()) == [
        ("submitted_s", "submit time"),
        ("duration_s", "runtime"),
        ("scale_factor", "GPUs"),
        ("job_id", "job name"),
        ("tenant", "User"),
    ]
    assert found.trace.unread == ("note",)


def test_a_table_without_starts_is_read_and_says_so(table: Read) -> None:
    found = table("job name,submit time,GPUs,runtime,user", "a,2024-03-04 08:00,1,600,u", "b,2024-03-04 08:05,4,3600,v")
    assert found.trace.duration_s.tolist() == [600, 3600]
    assert np.isnan(found.started_s).all()
    assert finding(found, "no schedule as it was") == ("missing", 2)
    assert not any("still ran" in one.what for one in found.findings)


def test_a_column_of_waits_gives_the_starts(table: Read) -> None:
    found = table("submit_time,wait_time,duration,gpus", "100,20,60,1", "200,-1,-1,1")
    assert found.started_s.tolist() == [20]
    assert finding(found, "never ran") == ("left out", 1)


WAITS = ("id,queue,user,gpus,submit_time,start_time,end_time", "1,32,7,1,100,132,200", "2,13,8,1,100,113,200")


def test_a_queue_of_seconds_waited_is_no_tenant(table: Read) -> None:
    assert table(*WAITS).trace.tenant == ("7", "8")
    assert table(*WAITS).trace.unread == ("queue (seconds waited, not a tenant)",)
    without = [",".join(cell for k, cell in enumerate(row.split(",")) if k != 2) for row in WAITS]
    assert table(*without).trace.tenant == ("", "")
    named = [row.replace(",32,", ",gpu,").replace(",13,", ",gpu,") for row in without]
    assert table(*named).trace.tenant == ("gpu", "gpu")


def test_tenants_that_are_numbers_are_named_as_doubtful_unless_the_caller_named_them(table: Read) -> None:
    assert "numbers of the column user" in table(*WAITS).assumed[0]
    assert not table(*WAITS, tenant="user").assumed


def test_users_count_before_queues_in_whatever_order_they_stand(table: Read) -> None:
    found = table("queue,organization,gpus,submit_time,duration", "batch,bio,1,0,5")
    assert found.trace.tenant == ("bio",)


@pytest.mark.parametrize(
    ("header", "row", "option", "width"),
    [
        ("gpu_request,worker_num", "1,94", "", 94),
        ("gpu_request,worker_num", "1,94", "gpu_request", 94),
        ("gpu_request,worker_num", "8,4", "gpu_request*1", 8),
        ("num_nodes,gpus_per_node", "4,8", "", 32),
        ("num_nodes,gpus_per_node,num_gpus", "4,8,30", "", 30),
        ("a,b", "3,5", "a*b", 15),
        ("a,b", "3,5", "a × b", 15),
        ("tres_alloc", '"1=40,1001=2,1002=2"', "tres_alloc:1001", 2),
        ("AllocTRES", '"cpu=4,gres/gpu=3"', "AllocTRES:gres/gpu", 3),
        ("gpus", "2.0", "", 2),
    ],
)
def test_the_width_may_be_a_product_or_an_entry_of_a_list(
    table: Read, header: str, row: str, option: str, width: int
) -> None:
    columns = {"scale_factor": option} if option else {}
    found = table(f"submit_time,duration,{header}", f"0,3600,{row}", **columns)
    assert found.trace.scale_factor.tolist() == [width]
    assert hours(found) == width


def test_parts_of_accelerators_are_whole_ones_and_the_difference_is_named(table: Read) -> None:
    found = table("submit_time,duration,gpu_request,worker_num,gpu_model", "0,3600,0.5,2,A10", "0,3600,8,1,A10")
    assert found.trace.scale_factor.tolist() == [2, 8]
    assert hours(found) == 9
    change = next(one.change for one in found.findings if "read as a whole one" in one.what)
    assert change.by_type() == {"A10": 1}


def test_a_total_beside_a_number_of_workers_is_doubted(table: Read) -> None:
    found = table("submit_time,duration,num_gpus,num_workers", "0,3600,2,4")
    assert found.trace.scale_factor.tolist() == [2]
    assert "scale_factor=num_gpus*num_workers" in found.assumed[0]


@pytest.mark.parametrize("word", ["0", "-1", "", "NaN", "None", "null", "NaT", "1970-01-01 00:00:00", "Unknown", "0.0"])
def test_words_and_numbers_for_never_leave_the_job_out(table: Read, word: str) -> None:
    rows = (
        "1,1609466400,1609470000,1609473600,2",
        f"2,1609466500,{word},1609466600,4",
        f"3,1609466500,{word},{word},4",
    )
    found = table("id,time_submit,time_start,time_end,gpus", *rows)
    assert found.trace.job_id == ("1",)
    assert finding(found, "never ran") == ("left out", 2)
    assert hours(found) == 2


def test_zero_is_a_time_where_times_count_from_zero(table: Read) -> None:
    found = table("submit_time,start_time,end_time,gpus", "0,0,3600,1", "0,3600,7200,1")
    assert found.started_s.tolist() == [0, 3600]


def test_a_job_that_ended_at_no_time_is_left_out_and_one_that_runs_is_cut(table: Read) -> None:
    header = "id,submit_time,start_time,end_time,gpus,state"
    found = table(header, "1,10,10,,1,COMPLETED", "2,10,10,0,1,RUNNING", "3,10,20,7210,1,COMPLETED")
    assert dict(zip(found.trace.job_id, found.trace.duration_s.tolist(), strict=True)) == {"2": 7200, "3": 7190}
    assert finding(found, "nothing says when") == ("left out", 1)
    assert finding(found, "still ran") == ("assumed", 1)


@pytest.mark.parametrize(("per", "unit"), [(60, "minutes"), (3600, "hours"), (0.001, "milliseconds")])
def test_durations_of_another_unit_are_known_by_start_and_end(table: Read, per: float, unit: str) -> None:
    rows = [f"0,{k},{k + 7200},{7200 / per},1" for k in range(3)]
    found = table("submit_time,start_time,end_time,duration,gpus", *rows)
    assert found.trace.duration_s.tolist() == [7200] * 3
    assert unit in found.assumed[0]


def test_a_duration_from_the_submission_does_not_count_and_one_without_pauses_does(table: Read) -> None:
    header = "submit_time,start_time,end_time,duration,gpus"
    found = table(header, *[f"0,{k},{k + 100},{k + 100},1" for k in (50, 60, 70)])
    assert found.trace.duration_s.tolist() == [100] * 3
    assert "is not end − start" in found.assumed[0]
    found = table(header, "0,0,100,100,1", "0,0,100,40,1", "0,0,90,90,1")
    assert found.trace.duration_s.tolist() == [100, 40, 90]
    assert finding(found, "other than end − start") == ("assumed", 1)


def test_durations_that_are_all_zero_do_not_count_beside_start_and_end(table: Read) -> None:
    found = table("id,gpus,submit_time,start_time,end_time,duration", "1,1,0,10,110,0", "2,1,0,10,210,0")
    assert found.trace.duration_s.tolist() == [100.0, 200.0]


def test_times_in_milliseconds_are_known_by_their_size(table: Read) -> None:
    found = table("submit_time,start_time,end_time,gpus", "1609466400000,1609470000000,1609473600000,2")
    assert (found.started_s.tolist(), found.trace.duration_s.tolist()) == ([3600], [3600])
    assert str(found.trace.began) == "2021-01-01 02:00:00"


def test_a_clock_that_changes_is_read_in_its_zone(table: Read) -> None:
    header = "submit_time,start_time,end_time,gpus"
    autumn = ("2024-10-27 02:50:00,2024-10-27 02:10:00,2024-10-27 03:10:00,1",)
    with pytest.raises(InvalidInput, match="--timezone"):
        table(header, *autumn)
    found = table(header, *autumn, timezone="Europe/Berlin")
    assert (found.started_s.tolist(), found.trace.duration_s.tolist()) == ([1200], [3600])
    assert str(found.trace.began) == "2024-10-27 02:50:00"
    spring = ("2024-03-31 01:00:00,2024-03-31 01:30:00,2024-03-31 03:30:00,1",)
    found = table(header, *spring, timezone="Europe/Berlin")
    assert (found.started_s.tolist(), found.trace.duration_s.tolist()) == ([1800], [3600])
    with pytest.raises(InvalidInput, match="time zone is not known"):
        table(header, *spring, timezone="Europe/Nowhere")


def test_messages_name_the_columns_of_the_file(table: Read) -> None:
    with pytest.raises(InvalidInput) as error:
        table("Submit Time,begun,NumGPUs", "0,5,1")
    (problem,) = error.value.problems
    assert "of Submit Time, begun, NumGPUs" in problem.fix
    with pytest.raises(InvalidInput, match="separated by ';'"):
        table("Submit Time;runtime;NumGPUs", "0;5;1")
    with pytest.raises(InvalidInput, match=r"the column Submit Time"):
        table("Submit Time,runtime,NumGPUs", "soon,5,1")
    with pytest.raises(InvalidInput, match=r"scale_factor=tres:1001"):
        table("submit_time,runtime,tres", '0,5,"1=4,1001=2"')


def test_states_of_slurms_database_are_numbers(table: Read) -> None:
    found = table("submit_time,runtime,gpus,state", "0,5,1,3", "0,5,1,4", "0,5,1,7")
    assert found.trace.status == ("finished", "cancelled", "failed")
