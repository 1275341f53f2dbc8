"""The output of a job over its two parts: what is kept, where it begins, its end, and what was written since."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.backends.gangs_here import GangsHere
from tests.service.bench import LiveService, until

from eunomia.backends.processes.log_parts import LogWriter, PartsFile
from eunomia.backends.reports import GangEnded
from eunomia.inputs.spans import seconds_of
from eunomia.service import job_log
from eunomia.service.job_log import JobLog


def writer_of(path: Path, limit: int, now: float = 0.0) -> LogWriter:
    return LogWriter(str(path), os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), limit, now)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pieces=st.lists(st.binary(min_size=1, max_size=70), max_size=12), begun_anew=st.integers(0, 12))
def test_a_byte_keeps_its_number_while_parts_come_and_go(tmp_path: Path, pieces: list[bytes], begun_anew: int) -> None:
    path = tmp_path / os.urandom(8).hex()
    written, writer = b"", writer_of(path, 50)
    for number, piece in enumerate(pieces):
        if number == begun_anew:  # another start of the job
            writer = writer_of(path, 50)
        writer.write(piece, 0.0)
        written += piece
        found = JobLog(path).read(0)
        assert found.size == len(written)
        assert found.size - found.first >= min(len(written), 50)
        assert found.start == found.first
        for start in range(found.first, found.size + 1):
            assert JobLog(path).read(start).data == written[start:]
        assert JobLog(path).read(found.size + 1).start == found.first


def test_the_last_lines_are_found_over_both_parts(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "log", 100)
    for number in range(100):
        writer.write(f"line {number:02}\n".encode(), 0.0)
    output = JobLog(tmp_path / "log")
    assert len((tmp_path / "log").read_bytes()) < 8 * 15
    for count in (1, 2, 12, 15):
        assert output.read(output.start_of_lines(count)).text().split("\n") == [
            *(f"line {number:02}" for number in range(100 - count, 100)), "",
        ]  # fmt: skip
    assert output.start_of_lines(1000) == output.read(0).first
    assert output.read_end(20).text() == "line 98\nline 99\n"
    writer.write(b"not ended", 0.0)
    assert output.read(output.start_of_lines(2)).text() == "line 99\nnot ended"


def test_what_was_written_since_a_time_is_found_also_over_parts(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "log", 4000, now=1000.0)
    for minute in range(30):
        writer.write(f"{minute:02}".encode() * 150, 1000.0 + 60 * minute)
    output = JobLog(tmp_path / "log")
    assert output.read(0).first > 0
    assert output.read(output.start_of_time(1000.0 + 60 * 27)).text() == "27" * 150 + "28" * 150 + "29" * 150
    assert output.read(output.start_of_time(1000.0 + 60 * 27 + 59)).text() == "27" * 150 + "28" * 150 + "29" * 150
    assert output.read(output.start_of_time(0.0)).start == output.read(0).first


def test_a_chatty_job_notes_few_times_and_none_in_its_first_seconds(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "log", 10**6, now=0.0)
    for tenth in range(100):
        writer.write(b"x" * 1000, tenth / 10)
    assert not (tmp_path / "log.parts").exists()
    for second in range(10, 70):
        writer.write(b"x" * 1000, float(second))
    assert len((tmp_path / "log.parts").read_text().splitlines()) == 6


def test_a_log_of_before_with_two_parts_is_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_text("old\n")
    (tmp_path / "log").write_text("new\n")
    assert JobLog(tmp_path / "log").read(0).text() == "old\nnew\n"
    (tmp_path / "log").unlink()  # between two renames, for longer than one waits
    assert JobLog(tmp_path / "log").read(0).text() == "old\n"
    (tmp_path / "log.1").unlink()
    assert JobLog(tmp_path / "log").read(7).size == 0


def test_parts_that_move_while_they_are_opened_are_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, written = writer_of(tmp_path / "log", 50), bytes(range(200))
    writer.write(written[:80], 0.0)
    late = [written[80:]]

    class ReadLate(PartsFile):
        def __init__(self, log: str) -> None:
            if late:
                writer.write(late.pop(), 0.0)
            super().__init__(log)

    monkeypatch.setattr(job_log, "PartsFile", ReadLate)
    found = JobLog(tmp_path / "log").read(60)
    assert (found.first, found.size, found.data) == (100, 200, written[100:])


@pytest.mark.parametrize(
    "line", ["part 1", "part x 5", f"part INODE {'9' * 400}", "part INODE -1", "time nan", "time 5 1e3", "\0\xff", "[]"]
)
def test_a_line_about_parts_that_cannot_be_used_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "log").write_text("all of it\n")
    inode = (tmp_path / "log").stat().st_ino
    (tmp_path / "log.parts").write_bytes(line.replace("INODE", str(inode)).encode("latin-1") + b"\n")
    assert JobLog(tmp_path / "log").read(0).text() == "all of it\n"
    assert JobLog(tmp_path / "log").start_of_time(10.0) == 0


def test_a_pipe_in_the_place_of_a_log_is_an_error_and_one_beside_it_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("all of it\n")
    os.mkfifo(tmp_path / "log.parts")
    assert JobLog(tmp_path / "log").read(0).text() == "all of it\n"
    (tmp_path / "log").unlink()
    os.mkfifo(tmp_path / "log")
    with pytest.raises(OSError, match="not a plain file"):
        JobLog(tmp_path / "log").read(0)


def test_a_character_that_two_pieces_share_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "CHUNK_BYTES", 5)
    text = "aé€😀" * 10
    (tmp_path / "log").write_text(text)
    found, start = "", 0
    while (piece := JobLog(tmp_path / "log").read(start)).data:
        found, start = found + piece.text(), piece.end
    assert found == text


def test_standard_error_apart_has_a_log_of_its_own_with_parts_and_says_why_the_job_failed(tmp_path: Path) -> None:
    world = GangsHere(tmp_path, log_bytes=10_000)
    script = """
