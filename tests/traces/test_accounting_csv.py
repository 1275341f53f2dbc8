"""Tables of past jobs with the names of other systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces.accounting_csv import read_history
from eunomia.traces.import_findings import History

HEADER = "JobID,User,Submit Time,Start Time,End Time,NumGPUs,GPU_Type,State,Partition\n"
DAY = "2024-01-01 "


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., History]:
    def read(*rows: str, header: str = HEADER, **columns: str) -> History:
        (tmp_path / "jobs.csv").write_text(header + "".join(f"{row}\n" for row in rows))
        return read_history(tmp_path / "jobs.csv", columns)

    return read


def test_columns_are_found_by_their_usual_names(history: Callable[..., History]) -> None:
    found = history(f"7,ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,2,A100,COMPLETED,p")
    trace = found.trace
    assert (trace.job_id, trace.tenant, trace.status, found.ran_on) == (("7",), ("ann",), ("finished",), ("A100",))
    assert (trace.scale_factor.tolist(), trace.duration_s.tolist()) == ([2], [3600])
    assert (found.started_s.tolist(), found.ended_s.tolist()) == ([600], [4200])
    assert str(trace.began) == "2024-01-01 00:00:00"
    assert trace.unread == ("Partition",)


def test_an_option_names_other_columns_and_durations_may_stand_for_ends(history: Callable[..., History]) -> None:
    header = "when,begun,took,devices\n"
    columns = {"submitted_s": "when", "started_s": "begun", "duration_s": "took", "scale_factor": "devices"}
    found = history("0,5,01:00:00,1", "3,9,40,2", header=header, **columns)
    assert found.trace.job_id == ("1", "2")
    assert found.trace.duration_s.tolist() == [3600, 40]
    assert found.ended_s.tolist() == [3605, 49]


def test_what_is_left_out_or_assumed_is_counted_with_its_line(history: Callable[..., History]) -> None:
    found = history(
        f"1,ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,2,v100,EVICTED,p",
        f"2,ann,{DAY}00:00:00,,,2,v100,CANCELLED by 7,p",
        f"3,ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,0,,COMPLETED,p",
        f"4,ann,{DAY}00:00:00,{DAY}00:10:00,,1,v100,RUNNING,p",
    )
    assert found.trace.job_id == ("1", "4")
    assert np.allclose(found.trace.duration_s, 3600)  # the last job ran until the last time in the file
    assert [(each.kind, each.count, each.line) for each in found.findings] == [
        ("left out", 1, 4),
        ("left out", 1, 3),
        ("assumed", 1, 2),
        ("assumed", 1, 5),
    ]


def test_status_words_of_other_systems_are_counted_with_their_meaning(history: Callable[..., History]) -> None:
    rows = [f"{m},ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,2,v100,%s,p" for m in range(4)]
    words = ("COMPLETED", "Succeeded", "COMPLETED", "finished")
    found = history(*(row % word for row, word in zip(rows, words, strict=True)))
    assert found.trace.status == ("finished",) * 4
    assert [(each.count, each.what, each.line) for each in found.findings] == [
        (2, "jobs of status completed are taken as finished", 2),
        (1, "jobs of status succeeded are taken as finished", 3),
    ]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (f"1,ann,yesterday,{DAY}00:10:00,{DAY}01:10:00,2,v100,,p", "submitted_s"),
        (f"1,ann,{DAY}00:20:00,{DAY}00:10:00,{DAY}01:10:00,2,v100,,p", "started_s"),
        (f"1,ann,{DAY}00:00:00,{DAY}01:10:00,{DAY}00:10:00,2,v100,,p", "ended_s"),
        (f"1,ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,half,v100,,p", "scale_factor"),
        (f"1,ann,{DAY}00:00:00,,,2,v100,,p", None),
    ],
)
def test_wrong_rows_are_refused(history: Callable[..., History], row: str, column: str | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        history(row)
    assert [problem.column for problem in refused.value.problems] == [column]


@pytest.mark.parametrize(
    ("columns", "value", "fix"),
    [({"submited_s": "User"}, "submited_s", "submitted_s"), ({"tenant": "Usr"}, "Usr", "User")],
)
def test_a_misspelt_field_or_column_is_answered(
    history: Callable[..., History], columns: dict[str, str], value: str, fix: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        history(f"1,ann,{DAY}00:00:00,{DAY}00:10:00,{DAY}01:10:00,2,v100,,p", **columns)
    (problem,) = refused.value.problems
    assert (problem.column, problem.value) == ("--column", value)
    assert fix in problem.fix


def test_a_missing_column_is_named_with_the_option_that_gives_it(history: Callable[..., History]) -> None:
    with pytest.raises(InvalidInput) as refused:
        history("0,0,1", header="submit_time,start_time,num_gpus\n")
    (problem,) = refused.value.problems
    assert (problem.column, "--column ended_s=" in problem.fix) == ("ended_s", True)


def test_a_file_without_a_line_is_refused_as_one_without_rows(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("")
    with pytest.raises(InvalidInput, match="a trace must hold at least one job"):
        read_history(tmp_path / "jobs.csv")
