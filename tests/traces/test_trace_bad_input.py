"""Every error of a trace is reported with its file, row and column."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read

Write = Callable[..., Path]
HEADER = (
    "job_id,submitted_s,scale_factor,job_type,total_steps,duration_s,weight,deadline_s,retries,status,"
    "command,interruptible"
)
GOOD = {
    "job_id": "a",
    "submitted_s": "10",
    "scale_factor": "1",
    "job_type": "LM",
    "total_steps": "",
    "duration_s": "5",
    "weight": "",
    "deadline_s": "",
    "retries": "",
    "status": "",
    "command": "",
    "interruptible": "",
}


def line(**cells: str) -> str:
    return ",".join((GOOD | cells).values())


def problems_of(path: Path, format: str = "native", **options: object) -> list[tuple[int | None, str | None]]:
    """Return (row, column) of each problem; every one names the file and says how to fix it."""
    with pytest.raises(InvalidInput) as caught:
        read(path, format, **options)
    for problem in caught.value.problems:
        assert problem.file == str(path)
        assert problem.rule
        assert problem.fix
    return [(problem.row, problem.column) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[("submitted_s", value) for value in ("", "-1", "nan", "inf", "-inf", "1e999", "soon", "1_0", "0x10", "１")],
        *[("scale_factor", value) for value in ("", "0", "-1", "1.5", "nan", "inf", "1e300", "two", "True")],
        *[("duration_s", value) for value in ("0", "-0", "-5", "nan", "inf", "1h", "1.1e12", "1e308")],
        *[("weight", value) for value in ("0", "-1", "nan", "inf", "high")],
        *[("deadline_s", value) for value in ("9.5", "-1", "nan", "inf", "never")],
        *[("retries", value) for value in ("-1", "0.5", "nan", "inf", "1e12")],
        *[("status", value) for value in ("Pas", "perhaps", "0")],
        *[("interruptible", value) for value in ("maybe", "2", "-")],
        *[
            ("command", value)
            for value in (
                "python train.py",
                "{}",
                "[]",
                '"[""""]"',
                "[1]",
                '"[""a"", 1]"',
                '"[""\\u0000""]"',
                '"[""\\ud800""]"',
                '"[""a"""',
                "[" * 9000,
            )
        ],
        ("job_id", ""),
        ("job_type", ""),
        ("job_id", "first"),
    ],
)
def test_a_wrong_value_is_reported_with_its_row_and_column(column: str, value: str, written: Write) -> None:
    path = written(HEADER, line(job_id="first"), "", line(**{column: value}))
    assert problems_of(path) == [(4, column)]


def test_steps_of_zero_are_refused(written: Write) -> None:
    assert problems_of(written(HEADER, line(total_steps="0", duration_s=""))) == [(2, "total_steps")]


def test_a_submission_may_not_go_back(written: Write) -> None:
    path = written(HEADER, line(), line(job_id="b", submitted_s="9"), line(job_id="c", submitted_s="10"))
    assert problems_of(path) == [(3, "submitted_s")]


def test_a_job_has_steps_or_a_duration_but_not_both(written: Write) -> None:
    path = written(HEADER, line(duration_s=""), line(job_id="b", total_steps="7"))
    assert problems_of(path) == [(2, "total_steps"), (3, "duration_s")]


@pytest.mark.parametrize("column", ["job_id", "submitted_s", "scale_factor"])
def test_a_missing_column_is_reported_once(column: str, written: Write) -> None:
    kept = [name for name in GOOD if name != column]
    path = written(",".join(kept), *[",".join((GOOD | {"job_id": str(m)})[name] for name in kept) for m in range(3)])
    assert problems_of(path) == [(1, column)]


def test_without_steps_and_durations_there_is_no_work(written: Write) -> None:
    assert problems_of(written("job_id,submitted_s,scale_factor,job_type", "a,0,1,LM")) == [(1, "total_steps")]


def test_a_column_that_no_reader_has_is_answered_with_the_nearest(written: Write) -> None:
    path = written(HEADER + ",tennant", line() + ",ann")
    with pytest.raises(InvalidInput, match="did you mean 'tenant'"):
        read(path)
    assert problems_of(path) == [(1, "tennant")]


def test_two_columns_of_one_name_are_refused(written: Write) -> None:
    assert problems_of(written(HEADER + ",weight", line() + ",1")) == [(1, "weight")]


def test_rows_of_another_width_are_reported_beside_the_problems_of_the_others(written: Write) -> None:
    path = written(HEADER, line(weight="0"), "b,0", line(job_id="c") + ",", line(job_id="d", retries="x"))
    assert problems_of(path) == [(2, "weight"), (3, None), (4, None), (5, "retries")]


