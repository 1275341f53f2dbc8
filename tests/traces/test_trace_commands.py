"""The commands `trace` and `data`, as typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.desk import typed

from eunomia.traces import FORMATS, Trace, read
from eunomia.traces.table import COLUMNS

Real = Callable[[str], Path]
Write = Callable[..., Path]
PODS = (
    "name,num_gpu,gpu_milli,gpu_spec,pod_phase,creation_time,deletion_time,scheduled_time",
    "a,1,460,,Failed,5,100,10",
    "b,2,1000,T4|P100,Succeeded,6,106,16",
)
NATIVE = (
    "job_id,submitted_s,scale_factor,job_type,total_steps,duration_s,tenant,app,weight,deadline_s,status,retries,command,"
    "checkpoint_dir",
    'a,0.1,2,LM,7.5,,ann,x,0.30000000000000004,9,failed,3,"[""python3"", ""a b.py""]",ck',
    "b,1e9,1,CNN,,1e-3,,,,,,,,",
)


def printed(*words: object) -> Any:
    result = typed(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def same(one: Trace, other: Trace) -> bool:
    """Say whether two traces have the same jobs, lines of the file apart."""
    return all(alike(getattr(one, name), getattr(other, name)) for name in COLUMNS if name != "row")


def alike(column: Any, other: Any) -> bool:
    if isinstance(column, np.ndarray):
        return np.array_equal(column, other, equal_nan=column.dtype.kind == "f")
    return bool(column == other)


def test_a_trace_is_described_in_words_and_in_numbers(written: Write) -> None:
    path = written(*PODS)
    result = typed("trace", "describe", path)
    assert result.exit_code == 0
    assert "accelerators per job" in result.stdout
    assert re.search(r"^failed +1 +50.0 % +33.3 %$", result.stdout, re.MULTILINE)
    assert "1 pods ask for a part of one accelerator" in result.stderr
    found = printed("trace", "describe", path)
    assert (found["jobs"], found["size"]["most"], found["duration_s"]["mean"]) == (2, 2, 90)
    assert [(part["name"], part["jobs"]) for part in found["sizes"]] == [("1", 1), ("2", 1)]
    assert printed("trace", "describe", path, "--option", "fraction=drop")["jobs"] == 1


def test_a_description_may_be_kept_as_a_page_whole_or_not_at_all(written: Write, tmp_path: Path) -> None:
    path, out = written(*PODS), tmp_path / "seen"
    assert typed("trace", "describe", path, "--out", out).exit_code == 0
    assert sorted(file.name for file in out.iterdir()) == ["trace.html", "trace.json"]
    assert json.loads((out / "trace.json").read_text())["jobs"] == 2
    assert typed("trace", "describe", path, "--out", out).exit_code == 2
    assert typed("trace", "describe", path, "--out", out, "--force").exit_code == 0
    (out / "mine.txt").write_text("keep")
    assert typed("trace", "describe", path, "--out", out, "--force").exit_code == 2
    assert (out / "mine.txt").read_text() == "keep"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_converting_loses_nothing_that_the_native_format_holds(ending: str, written: Write, tmp_path: Path) -> None:
    path, new = written(*NATIVE), tmp_path / f"new{ending}"
    result = printed("trace", "convert", path, "--to", new)
    assert (result["jobs"], result["lost"]) == (2, [])
    assert same(read(path), read(new))


def test_what_the_native_format_cannot_hold_is_listed(written: Write, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    result = typed("trace", "convert", written(*PODS), "--to", new)
    assert result.exit_code == 0
    assert "not written: columns gpu_spec\n" in result.stderr
    assert read(new).status == ("failed", "finished")
    assert read(new).job_type is None


def test_the_date_of_time_0_has_no_place_in_a_native_trace(written: Write, tmp_path: Path) -> None:
    path = written("row,submit_time,user,gpus,nodes,run_time_s,status", "0,2017-08-07 10:03:01,1,1,2,60,Pass")
    result = printed("trace", "convert", path, "--to", tmp_path / "new.csv")
    columns, date = result["lost"]
    assert columns == "columns nodes" and date == "the date of time 0, 2017-08-07 10:03:01"


def test_a_file_in_the_way_and_a_strange_ending_are_refused_before_anything_is_read(
    written: Write, tmp_path: Path
) -> None:
    path = written(*PODS)
    (tmp_path / "there.csv").write_text("mine")
    for to in ("there.csv", "new.txt", "no/where.csv"):
        assert typed("trace", "convert", path, "--to", tmp_path / to).exit_code == 2
        assert typed("trace", "sample", path, "--out", tmp_path / to).exit_code == 2
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_sample_is_written_as_asked(written: Write, tmp_path: Path) -> None:
    lines = ["job_id,submitted_s,scale_factor,job_type,duration_s,tenant"]
    lines += [f"{m},{10 * m},1,,5,{'ann' if m % 2 else 'bo'}" for m in range(1000)]
    out = tmp_path / "part.csv"
    result = printed(
        *("trace", "sample", written(*lines), "--out", out, "--tenant", "ann", "--start", 1000, "--end", 5000),
        *("--rate", 0.5, "--load", 2, "--seed", 3),
    )
    part = read(out)
    assert result["jobs"] == len(part) == pytest.approx(100, abs=30)
    assert set(part.tenant) == {"ann"}
    assert part.submitted_s[-1] < 2000


def test_machines_are_shown_and_written_as_a_scenario_reads_them(written: Write, tmp_path: Path) -> None:
    path = written("sn,cpu_milli,memory_mib,gpu,model", "a,1,1,2,T4", "b,1,1,2,T4", "c,1,1,0,", name="nodes.csv")
    found = printed("trace", "machines", path, "--to", tmp_path / "machines.csv")
    assert (found["machines"], found["accelerators"], found["types"][0]["each"]) == (2, 4, "2")
    assert (tmp_path / "machines.csv").read_text() == "type,count,accelerators,rack\nt4,2,2,\n"
    assert "t4" in typed("trace", "machines", tmp_path / "machines.csv").stdout
    assert printed("trace", "describe", path) == found


def test_the_state_of_a_cluster_is_described_too(written: Write) -> None:
    path = written("time,active,total", "2017-10-03 00:00:00,300,400", "2017-10-03 00:01:00,100,400")
    assert printed("trace", "describe", path)["states"][0]["utilization"] == 0.5
    assert "50.0 %" in typed("trace", "describe", path).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "describe", "none.csv"),
        ("trace", "describe", "none.csv", "--format", "tirezias"),
        ("trace", "describe", "none.csv", "--option", "fraction"),
        ("trace", "describe", "none.csv", "--option", "a=1&b=2"),
        ("trace", "machines", "none.csv"),
        ("data", "get", "tirezias"),
        ("data", "get", "tiresias", "--mirror", "ftp://host"),
    ],
)
def test_misuse_is_answered_as_json_with_exit_code_2(words: tuple[str, ...]) -> None:
    result = typed(*words, "--json")
    assert result.exit_code == 2
    problem = json.loads(result.stdout)["error"]["problems"][0]
    assert problem["rule"] and problem["fix"]


def test_a_source_that_cannot_be_had_fails_with_exit_code_1(tmp_path: Path) -> None:
    result = typed("data", "get", "tiresias", "--out", tmp_path / "t", "--mirror", "http://127.0.0.1:9", "--json")
    assert result.exit_code == 1
    assert "could not be downloaded" in json.loads(result.stdout)["error"]["problems"][0]["rule"]
    assert list(tmp_path.iterdir()) == []


def test_the_sources_are_listed_with_licence_size_and_checksum() -> None:
    found = {one["name"]: one for one in printed("data", "list")}
    assert found["tiresias"]["checksum"] == "SHA-256"
    assert found["muri"]["checksum"] == "no published checksum"
    assert all(one["licence"] and one["files"] for one in found.values())
    assert "no published checksum" in typed("data", "list").stdout


@pytest.mark.parametrize("name", ["traces/tiresias", "traces/acme-kalos", "gavel/traces/small_test.trace"])
def test_a_real_trace_goes_through_all_three_commands(name: str, real: Real, tmp_path: Path) -> None:
    path, whole, part = real(name), tmp_path / "whole.parquet", tmp_path / "part.csv"
    jobs = printed("trace", "describe", path)["jobs"]
    assert printed("trace", "convert", path, "--to", whole)["jobs"] == jobs
    assert same(read(path, "auto"), read(whole))
    assert printed("trace", "sample", whole, "--out", part, "--max-jobs", 5)["jobs"] == 5


def test_every_format_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
    for name in FORMATS:
        assert f"## {name}\n" in page
