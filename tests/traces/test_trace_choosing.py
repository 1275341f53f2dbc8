"""Which file of a folder is read, and how a format is detected without being named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read
from eunomia.traces.machine_lists import read_nodes

Write = Callable[..., Path]
LINGJUN = ("job_index,submit_s,gpus,service_s", "0,5,48,720")
NATIVE = ("job_id,submitted_s,scale_factor,job_type,duration_s", "a,0,1,,5")


def test_a_folder_stands_for_its_one_file_in_the_format(written: Write, tmp_path: Path) -> None:
    written(*LINGJUN, name="whatever.csv.txt")
    written("ip,DSW,PSW,ASW", "a,b,c,d", name="topo.csv")
    written(raw=b"\xff\xfe\x00", name="picture.png")
    trace = read(tmp_path, "lingjun")
    assert (len(trace), Path(trace.source).name) == (1, "whatever.csv.txt")


def test_a_folder_with_two_such_files_is_refused_with_their_names(written: Write, tmp_path: Path) -> None:
    written(*LINGJUN, name="may.csv")
    written(*LINGJUN, name="june.csv")
    with pytest.raises(InvalidInput, match=r"holds 2 files in the format lingjun; name june\.csv, may\.csv"):
        read(tmp_path, "lingjun")


def test_a_folder_without_such_a_file_is_refused(written: Write, tmp_path: Path) -> None:
    written(*NATIVE, name="jobs.csv")
    with pytest.raises(InvalidInput, match="no file in the format lingjun"):
        read(tmp_path, "lingjun")


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet", "jobs.csv.gz"])
def test_a_format_is_detected_from_the_first_line(name: str, written: Write, tmp_path: Path) -> None:
    from eunomia.traces import write_native

    write_native(read(written(*LINGJUN), "auto"), tmp_path / name)
    assert len(read(tmp_path / name, "auto")) == 1


def test_tabbed_formats_are_detected_by_their_number_of_columns(written: Write) -> None:
    gavel = "LM (batch size 5)\tpython3\tlm\t--steps\t1\t100\t2\t1\t-1\t5"
    assert read(written(gavel), "auto").total_steps.tolist() == [100]
    assert read(written(gavel.replace("\t2\t1\t-1\t", "\t2\tgns\t1\t-1\t70\t")), "auto").notes


@pytest.mark.parametrize("raw", [b"", b"some,thing\n1,2\n", b"\xff\xff", b"\x1f\x8bbroken"])
def test_a_format_that_cannot_be_detected_must_be_named(raw: bytes, written: Write) -> None:
    with pytest.raises(InvalidInput, match="name the format"):
        read(written(raw=raw), "auto")


@pytest.mark.parametrize(
    ("wrong", "right"), [("scale_factr", "scale_factor"), ("submited_s", "submitted_s"), ("tenat", "tenant")]
)
def test_a_misspelt_column_is_named_with_the_right_one_though_no_format_was(
    wrong: str, right: str, written: Write
) -> None:
    header, *rows = NATIVE
    header = header.replace(right, wrong) if right in header else f"{header},{wrong}"
    with pytest.raises(InvalidInput) as refused:
        read(written(header, *rows), "auto")
    [found] = [problem for problem in refused.value.problems if problem.column == wrong]
    assert found.fix == f"did you mean {right!r}?"


def test_a_format_of_which_columns_are_missing_is_named_with_these_columns(written: Write) -> None:
    path = written("name,cpu_milli,memory_mib,num_gpu,gpu_milli", "pod-0,1,1,1,460")
    with pytest.raises(InvalidInput) as refused:
        read(path, "auto")
    [found] = refused.value.problems
    assert found.rule.endswith(
        "nearest to openb and lacks its columns pod_phase, creation_time, deletion_time, scheduled_time"
    )
    assert found.fix.startswith("add these columns, or name the format: native, ")


@pytest.mark.parametrize("header", ["some,thing", "job_id,what", "job_id,submit_time,some,thing,what,this,is"])
def test_no_format_is_named_for_a_file_that_is_near_to_none_or_to_several(header: str, written: Write) -> None:
    with pytest.raises(InvalidInput, match=r"from the first line; name the format: native, "):
        read(written(header, ",".join("1" * len(header.split(",")))), "auto")


def test_a_refusal_says_which_formats_are_nearest_and_what_keeps_each_from_being_it(written: Write) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(written("job name,submit time,GPUs,runtime,user", "a,0,1,5,u"), "auto")
    [found] = refused.value.problems
    assert "nearest: helios lacks job_id, vc, " in found.fix
    assert "eunomia import csv" in found.fix
    assert found.fix.endswith("jobs.csv --out ours")
    with pytest.raises(InvalidInput, match="none of them has one of these columns"):
        read(written("some,thing", "1,2"), "auto")


def test_a_format_that_is_only_nearest_is_named_beside_what_its_reader_refuses(written: Write) -> None:
    path = written("node_name,gpu_model,gpu_capacity_num", "0,A10,1")
    with pytest.raises(InvalidInput, match="read as the format alibaba-2026") as refused:
        read_nodes(path)
    assert [problem.column for problem in refused.value.problems] == [None, "cpu_num"]
    with pytest.raises(InvalidInput, match="cannot be detected"):
        read_nodes(written("node,model,capacity,cpus", "0,A10,1,128"))  # not the open columns of `daily`


def test_a_table_of_another_system_is_answered_with_each_of_our_names_once(written: Write) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(written("job name,submit time,GPUs,runtime,user", "a,0,1,5,u"), "native")
    fixes = {problem.column: problem.fix for problem in refused.value.problems}
    assert fixes["job name"] == "rename it to job_id"
    assert fixes["runtime"] == "rename it to duration_s"
    assert set(fixes) == {None, "job name", "submit time", "GPUs", "runtime", "user"}
    assert "eunomia import csv" in fixes[None]


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such file"):
        read(tmp_path / "none.csv", "auto")
