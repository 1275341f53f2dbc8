"""What the machine refuses, such as a file on a full disk, is one sentence; nothing half-written is left behind."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from tests.desk import typed

from eunomia.cli.errors import FAILED, handle_errors
from eunomia.inputs.disk_errors import REFUSALS

LARGEST = 16_384  # bytes of a file
SCENARIO = """\
cluster.accelerators = { gpu = 8 }
workload = { generator = "poisson", jobs = 400, rate_per_hour = 6.0 }
throughputs.source = "uniform"
"""
SWEEP = f"""\
keep_jobs = true
[axes]
"workload.jobs" = [5, 400]
[scenario]
{SCENARIO}"""


@contextmanager
def small_files() -> Iterator[None]:
    """Let no file grow beyond a few kilobytes, which stands for a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def native(jobs: int) -> str:
    rows = (f"job-{m},{m},1,LM,{60 + m}\n" for m in range(jobs))
    return "".join(("job_id,submitted_s,scale_factor,job_type,duration_s\n", *rows))


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "small.toml", "--record", "--out", "new"),
        ("compare", "small.toml", "--policy", "fifo", "--out", "new"),
        ("trace", "describe", "jobs.csv", "--out", "new"),
        ("trace", "convert", "jobs.csv", "--to", "new.csv"),
        ("trace", "sample", "jobs.csv", "--out", "new.parquet"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a record that cannot be closed
def test_a_command_ends_with_one_sentence_and_leaves_nothing(
    words: tuple[str, ...], as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SCENARIO)
    Path("jobs.csv").write_text(native(2000))
    with small_files():
        ended = typed(*words, *["--json"] * as_json)
    gc.collect()
    assert ended.exit_code == FAILED
    if as_json:
        [problem] = json.loads(ended.stdout)["error"]["problems"]
        assert (problem["file"], problem["rule"]) == (words[-1], REFUSALS[errno.EFBIG][0])
        assert ended.stderr == ""
    else:
        assert ended.stderr == f"error: {words[-1]}: {'; '.join(REFUSALS[errno.EFBIG])}\n"
    assert sorted(os.listdir()) == ["jobs.csv", "small.toml"]


def test_a_sweep_on_a_full_disk_ends_at_once_and_resumes_when_there_is_room(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(SWEEP)
    with small_files():
        ended = typed("sweep", file, "--out", out, "--jobs", 1)
    assert ended.exit_code == FAILED
    assert ended.stderr.splitlines()[-1] == f"error: {out}: {'; '.join(REFUSALS[errno.EFBIG])}"  # after the progress
    [finished] = (out / "runs").iterdir()
    assert json.loads((finished / "summary.json").read_text())["jobs_finished"] == 5
    assert not any((out / "errors").iterdir())
    again = typed("sweep", file, "--out", out, "--jobs", 1, "--json")
    result = json.loads(again.stdout)
    assert (again.exit_code, result["done_before"], len(result["runs"])) == (0, 1, 2)


@pytest.mark.parametrize("number", REFUSALS)
def test_an_error_of_the_system_is_reported_with_the_file_and_how_to_fix_it(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, handle_errors(False):
        raise OSError(number, os.strerror(number), "/some/file")
    assert ended.value.exit_code == FAILED
    rule, fix = REFUSALS[number]
    assert capsys.readouterr().err == f"error: /some/file: {rule}; {fix}\n"


@pytest.mark.parametrize(
    "error",
    [
        OSError("no number"),
        OSError(errno.ENOSPC, "no file, and no command with an output path"),
        FileNotFoundError(errno.ENOENT, "a file that the program forgot to make", "/some/file"),
        PermissionError(errno.EPERM, "no file: a process that is not ours"),
    ],
)
def test_an_error_that_may_be_ours_is_not_hidden(error: OSError) -> None:
    with pytest.raises(OSError) as raised, handle_errors(False):
        raise error
    assert raised.value is error