def test_all_problems_are_counted_and_the_first_twenty_reported_in_the_order_of_rows(written: Write) -> None:
    path = written(HEADER, *[line(job_id=str(m), weight="-1", retries="-1") for m in range(100)], *["x"] * 50)
    with pytest.raises(InvalidInput) as caught:
        read(path)
    assert caught.value.count == 250
    assert [problem.row for problem in caught.value.problems] == [2 + m // 2 for m in range(20)]


def test_a_huge_value_is_not_repeated_whole(written: Write) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(written(HEADER, line(weight="9" * 100_000 + "x")))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("format", ["native", "gavel", "philly", "venus"])
@pytest.mark.parametrize("raw", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_a_file_without_a_word_is_an_empty_trace(raw: bytes, format: str, written: Write) -> None:
    path = written(raw=raw)
    assert problems_of(path, format)[0] == (None, None)
    with pytest.raises(InvalidInput, match="at least one job"):
        read(path, format)


def test_a_header_alone_is_an_empty_trace(written: Write) -> None:
    assert problems_of(written(HEADER)) == [(None, None)]


PACKED = gzip.compress(f"{HEADER}\n{line()}\n".encode(), mtime=0)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (PACKED[:-12], "cut short"),
        (PACKED[:5], "cut short"),
        (PACKED[:-6] + b"\0" + PACKED[-5:], "damaged"),
        (PACKED[:12] + b"\xff\xff" + PACKED[14:], "damaged"),
        (b"job_id,submitted_s\n", "not gzip"),
        (PACKED + b"tail", "damaged"),
    ],
)
def test_a_broken_gzip_is_refused(raw: bytes, said: str, written: Write) -> None:
    path = written(raw=raw, name="jobs.csv.gz")
    assert problems_of(path) == [(None, None)]
    with pytest.raises(InvalidInput, match=said):
        read(path)


def test_a_gzip_is_unpacked_even_if_its_name_does_not_say_so(written: Write) -> None:
    assert read(written(raw=PACKED, name="jobs.csv")).job_id == ("a",)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_text_that_is_not_utf8_is_refused_with_its_line(encoding: str, written: Write) -> None:
    path = written(raw=f"{HEADER}\n{line(job_type='Gruß')}\n".encode(encoding))
    assert problems_of(path) == [(2 if encoding == "latin-1" else 1, None)]


@pytest.mark.parametrize("cell", ['"open', '"a"b', "x" * 200_000])
def test_text_that_cannot_be_split_into_cells_is_refused_with_its_line(cell: str, written: Write) -> None:
    assert (3, None) in problems_of(written(HEADER, line(), line(job_id=cell)))


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == [(None, None)]


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1 and then PAR1", b"job_id,submitted_s"])
def test_a_parquet_file_that_cannot_be_read_is_refused(raw: bytes, written: Write) -> None:
    assert problems_of(written(raw=raw, name="jobs.parquet")) == [(None, None)]


def test_a_parquet_column_without_a_text_form_is_refused(tmp_path: Path) -> None:
    columns = {name: [value] for name, value in GOOD.items()} | {"command": pa.array([["python3", "train.py"]])}
    pq.write_table(pa.table(columns), tmp_path / "jobs.parquet")
    assert problems_of(tmp_path / "jobs.parquet") == [(1, "command")]


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    columns = {name: pa.array([value]) for name, value in GOOD.items()}
    pq.write_table(pa.table(columns | {"tenant": pa.array([b"\xff"]).view(pa.string())}), tmp_path / "jobs.parquet")
    assert problems_of(tmp_path / "jobs.parquet") == [(None, None)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("submitted_s", float("nan")),
        ("submitted_s", None),
        ("scale_factor", 1.5),
        ("duration_s", float("inf")),
        ("weight", True),
        ("job_id", None),
    ],
)
def test_a_wrong_value_in_parquet_is_reported_as_if_it_stood_in_csv(column: str, value: object, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({name: [good or None] for name, good in GOOD.items()} | {column: pa.array([value])}),
        tmp_path / "jobs.parquet",
    )
    assert problems_of(tmp_path / "jobs.parquet") == [(2, column)]


GAVEL = ["LM (batch size 5)", "python3 main.py", "lm", "--steps", "1", "100", "2", "1", "-1.000000", "0"]


