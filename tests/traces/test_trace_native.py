"""What a native trace may look like."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import FORMATS, read, write_native
from eunomia.traces.table import trace_of

Write = Callable[..., Path]
HEADER = "job_id,submitted_s,scale_factor,job_type,duration_s"


def test_every_column_is_read_as_it_is_meant(written: Write) -> None:
    trace = read(
        written(
            "job_id,submitted_s,scale_factor,job_type,total_steps,duration_s,tenant,app,weight,deadline_s,status,retries,"
            "command,checkpoint_dir",
            '007,0,2,ResNet-50,1000.5,,ann,search-1,2.5,86400,finished,3,"[""python3"", ""train.py""]",/tmp/a',
            "8,1e1,1,LM,,60,,,,,,,,",
        )
    )
    assert trace.job_id == ("007", "8")
    assert trace.submitted_s.tolist() == [0, 10]
    assert trace.scale_factor.tolist() == [2, 1]
    assert trace.job_type == ("ResNet-50", "LM")
    assert trace.total_steps[0] == 1000.5
    assert np.isnan(trace.total_steps[1])
    assert np.isnan(trace.duration_s[0])
    assert trace.duration_s[1] == 60
    assert (trace.tenant, trace.app) == (("ann", ""), ("search-1", ""))
    assert trace.weight.tolist() == [2.5, 1]
    assert trace.deadline_s.tolist() == [86400, inf]
    assert trace.status == ("finished", "")
    assert trace.retries.tolist() == [3, 0]
    assert trace.command == (("python3", "train.py"), ())
    assert trace.checkpoint_dir == ("/tmp/a", "")
    assert trace.row.tolist() == [2, 3]
    assert trace.source.endswith("jobs.csv")


def test_a_trace_whose_job_types_are_all_empty_names_none(written: Write) -> None:
    assert read(written(HEADER, "a,0,1,,5", "b,0,1,,5")).job_type is None


def test_rows_are_counted_in_lines_of_the_file_past_blank_lines_and_quoted_line_ends(written: Write) -> None:
    trace = read(written("", HEADER, "", 'a,0,1,"two\nlines",5', "", "", "b,0,1,LM,5", ""))
    assert trace.row.tolist() == [4, 8]


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(written: Write) -> None:
    trace = read(written(raw=b"\xef\xbb\xbf" + f"{HEADER}\r\na,0,1,LM,5\r\n".encode()))
    assert (trace.job_id, trace.job_type) == (("a",), ("LM",))


def test_a_parquet_file_may_store_its_columns_in_any_type_that_has_a_text_form(tmp_path: Path) -> None:
    pq.write_table(
        pa.table(
            {
                "job_id": pa.array([7, 8], pa.int16()),
                "submitted_s": pa.array([0, 1], pa.float32()),
                "scale_factor": ["1", "2"],
                "job_type": pa.array(["LM", "LM"]).dictionary_encode(),
                "duration_s": pa.array([2.5, None]),
                "total_steps": pa.array([None, 9], pa.int64()),
            }
        ),
        tmp_path / "jobs.parquet",
    )
    trace = read(tmp_path / "jobs.parquet")
    assert trace.job_id == ("7", "8")
    assert trace.job_type == ("LM", "LM")
    assert (trace.duration_s[0], trace.total_steps[1]) == (2.5, 9)
    assert trace.row.tolist() == [2, 3]


def test_a_misspelt_format_is_answered_with_the_nearest(written: Write) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'philly'"):
        read(written(HEADER), "phily")


def test_a_misspelt_option_is_answered_with_the_nearest(written: Write) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'passed_only'"):
        read(written(HEADER), "philly", pased_only=True)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_refuses_a_file_that_is_absent(format: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        read(tmp_path / "absent.csv", format)


@pytest.mark.parametrize("name", ["jobs.xlsx", "nowhere/jobs.csv"])
def test_a_trace_is_written_only_where_and_as_it_can_be(name: str, tmp_path: Path) -> None:
    trace = trace_of("one job", ["a"], np.zeros(1), np.ones(1, dtype=np.int64), duration_s=np.ones(1))
    with pytest.raises(InvalidInput):
        write_native(trace, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_jobs_are_taken_in_the_order_asked_for(written: Write) -> None:
    trace = read(written(HEADER, "a,0,1,LM,5", "b,0,2,A3C,6", "c,0,3,LM,7")).take(np.array([2, 0]))
    assert (trace.job_id, trace.scale_factor.tolist(), trace.job_type) == (("c", "a"), [3, 1], ("LM", "LM"))
    assert trace.row.tolist() == [4, 2]


def test_columns_of_unlike_length_make_no_trace() -> None:
    with pytest.raises(ValueError, match="scale_factor has 2 entries for 1 jobs"):
        trace_of("odd", ["a"], np.zeros(1), np.ones(2, dtype=np.int64))


def test_the_schedule_as_it_was_comes_back_as_it_was_written(tmp_path: Path) -> None:
    trace = trace_of(
        "x", ["a", "b"], np.array([0.0, 5.0]), np.array([1, 1]), duration_s=np.array([10.0, 20.0]),
        job_type=("LM", "LM"), started_s=np.array([7.0, 8.0]), ended_s=np.array([np.nan, 40.0]),
        pauses=((), ((2.0, 9.5), (11.0, 12.0))), eligible_s=np.array([6.0, np.nan]),
        began=datetime(2024, 5, 1, 8),
    )  # fmt: skip
    for name in ("t.csv", "t.parquet"):
        write_native(trace, tmp_path / name)
        again = read(tmp_path / name)
        assert again.pauses == trace.pauses
        assert np.array_equal(again.ended_s, trace.ended_s, equal_nan=True)
        assert np.array_equal(again.eligible_s, trace.eligible_s, equal_nan=True)
        assert again.may_start_s.tolist() == [6, 5]
        assert again.began == (trace.began if name == "t.parquet" else None)


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ("4,5,,", "eligible_s"),
        ("20,10,,", "eligible_s"),
        (",10,9,", "ended_s"),
        (",,20,", "ended_s"),
        ('6,10,20,"[[1, 10]]"', "pauses"),
        ('6,10,20,"[[3, 2]]"', "pauses"),
        ('6,10,20,"[[0, 2]]"', "pauses"),
        ('6,10,,"[[1, 2]]"', "pauses"),
        ("6,10,20,soon", "pauses"),
    ],
)
def test_times_of_the_schedule_as_it_was_that_contradict_each_other_are_refused(
    written: Write, cells: str, column: str
) -> None:
    path = written(f"{HEADER},eligible_s,started_s,ended_s,pauses", f"a,5,1,LM,10,{cells}")
    with pytest.raises(InvalidInput) as error:
        read(path)
    assert {problem.column for problem in error.value.problems} == {column}