import sys
for number in range(3000):
    print(f"line {number:05}")
    print(f"error {number:05}", file=sys.stderr)
sys.exit(3)
"""
    world.launch("a", "-c", script, stderr="apart")
    ended = world.wait(GangEnded, "a")
    assert (ended.outcome, "error 02999" in ended.reason) == ("failed", True)
    for name, word in (("log", "line"), ("errors", "error")):
        output = JobLog(tmp_path / "jobs" / "a" / name)
        assert output.read(output.start_of_lines(2)).text() == f"{word} 02998\n{word} 02999\n"
        assert output.read(0).size >= 3000 * len(f"{word} 00000\n")
        assert {line.split()[0] for line in output.read(0).text().splitlines()[1:]} == {word}
    world.launch("a", "-c", "print('of this start'); exit(3)", epoch=2, stderr="apart")
    assert "of this start" in world.wait(GangEnded, "a").reason
    world.end()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("1.5", 1.5), ("10m", 600.0), ("1h30m", 5400.0), ("2d", 172_800.0), ("10:30", 630.0),
     ("01:00:05", 3605.0), ("1-12", 129_600.0), ("2-00:00:30", 172_830.0), ("", None), ("m", None), ("10 m", None),
     ("inf", None), ("1h x", None), ("-", None), (f"{'9' * 400}m", None),
     (f"{'9' * 400}-0", None)],
)  # fmt: skip
def test_a_length_of_time_is_read_as_people_type_it(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_output_is_read_by_its_end_by_time_and_by_stream_and_many_jobs_are_cancelled(shared: LiveService) -> None:
    ann = shared.client("ann", "logs")

    def typed(*words: str, code: int = 0) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "eunomia", *words], cwd=shared.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "EUNOMIA_TOKEN": ann.address.token, "EUNOMIA_URL": shared.url},
        )  # fmt: skip
        assert said.returncode == code, said.stderr
        return said.stdout or said.stderr

    script = "import sys; print('\\n'.join(map(str, range(1000)))); print('oops', file=sys.stderr)"
    job = ann.submit({"command": ["python", "-c", script], "stderr": "apart"})["id"]
    until(lambda: ann.get(f"/v1/jobs/{job}")["state"] == "succeeded")
    assert typed("logs", job, "--tail", "2") == "998\n999\n"
    assert typed("logs", job, "--tail", "2", "-f") == "998\n999\n"
    assert typed("logs", job, "--since", "10m").splitlines()[-1] == "999"
    assert typed("logs", job, "--errors") == "--- epoch 1\noops\n"
    assert json.loads(typed("logs", job, "--tail", "1", "--json"))["log"] == "999\n"
    assert "must be a length of time" in typed("logs", job, "--since", "soon", code=2)
    for query in ("tail=0", "tail=x", "since=soon", "stream=both"):
        with pytest.raises(Exception, match="a parameter cannot be used"):
            ann.get(f"/v1/jobs/{job}/log?{query}")
    one, two = (ann.submit({"command": ["sleep", "600"], "max_run_s": 600})["id"] for _ in range(2))
    said = typed("cancel", one, "no-such", two, code=1)
    assert [line.split(": ")[1] for line in said.splitlines()] == ["cancelled", "refused", "cancelled"]
    (shared.folder / "jobs.jsonl").write_text('{"command": ["pwd"]}\n{"command": ["pwd"], "cwd": "/"}\n')
    here, root = typed("submit", "--file", "jobs.jsonl").split()
    until(lambda: all(ann.get(f"/v1/jobs/{one}")["state"] == "succeeded" for one in (here, root)))
    assert typed("logs", here, "--tail", "1").strip() == str(shared.folder.resolve())
    assert typed("logs", root, "--tail", "1").strip() == "/"
    job = typed("submit", "--max-run", "1-12", "--", "sleep", "9").strip()
    assert ann.get(f"/v1/jobs/{job}")["spec"]["max_run_s"] == 129_600, ann.get(f"/v1/jobs/{job}")
    assert typed("cancel", job) == f"{job}: cancelled\n", ann.get(f"/v1/jobs/{job}")
    assert "must be a length of time" in typed("submit", "--max-run", "long", "--", "true", code=2)
