"""Every wrong table is refused, with all of what is wrong and where."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.throughputs import load

HEADER = "type,job_type,scale_factor,steps_per_s\n"


def refused(path: Path, contents: bytes | str) -> tuple[Problem, ...]:
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    with pytest.raises(InvalidInput) as caught:
        load(path.name, ["x"], base=path.parent)
    assert all(problem.file == path.name and problem.rule and problem.fix for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("rate", ["-1", "nan", "inf", "1e999", "fast", "", "1_0"])
def test_a_rate_that_is_no_finite_number_of_at_least_0_is_named_by_row_and_column(rate, tmp_path):
    (problem,) = refused(tmp_path / "t.csv", f"{HEADER}x,a,1,2\nx,b,1,{rate}\n")
    assert (problem.row, problem.column) == (3, "steps_per_s")


@pytest.mark.parametrize("size", ["0", "-2", "1.5", "nan", "many", "1e12"])
def test_a_scale_factor_is_a_whole_number_of_at_least_1(size, tmp_path):
    (problem,) = refused(tmp_path / "t.csv", f"{HEADER}x,a,{size},2\n")
    assert (problem.row, problem.column, problem.value) == (2, "scale_factor", size)


def test_all_problems_are_collected_the_first_20_shown(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "x,a,0,-1\n" * 30, encoding="utf-8")
    with pytest.raises(InvalidInput, match="and 40 more") as caught:
        load("t.csv", ["x"], base=tmp_path)
    assert (len(caught.value.problems), caught.value.count) == (20, 60)


def test_a_missing_column_is_named(tmp_path):
    (problem,) = refused(tmp_path / "t.csv", "type,job_type,steps_per_s\nx,a,1\n")
    assert (problem.row, problem.column) == (1, "scale_factor")


def test_a_misspelt_column_is_answered_with_the_nearest(tmp_path):
    problems = refused(tmp_path / "t.csv", "type,job_type,scale_factor,steps_per_sec\nx,a,1,2\n")
    assert "did you mean 'steps_per_s'" in problems[0].fix


def test_a_row_with_too_few_values_is_named(tmp_path):
    (problem,) = refused(tmp_path / "t.csv", f"{HEADER}x,a,1\n")
    assert problem.row == 2


def test_a_measurement_that_stands_twice_is_named_at_its_second_row(tmp_path):
    (problem,) = refused(tmp_path / "t.csv", f"{HEADER}x,a,1,2\nx,a,2,2\nx,a,1,3\n")
    assert problem.row == 4


def test_a_placement_and_a_lonely_partner_rate_are_named(tmp_path):
    header = "type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s,placement\n"
    problems = refused(tmp_path / "t.csv", f"{header}x,a,1,2,,3,\nx,b,1,2,,,consolidate\n")
    assert [(problem.row, problem.column) for problem in problems] == [(2, "partner_steps_per_s"), (3, "placement")]
    assert "consolidated" in problems[1].fix


def test_an_empty_table_is_refused(tmp_path):
    refused(tmp_path / "t.csv", HEADER)
    refused(tmp_path / "empty.csv", "")
    refused(tmp_path / "t.json", "{}")


def test_broken_quotes_and_bytes_that_are_no_text_are_refused(tmp_path):
    assert refused(tmp_path / "q.csv", f'{HEADER}x,"a"b,1,2\n')[0].row == 2
    assert refused(tmp_path / "b.csv", HEADER.encode() + b"x,\xff\xfe,1,2\n")[0].row == 2


@pytest.mark.parametrize("name", ["t.csv.gz", "t.json.gz"])
def test_a_truncated_or_damaged_gzip_file_is_refused(name, tmp_path):
    whole = gzip.compress((HEADER + "x,a,1,2\n" * 100).encode(), mtime=0)
    reported = ("the gzip file is cut short", "the gzip file is damaged")
    for damaged in (whole[:-12], whole[:20] + b"\x00" * 30 + whole[50:], b"\x1f\x8b"):
        assert refused(tmp_path / name, damaged)[0].rule.startswith(reported)


def test_what_is_not_parquet_is_refused(tmp_path):
    assert "not a readable Parquet file" in refused(tmp_path / "t.parquet", "type,job_type")[0].rule


@pytest.mark.parametrize("text", ["{", "[1, 2", "", '{"x": 1,}'])
def test_what_is_not_json_is_refused(text, tmp_path):
    assert "not JSON" in refused(tmp_path / "t.json", text)[0].rule


def test_json_nested_without_end_is_refused(tmp_path):
    assert "not JSON" in refused(tmp_path / "t.json", "[" * 100_000)[0].rule


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("[]", "the file"),
        ('{"x": 3}', "x"),
        ('{"x": {"A3C": {"null": 1}}}', "x"),
        ('{"x": {"(\'a\', 0)": {"null": 1}}}', "x"),
        ('{"x": {"(\'a\', 1)": 4}}', "x/('a', 1)"),
        ('{"x": {"(\'a\', 1)": {}}}', "x/('a', 1)"),
        ('{"x": {"(\'a\', 1)": {"null": -4}}}', "x/('a', 1)/null"),
        ('{"x": {"(\'a\', 1)": {"null": NaN}}}', "x/('a', 1)/null"),
        ('{"x": {"(\'a\', 1)": {"null": true}}}', "x/('a', 1)/null"),
        ('{"x": {"(\'a\', 1)": {"null": 1, "(\'b\', 1)": 3}}}', "x/('a', 1)/('b', 1)"),
        ('{"x": {"(\'a\', 1)": {"null": 1, "(\'b\', 1)": [1]}}}', "x/('a', 1)/('b', 1)"),
        ('{"x": {"(\'a\', 1)": {"null": 1, "(\'b\', 1)": [1, -1]}}}', "x/('a', 1)/('b', 1)"),
        ('{"x": {"(\'a\', 1)": {"null": 1, "(\'b\', 2)": [1, 1]}}}', "x/('a', 1)/('b', 2)"),
        ('{"x": {"(\'a\', 1)": {"null": 1}, "(\'a\', 1)": {"null": 2}}}', "('a', 1)"),
    ],
)
def test_gavels_json_in_a_wrong_shape_is_refused_with_the_place(text, column, tmp_path):
    assert column in [problem.column for problem in refused(tmp_path / "t.json", text)]


def test_a_source_that_is_not_there_is_answered_with_the_built_in_ones(tmp_path):
    with pytest.raises(InvalidInput, match="did you mean 'catalogue'"):
        load("catalog", ["v100"])
    with pytest.raises(InvalidInput, match="no such file"):
        load("absent.csv", ["v100"], base=tmp_path)


def test_a_file_whose_name_says_nothing_is_refused(tmp_path):
    (tmp_path / "table.txt").write_text(HEADER, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"\.parquet"):
        load("table.txt", ["v100"], base=tmp_path)


def test_a_cluster_without_types_is_refused():
    with pytest.raises(InvalidInput, match="at least one accelerator type"):
        load("uniform", [])
