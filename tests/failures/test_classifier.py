"""Of all that a log says, the line that names the cause counts."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.failures.logs import LOGS
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.failures import classify
from eunomia.failures.classifier import CATEGORY, WORDS, classify_lines
from eunomia.failures.logs import read_ends
from eunomia.failures.philly_reasons import REASONS
from eunomia.failures.signatures import SIGNATURES, Signature

TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n    f()\n'
LONG_WORK = "".join(f"Epoch 1 step {k} loss 1\n" for k in range(20))
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


@pytest.mark.parametrize(("reason", "line", "log"), LOGS)
def test_a_log_is_classified_with_its_line_and_category(reason: str, line: int, log: str) -> None:
    found = classify(log)
    assert (found.reason, found.line) == (reason, line or None)
    assert found.category == CATEGORY[reason]


def test_every_reason_of_the_table_has_a_log_here_and_a_signature() -> None:
    names = {reason.name for reason in REASONS}
    assert {reason for reason, _, _ in LOGS} == names
    assert {one.reason for one in SIGNATURES} == names - {"No signature"}
    assert len({one.name for one in SIGNATURES}) == len(SIGNATURES) >= 40


@pytest.mark.parametrize(
    ("why", "log", "reason"),
    [
        ("a rank's cause before the others' noise",
         f"[rank1]: {OOM}\nstep 101 loss 2.0\n[rank0]: torch.distributed.DistBackendError: NCCL error: remote process "
         "exited\nsrun: error: n1: tasks 0-1: Exited with exit code 1\n", "GPU out of memory"),
        ("noise first, cause later",
         f"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:911, unhandled cuda error, NCCL version 2.10\n{OOM}\n",
         "GPU out of memory"),
        ("a file that is missed and skipped", "WARNING: No such file or directory: x.jpg\n" + TRACEBACK +
         "RuntimeError: no\n", "Traceback from crash"),
        ("an optional module, and much later the end",
         "ImportError: No module named apex\n" + LONG_WORK + TRACEBACK + "ValueError: bad\n",
         "Semantic error"),
        ("an optional module, and soon the end",
         "ImportError: No module named apex\nEpoch 1 step 5 loss 1\n" + OOM, "GPU out of memory"),
        ("an optional module, and then a lost peer after long work",
         "ImportError: No module named apex\n" + LONG_WORK + "NCCL error: timeout\n",
         "MPI runtime failure"),
        ("code that is quoted",
         'Traceback (most recent call last):\n  File "t.py", line 1, in f\n    raise Stop("CUDA out of memory?")\n'
         "trainer.Stop\nPermissionError: [Errno 13]\n", "Permission error"),
        ("an exception that Python ignored",
         "Exception ignored in: <function Loader.__del__ at 0x7f>\n" + TRACEBACK + "AttributeError: 'NoneType'\n" +
         "OSError: [Errno 28] No space left on device\n", "Model ckpt error"),
        ("a lookup that failed on the way",
         TRACEBACK + "KeyError: 'train'\n\nDuring handling of the above exception, another exception occurred:\n\n" +
         TRACEBACK + "FileNotFoundError: train.tsv\n", "Incorrect inputs"),
        ("a cause that another exception wraps",
         TRACEBACK + OOM + "\n\nDuring handling of the above exception, another exception occurred:\n\n" +
         TRACEBACK + "AttributeError: no state\n", "GPU out of memory"),
        ("colours", "\x1b[31;1mModuleNotFound\x1b[0mError: No module\x1b[0m named x\n", "Import error"),
        ("a progress bar", "10%|#   | 1/10\r20%|##  | 2/10\r" + OOM + "\n", "GPU out of memory"),
        ("a bar at another level", "INFO 10%|#   | 1/10\rMemoryError: no room\n", "CPU out of memory"),
        ("words in settings", "args: {'on_error': 'retry', 'max_failures': 3, 'nan': 'raise'}\n", "No signature"),
        ("talk of errors", "0 errors, 0 failures in validation\nerror rate: 0.13\nmean squared error 0.2\n",
         "No signature"),
        ("a message at the wrong level", "I0501 11:00:00.123456 7 log.cc:1] no error: Permission denied count 0\n",
         "No signature"),
        ("a retry that helped", "Connection reset by peer, retrying (1/3)\nEpoch 1 step 1\n" + TRACEBACK +
         "ValueError: x\n", "Semantic error"),
        ("only an exit code", "python exited with code 139\n", "Core dump"),
        ("another exit code", "python exited with code 3\n", "No signature"),
        ("loss scaling", "Gradient overflow. Skipping step, loss scaler reducing loss scale to inf\n", "No signature"),
        ("gradients that were passed over", "WARNING gradient norm is nan, skipping the step\n" + TRACEBACK +
         "ValueError: bad\n", "Semantic error"),
        ("ranks' prefixes", "[1,3]<stderr>: ModuleNotFoundError: No module named 'x'\n", "Import error"),
        ("Windows line ends", "Traceback (most recent call last):\r\nMemoryError\r\n", "CPU out of memory"),
        ("nothing", "", "No signature"),
    ],
)  # fmt: skip
def test_what_is_not_the_cause_is_passed_over(why: str, log: str, reason: str) -> None:
    assert classify(log).reason == reason, why


@given(st.text(max_size=400))
def test_any_text_has_a_verdict_whose_line_is_in_it(log: str) -> None:
    found = classify(log)
    assert found.category == CATEGORY[found.reason]
    assert found.line is None or 1 <= found.line <= log.count("\n") + 1


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_of_a_long_log_both_ends_are_read_and_lines_keep_their_numbers(ends: str) -> None:
    lines = [f"line {n}" for n in range(1, 2_000_001)]
    lines[4], lines[1_000_000], lines[-3] = "early", "middle", "late"
    log = io.BytesIO(ends.join(lines).encode())
    seen = {text.strip(): number for number, text in read_ends(log, head_bytes=1000, tail_bytes=1000)}
    assert (seen["early"], seen["late"], seen["line 2000000"]) == (5, 1_999_998, 2_000_000)
    assert "middle" not in seen


def test_a_step_that_many_ranks_log_is_one_step() -> None:
    step = [f"[rank{rank}] epoch 1 step {k} loss {2.0 + rank / 100}" for k in range(30) for rank in range(16)]
    after = [f"[rank{rank}] epoch 1 step 30 loss 1.9" for rank in range(16) if rank != 3]
    aborts = ["[rank5] NCCL error: unhandled system error", "job aborted: rank 5 exited"]
    log = [*step, f"[rank3] {OOM}", *after, *aborts]
    found = classify("\n".join(log))
    assert (found.reason, found.line) == ("GPU out of memory", len(step) + 1)
    survived = [f"[rank0] {OOM}", *step, *aborts]
    assert classify("\n".join(survived)).reason == "MPI runtime failure"


@pytest.mark.parametrize(
    ("between", "end"), [*(pytest.param("\r", end, marks=pytest.mark.slow) for end in ("\r", "\n")), ("", "")]
)
def test_a_long_log_of_one_line_is_read_at_its_end(between: str, end: str) -> None:
    bar = f"10% 5 it/s{between}".encode() * 2_000_000
    found = classify_lines(read_ends(io.BytesIO(bar + b" MemoryError" + end.encode())))
    assert (found.reason, found.line) == ("CPU out of memory", 1)


def test_a_packed_log_is_unpacked_and_one_that_is_damaged_is_named(tmp_path: Path) -> None:
    whole, half = tmp_path / "a.log.gz", tmp_path / "b.log"
    whole.write_bytes(gzip.compress(f"step 1\n{OOM}\n".encode()))
    half.write_bytes(whole.read_bytes()[:-9])
    found = CliRunner().invoke(app, ["failures", "classify", str(whole), "--json"])
    assert json.loads(found.stdout)["reason"] == "GPU out of memory"
    refused = CliRunner().invoke(app, ["failures", "classify", str(whole), str(half)])
    assert refused.exit_code == 2
    assert "b.log" in refused.output
    assert "cannot be read" in refused.output


def test_bytes_that_are_no_text_are_passed_over_and_utf_16_is_read() -> None:
    broken = b"\xff\xfa\x00\nstep \xc3\x28\nMemoryError\n"
    assert classify_lines(read_ends(io.BytesIO(broken))).line == 3
    wide = "Epoch 1\nMemoryError\n".encode("utf-16")
    assert classify_lines(read_ends(io.BytesIO(wide))).line == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_and_without_a_mark_however_long_the_log_is(encoding: str) -> None:
    short = "Epoch 1\r\nüber\r\nMemoryError: no room\r\n".encode(encoding)
    assert classify_lines(read_ends(io.BytesIO(short))).line == 3
    lines = [f"line {n} Ċ" for n in range(1, 700_001)]  # Ċ is U+010A: a byte of it looks like the end of a line
    lines[4], lines[350_000], lines[-3] = "early", "middle", "late"
    log = io.BytesIO("\n".join(lines).encode(encoding))
    seen = {text: number for number, text in read_ends(log, head_bytes=1001, tail_bytes=1001)}
    assert (seen["early"], seen["late"], seen["line 700000 Ċ"]) == (5, 699_998, 700_000)
    assert "middle" not in seen


def test_the_command_tells_reason_category_signature_and_line(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("step 1\n" + OOM + "\n")
    result = CliRunner().invoke(app, ["failures", "classify", str(log), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "file": str(log), "reason": "GPU out of memory", "category": "AE", "signature": "torch-out-of-memory",
        "line": 2, "text": OOM,
    }  # fmt: skip
    two = CliRunner().invoke(app, ["failures", "classify", str(log), "-", "--json"], input="all well\n")
    assert [one["reason"] for one in json.loads(two.stdout)] == ["GPU out of memory", "No signature"]
    assert "torch-out-of-memory" in CliRunner().invoke(app, ["failures", "list"]).stdout


def test_logs_that_cannot_be_read_are_all_named(tmp_path: Path) -> None:
    there = tmp_path / "job.log"
    there.write_text(OOM)
    result = CliRunner().invoke(app, ["failures", "classify", str(tmp_path), str(there), "no-such.log", "--json"])
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert [problem["file"] for problem in error["problems"]] == [str(tmp_path), "no-such.log"]
    assert all(problem["rule"] and problem["fix"] for problem in error["problems"])


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda one: one.name)
@given(st.data())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_what_matches_a_signature_has_one_of_the_words_that_are_looked_for_first(
    signature: Signature, data: st.DataObject
) -> None:
    line = data.draw(st.from_regex(signature.pattern, alphabet=st.characters(codec="ascii")))
    assert any(word in line.lower() for word in WORDS)
