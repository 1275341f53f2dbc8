"""JSON that others write is read without its surprises."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia.inputs.json_text import NotJson, parse_json, read_json
from eunomia.inputs.problems import InvalidInput


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[NaN]", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number of JSON"),
        ("[1e400]", "the number 1e400 is too large"),
        (f"[{'9' * 400}]", f"the number {'9' * 40} is too large"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands twice in one object"),
        ("[" * 100_000, "values are nested too deeply"),
        ("[1,\n 2,, 3]", "Expecting value, line 2, column 4"),
    ],
)
def test_what_is_no_strict_json_is_refused_with_what_and_where(text: str, said: str) -> None:
    with pytest.raises(NotJson) as caught:
        parse_json(text)
    assert str(caught.value) == said


def test_strict_json_is_read_as_it_is() -> None:
    assert parse_json('{"a": [1, 2.5, null, true], "b": {"a": "x"}}') == {"a": [1, 2.5, None, True], "b": {"a": "x"}}


def test_all_names_that_a_file_has_twice_are_problems_of_it() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_json("table.json", '{"a": {"x": 1, "x": 2}, "b": {"y": 1, "y": 2}}', "write it again")
    assert [(one.file, one.column) for one in caught.value.problems] == [("table.json", "x"), ("table.json", "y")]


def test_a_pause_of_hundreds_of_digits_is_a_problem_of_its_row(tmp_path: Path) -> None:
    from eunomia import read_trace

    trace = tmp_path / "trace.csv"
    trace.write_text(
        f'job_id,submitted_s,scale_factor,duration_s,started_s,ended_s,pauses\na,0,1,100,0,300,"[[1, {"9" * 400}]]"\n'
    )
    with pytest.raises(InvalidInput, match="pauses"):
        read_trace(trace)