@pytest.mark.parametrize(
    ("position", "value", "column"),
    [
        (0, "", "job_type"),
        (4, "yes", "needs_data_dir"),
        (5, "0", "total_steps"),
        (6, "0", "scale_factor"),
        (7, "0", "priority_weight"),
        (7, "", "priority_weight"),
        (8, "0", "SLO"),
        (8, "-2", "SLO"),
        (8, "x", "SLO"),
        (9, "-1", "arrival_time"),
        (9, "", "arrival_time"),
    ],
)
def test_a_wrong_value_in_a_gavel_file_is_reported(position: int, value: str, column: str, written: Write) -> None:
    row = [*GAVEL[:position], value, *GAVEL[position + 1 :]]
    assert problems_of(written("\t".join(GAVEL), "\t".join(row)), "gavel") == [(2, column)]


def test_a_gavel_file_whose_arrivals_go_back_or_whose_rows_are_ragged_is_refused(written: Write) -> None:
    path = written("\t".join([*GAVEL[:-1], "5"]), "\t".join(GAVEL), "\t".join(GAVEL[:7]))
    assert problems_of(path, "gavel") == [(2, "arrival_time"), (3, None)]


PHILLY = "job_index,submit_s,gpus,span_s,service_s,vc,status"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (",0,1,5,5,,Pass", "job_index"),
        ("0,0,1,5,5,,Pass", "job_index"),
        ("1,-1,1,5,5,,Pass", "submit_s"),
        ("1,0,0,5,5,,Pass", "gpus"),
        ("1,0,1,,5,,Pass", "span_s"),
        ("1,0,1,-1,,,Pass", "span_s"),
        ("1,0,1,5,-1,,Pass", "service_s"),
        ("1,0,1,5,5,,pass", "status"),
        ("1,0,1,5,5,,", "status"),
    ],
)
def test_a_wrong_value_in_a_philly_table_is_reported(row: str, column: str, written: Write) -> None:
    assert problems_of(written(PHILLY, "0,0,1,5,5,,Pass", row), "philly") == [(3, column)]


VENUS = "job_id,submit_s,gpus,service_s,clamped"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (",0,1,5,0", "job_id"),
        ("0,0,1,5,0", "job_id"),
        ("1,x,1,5,0", "submit_s"),
        ("1,0,0.5,5,0", "gpus"),
        ("1,0,1,0,0", "service_s"),
        ("1,0,1,5,2", "clamped"),
    ],
)
def test_a_wrong_value_in_a_venus_table_is_reported(row: str, column: str, written: Write) -> None:
    assert problems_of(written(VENUS, "0,0,1,5,0", row), "venus") == [(3, column)]


def test_options_of_the_wrong_kind_are_refused(written: Write) -> None:
    assert problems_of(written(PHILLY), "philly", passed_only="yes") == [(None, "passed_only")]
    assert problems_of(written(VENUS), "venus", status_file=3) == [(None, "status_file")]


def test_a_wrong_status_file_is_reported_as_that_file(written: Write) -> None:
    written("job_id,user,status", "0,,Pass", "0,2,Pass", ",3,Gone", name="status.csv")
    with pytest.raises(InvalidInput) as caught:
        read(written(VENUS, "0,0,1,5,0"), "venus", status_file="status.csv")
    result = [(Path(problem.file).name, problem.row, problem.column) for problem in caught.value.problems]
    assert result == [("status.csv", 2, "user"), ("status.csv", 3, "job_id"), ("status.csv", 4, "status")]


def _parquet() -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table({name: [value] for name, value in GOOD.items()}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("format", "name", "whole"),
    [
        ("native", "jobs.csv", f"{HEADER}\n{line()}\n".encode()),
        ("native", "jobs.csv.gz", PACKED),
        ("native", "jobs.parquet", _parquet()),
        ("gavel", "jobs.trace", "\t".join(GAVEL).encode()),
        ("philly", "jobs.csv", f"{PHILLY}\n0,0,1,5,5,,Pass\n".encode()),
        ("venus", "jobs.csv", f"{VENUS}\n0,0,1,5,0\n".encode()),
    ],
)
def test_damaged_bytes_give_a_trace_or_an_answer_but_no_accident(
    format: str, name: str, whole: bytes, written: Write
) -> None:
    edits = st.lists(
        st.tuples(st.integers(0, len(whole)), st.integers(0, 4), st.binary(max_size=3)), min_size=1, max_size=4
    )

    @given(edits)
    def is_answered(edits: list[tuple[int, int, bytes]]) -> None:
        raw = whole
        for start, length, instead in edits:
            raw = raw[:start] + instead + raw[start + length :]
        with suppress(InvalidInput):
            assert len(read(written(raw=raw, name=name), format)) >= 1

    is_answered()
