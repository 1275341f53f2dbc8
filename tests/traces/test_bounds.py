"""What a trace may say: times and sizes that can be added up, and texts that can be shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read

HEADER = "job_id,submitted_s,scale_factor,duration_s,tenant,weight,cpus\n"


def problems(folder: Path, row: str) -> list[tuple[int | None, str | None]]:
    """Return row and column of each problem of a trace with one row after a good one."""
    path = folder / "jobs.csv"
    path.write_text(f"{HEADER}good,0,1,10,,,\n{row}\n")
    try:
        read(path)
    except InvalidInput as error:
        return [(one.row, one.column) for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("a,1e23,1,10,,,", "submitted_s"),
        ("a,1,1,5e-324,,,", "duration_s"),
        ("a,1,1,10,,1e308,", "weight"),
        ("a,1,1,10,,5e-324,", "weight"),
        ("a,1,1,10,,,1e308", "cpus"),
        ("a\0b,1,1,10,,,", "job_id"),
        ("a\x1b[2Jb,1,1,10,,,", "job_id"),
        ("a,1,1,10,lab\0,,", "tenant"),
    ],
)
def test_what_cannot_be_added_up_or_shown_is_refused_with_row_and_column(tmp_path: Path, row: str, column: str) -> None:
    assert problems(tmp_path, row) == [(3, column)]


def test_the_largest_and_smallest_values_are_taken(tmp_path: Path) -> None:
    assert problems(tmp_path, "é b,1e12,1,1e12,lab/é,1e9,1e9") == problems(tmp_path, "a,1,1,1e-9,,1e-9,0") == []
