"""Terminals and notebooks: who is let in, what passes through, what ends them, and what a hostile job cannot do."""

from __future__ import annotations

import asyncio
import fcntl
import http.client
import os
import pty
import pwd
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ADMIN, ANN, BOB, OPERATOR, SITE, Bench, LiveService, until

from eunomia.backends.processes import interactive_session
from eunomia.backends.processes.interactive_session import (
    DATA,
    EXIT,
    MOST_FRAME,
    NOTICE,
    SOCKET,
    Pipe,
    Session,
    StreamConnection,
    frame,
)
from eunomia.backends.processes.session_socket import connect_session
from eunomia.backends.reports import GangEnded, Launched, SessionIdle, StepsSaved
from eunomia.inputs.problems import InvalidInput
from eunomia.service.client import Client, ServiceRefusal, Unreachable
from eunomia.service.draining import NOW
from eunomia.service.http.budgets import MOST_SESSIONS
from eunomia.service.http.session_streams import Sessions
from eunomia.service.messages import Attach, ChangeNode, Hold, Principal, Request
from eunomia.service.session_client import SessionStream, wait_until_ready
from eunomia.service.site import load_site, plan

SHELL = {"command": ["/bin/sh"], "interactive": "shell", "env": {"PS1": "ready> "}}
IDLE_SITE = SITE + "[interactive]\nlongest_s = 7200\nidle_warn_s = 100\nidle_end_s = 1000\n"
PROMPT = b"ready> "


class Screen:
    """A stream and what it has shown; frames are read as they are waited for."""

    opened: ClassVar[list[SessionStream]] = []

    def __init__(self, client: Client, job_id: str, **query: int) -> None:
        self.stream = wait_until_ready(client, job_id, **({"rows": 24, "columns": 80} | query))
        self.opened.append(self.stream)
        self.shown, self.notice = b"", b""
        self.code: int | None = None
        self.frames = self.stream.frames()

    def wait_for(self, text: bytes) -> bytes:
        while text not in self.shown:
            self.take(next(self.frames))
        found, _, self.shown = self.shown.partition(text)
        return found

    def take(self, frame: tuple[bytes, bytes]) -> None:
        kind, data = frame
        if kind == DATA:
            self.shown += data
        elif kind == EXIT:
            self.code = int(data)
        elif kind == NOTICE:
            self.notice += data

    def end(self) -> int | None:
        for one in self.frames:
            self.take(one)
        return self.code

    def type(self, text: bytes) -> None:
        self.stream.send(DATA, text)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the streams of a test."""
    yield
    while Screen.opened:
        Screen.opened.pop().close()


def started(client: Client, **more: Any) -> str:
    job_id = str(client.submit({**SHELL, **more})["id"])
    until(lambda: state(client, job_id) == "running")
    return job_id


def state(client: Client, job_id: str) -> str:
    return str(client.get(f"/v1/jobs/{job_id}")["state"])


def refused(client: Client, job_id: str) -> tuple[int, str]:
    with pytest.raises(ServiceRefusal) as error:
        SessionStream(client, job_id)
    return error.value.status, str(error.value.problem["type"]).rpartition(":")[2]


# ---- what passes through ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path_factory.mktemp("interactive"), SITE.replace("cpu = 2", "cpu = 8"))
    service.start()
    yield service
    service.kill(signal.SIGTERM)
    service.stop_jobs()


def test_a_terminal_echoes_has_the_size_of_its_client_takes_ctrl_c_and_ends_with_the_code_of_its_shell(
    running: LiveService,
) -> None:
    ann = running.client("ann", "vision")
    screen = Screen(ann, job := started(ann), rows=33, columns=101)
    screen.wait_for(PROMPT)
    screen.type(b"stty size; tty; id -u\r")
    assert b"33 101" in (said := screen.wait_for(PROMPT)) and b"/dev/pts/" in said
    screen.stream.send_size(40, 120)
    screen.type(b"stty size\r")
    assert b"40 120" in screen.wait_for(PROMPT)
    screen.type(b"sleep 1000\r")
    screen.wait_for(b"sleep 1000")
    screen.type(b"\x03")
    screen.wait_for(PROMPT)
    screen.type(b"exit 7\r")
    assert screen.end() == 7
    until(lambda: state(ann, job) == "failed")
    assert ann.get(f"/v1/jobs/{job}")["reason"].startswith("exit code 7")


def test_what_a_short_command_has_shown_waits_for_its_client(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann, command=["sh", "-c", "echo it was short"])
    screen = Screen(ann, job)
    assert screen.end() == 0 and b"it was short" in screen.shown
    until(lambda: state(ann, job) == "succeeded")


def test_a_login_shell_that_ends_with_the_code_of_its_last_command_has_not_failed(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann, command=["$SHELL"], env={"SHELL": "/bin/sh", "PS1": "ready> "})
    screen = Screen(ann, job)
    screen.wait_for(PROMPT)
    screen.type(b"false; exit\r")
    assert screen.end() == 1
    until(lambda: state(ann, job) == "succeeded")


def test_ten_megabytes_of_output_hold_nothing_up_with_or_without_a_reader(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann, command=["sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo done; exec sh"])
    screen = Screen(ann, job)  # that reads nothing
    other = Screen(ann, started(ann))
    other.wait_for(PROMPT)
    other.type(b"echo an''swered\r")
    other.wait_for(b"answered")
    screen.stream.close()
    again = Screen(ann, job)
    again.wait_for(b"done")
    for one in (again, other):
        one.type(b"exit\r")
        one.end()


def test_input_that_is_sent_again_is_taken_once_and_a_gap_is_refused(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    screen = Screen(ann, started(ann))
    screen.wait_for(PROMPT)
    screen.type(b"echo on''ce\r")
    screen.stream._sent = 0
    screen.type(b"echo on''ce\r")
    screen.wait_for(b"once\r\n")
    screen.stream._sent = 10_000
    with pytest.raises(Unreachable):
        screen.type(b"x")
    screen.stream._sent = len(b"echo on''ce\r") + 5
    screen.type(b"exit\r")
    assert screen.end() == 0 and b"once" not in screen.shown


def test_a_second_client_takes_the_terminal_over_and_sees_what_was_shown_last(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    first = Screen(ann, job := started(ann))
    first.wait_for(PROMPT)
    first.type(b"echo ma''rk\r")
    first.wait_for(b"mark")
    second = Screen(ann, job)
    second.wait_for(b"mark")
    with pytest.raises(StopIteration):
        first.wait_for(b"nothing more")
    assert b"another client" in first.notice
    second.type(b"exit\r")
    assert second.end() == 0


# ---- who is let in ---------------------------------------------------------------------------------------------------


def test_only_who_submitted_it_is_let_in_whatever_their_role(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann)
    screen = Screen(ann, job)
    for user, tenant, role, expected in (
        ("bob", "speech", "submitter", (404, "no_such_job")),
        ("ann", "speech", "submitter", (404, "no_such_job")),
        ("eve", "vision", "submitter", (403, "forbidden")),
        ("eve", "vision", "tenant-admin", (403, "forbidden")),
        ("op", "operators", "operator", (403, "forbidden")),
        ("ann", "operators", "operator", (403, "forbidden")),
        ("ann", "vision", "viewer", (403, "forbidden")),
    ):
        other = running.client(user, tenant, role)
        assert refused(other, job) == expected, (user, tenant, role)
        path = f"/v1/jobs/{job}/session/{screen.stream._id}"
        connection = other.connect()
        status = other.post_bytes(connection, path, b"D\0\0\0\1x")
        connection.close()
        assert status == (403 if role == "viewer" else 404)
    batch = ann.submit({"command": ["sleep", "600"]})["id"]
    until(lambda: state(ann, batch) == "running")
    assert refused(ann, batch) == (409, "not_interactive")
    ann.send("DELETE", f"/v1/jobs/{batch}")
    screen.type(b"exit\r")
    screen.end()
    until(lambda: state(ann, job) == "succeeded")
    assert refused(ann, job) == (409, "over")


def test_a_stream_ends_with_the_token_that_opened_it_and_the_shell_goes_on(running: LiveService) -> None:
    made = running.operator.send("POST", "/v1/tokens", {"user": "ann", "tenant": "vision", "role": "submitter"})
    first = Client(type(running.operator.address)(running.url, made["token"]))
    screen = Screen(first, job := started(first))
    screen.wait_for(PROMPT)
    running.operator.send("DELETE", f"/v1/tokens/{made['id']}")
    assert screen.end() is None
    ann = running.client("ann", "vision")
    again = Screen(ann, job)
    again.type(b"exit\r")
    assert again.end() == 0


def test_attaching_is_in_the_audit_log_and_only_who_may_is(bench: Bench) -> None:
    job = bench.submit(interruptible=False, interactive="shell").body["id"]
    bench.do(Launched(job, 1))
    ann_elsewhere = Principal("ann", "speech", "submitter")
    codes, noted = [], []
    for who in (ANN, BOB, ADMIN, OPERATOR, ann_elsewhere):
        turn = bench.writer.turn([Request(Attach(job), who)])
        codes.append(turn.replies[0].status)  # type: ignore[union-attr]
        noted += turn.audit
    assert codes == [200, 404, 403, 403, 404]
    assert noted == [("ann", "submitter", "", "attach", job)]


def test_a_user_has_so_many_streams_at_once_and_others_have_theirs() -> None:
    sessions = Sessions()
    assert [sessions.take(("ann", "vision")) for _ in range(100)] == [True] * MOST_SESSIONS + [False] * (
        100 - MOST_SESSIONS
    )
    assert sessions.take(("bob", "speech"))
    sessions.leave(("ann", "vision"))
    assert sessions.take(("ann", "vision")) and not sessions.take(("ann", "vision"))


def test_a_client_that_is_gone_before_the_first_frame_takes_no_stream_away(tmp_path: Path) -> None:
    from types import SimpleNamespace

    from eunomia.service.http.session_routes import SessionResponse

    async def answer() -> None:
        sessions, (ours, theirs) = Sessions(), socket.socketpair()
        assert sessions.take(("ann", "vision"))
        stream = await sessions.begin("1-a", ("ann", "vision"), ours, b"")
        response = SessionResponse(SimpleNamespace(sessions=sessions), stream)  # type: ignore[arg-type]
        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, gone, ignore)
        assert sessions.find(stream.id, "1-a", ("ann", "vision")) is None
        assert all(sessions.take(("ann", "vision")) for _ in range(MOST_SESSIONS))
        theirs.close()

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def ignore(message: Any) -> None:
        pass

    asyncio.run(answer())


def test_a_try_to_attach_that_found_no_process_is_not_in_the_audit_log(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    gone = "import os; os.chdir(os.path.dirname(os.environ['EUNOMIA_LEASE_FILE'])); os.unlink('session.sock')"
    job = started(ann, command=["sh", "-c", f'{sys.executable} -c "{gone}"; touch gone; exec sleep 600'])
    until((running.folder / "state" / "jobs" / job / "gone").exists)
    for _ in range(3):
        assert refused(ann, job) == (409, "not_ready")
    assert job not in str(running.operator.get("/v1/audit", action="attach"))
    ann.send("DELETE", f"/v1/jobs/{job}")


def test_a_hundred_attaches_leave_one_and_a_service_that_answers(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann)
    opened = []
    for _ in range(100):
        opened.append(Screen(ann, job))
    opened[-1].type(b"echo la''st; exit\r")
    assert opened[-1].end() == 0 and b"last" in opened[-1].shown
    for one in opened:
        one.stream.close()


# ---- what a hostile job cannot do ------------------------------------------------------------------------------------


def listening(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.bind(str(path))
    found.listen()
    return found


def test_no_link_file_or_pipe_in_place_of_the_socket_is_followed() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, elsewhere = Path(name, "job"), Path(name, "other.sock")
        folder.mkdir()
        with listening(elsewhere):
            (folder / SOCKET).symlink_to(elsewhere)
            with pytest.raises(PermissionError):
                connect_session(folder, os.getuid())
            (folder / SOCKET).unlink()
            (folder / SOCKET).write_text("")
            with pytest.raises(PermissionError):
                connect_session(folder, os.getuid())
            (folder / SOCKET).unlink()
            os.mkfifo(folder / SOCKET)
            with pytest.raises(PermissionError):
                connect_session(folder, os.getuid())
            (folder / SOCKET).unlink()
            with pytest.raises(FileNotFoundError):
                connect_session(folder, os.getuid())
            Path(name, "link").symlink_to(folder)
            with listening(folder / SOCKET):
                connect_session(folder, os.getuid()).close()
                with pytest.raises(OSError, match="link"):
                    connect_session(Path(name, "link"), os.getuid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has sockets of several users")
def test_a_socket_or_a_listener_of_another_user_is_refused() -> None:
    mail = pwd.getpwnam("mail").pw_uid
    with tempfile.TemporaryDirectory() as name, listening(Path(name, SOCKET)):
        with pytest.raises(PermissionError):
            connect_session(Path(name), mail)
        os.chown(Path(name, SOCKET), mail, -1)  # the file is theirs, who listens is not
        with pytest.raises(PermissionError):
            connect_session(Path(name), mail)


def test_a_job_that_speaks_nonsense_in_place_of_its_process_ends_its_own_stream_alone(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    fake = (
        "import os, socket\n"
        "os.chdir(os.path.dirname(os.environ['EUNOMIA_LEASE_FILE']))\n"
        "os.unlink('session.sock'); s = socket.socket(socket.AF_UNIX); s.bind('session.sock'); s.listen()\n"
        "open('replaced', 'w').close()\n"
        "while True: c, _ = s.accept(); c.sendall(b'D' + b'\\xff' * 100)\n"
    )
    job = started(ann, command=[sys.executable, "-c", fake])
    until((running.folder / "state" / "jobs" / job / "replaced").exists)
    screen = Screen(ann, job)
    assert screen.end() is None and not screen.shown
    assert ann.get("/v1/cluster")
    ann.send("DELETE", f"/v1/jobs/{job}")


# ---- what ends one, and what does not --------------------------------------------------------------------------------


def test_a_shell_survives_the_service_and_is_attached_to_again(live: LiveService) -> None:
    live.start()
    ann = live.client("ann", "vision")
    screen = Screen(ann, job := started(ann))
    screen.wait_for(PROMPT)
    screen.type(b"HERE=be''fore; echo se''t\r")
    screen.wait_for(b"set")
    live.kill()
    with pytest.raises(Unreachable):
        screen.end()
    live.start()
    ann = Client(type(ann.address)(live.url, ann.address.token))
    until(lambda: state(ann, job) == "running")
    again = Screen(ann, job)
    again.type(b"echo $HERE; exit 3\r")
    assert again.end() == 3 and b"before" in again.shown


def processes(word: str) -> int:
    found = subprocess.run(["pgrep", "-c", "-f", word.replace(".", "[.]")], capture_output=True, check=False)
    return int(found.stdout)


def test_its_time_ends_it_with_what_runs_in_it(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann, max_run_s=3)
    screen, word = Screen(ann, job), f"sleep 4321.{os.getpid()}"  # that of no other run of this test
    screen.type(f"{word} &\r {word}\r".encode())
    until(lambda: processes(word) == 2)
    assert screen.end() in (None, -signal.SIGHUP)
    until(lambda: state(ann, job) == "failed")
    assert "max_run_s" in ann.get(f"/v1/jobs/{job}")["reason"]
    until(lambda: processes(word) == 0)  # the state is decided first, and then they are ended


def test_an_idle_one_is_named_and_ended_and_one_that_is_used_is_not(bench: Bench, tmp_path: Path) -> None:
    bench.restart(IDLE_SITE)
    job = bench.submit(interruptible=False, interactive="shell").body["id"]
    bench.do(Launched(job, 1))
    row = bench.controller.rows[job]
    assert row.spec["max_run_s"] == 7200
    bench.clock.at = 50.0
    bench.do(SessionIdle(job, 1, 40.0))
    bench.clock.at = 111.0
    bench.do()
    assert bench.controller.rows[job].reason.startswith("idle for 1.67 min and longer: no input")
    bench.do(SessionIdle(job, 1, None))
    assert bench.controller.rows[job].reason == ""
    bench.clock.at = 1100.0
    bench.do()
    assert bench.state(job) == "running"
    bench.do(SessionIdle(job, 1, 90.0))
    bench.restart()
    bench.clock.at = 1111.0
    bench.do()
    assert bench.controller.rows[job].reason.startswith("idle for 1.67 min")
    bench.clock.at = 2009.0
    bench.do()
    assert bench.state(job) == "running"
    bench.clock.at = 2011.0
    bench.do()
    assert bench.state(job) == "cancelled"
    (ended,) = [order for order in bench.orders if getattr(order, "job_id", "") == job]
    assert type(ended).__name__ == "Halt"


def test_other_times_of_the_site_hold_for_those_that_run(bench: Bench) -> None:
    from eunomia.service.site_change import apply_site

    bench.restart(IDLE_SITE)
    job = bench.submit(interruptible=False, interactive="shell").body["id"]
    bench.do(Launched(job, 1), SessionIdle(job, 1, 0.0))
    bench.path.write_text(IDLE_SITE.replace("idle_end_s = 1000", "idle_end_s = 60"))
    change = apply_site(bench.writer, load_site(bench.path), OPERATOR, "")
    assert change.lines == ("interactive.idle_end_s: 1000.0 → 60.0",) and not change.anew
    bench.clock.at = 61.0
    bench.do()
    row = bench.controller.rows.get(job) or bench.store.job(job)
    assert row is not None and (row.state, row.reason[:16]) == ("cancelled", "idle for 60.0 s:")


def test_one_that_is_lost_does_not_begin_again_and_what_it_saves_makes_it_no_job_to_preempt(bench: Bench) -> None:
    job = bench.submit(interruptible=False, interactive="shell").body["id"]
    bench.do(Launched(job, 1), StepsSaved(job, 1, 5.0))
    assert not bench.controller.rows[job].can_save
    bench.do(GangEnded(job, 1, "lost", "the machine was started again", by_restart=True))
    bench.clock.at = 5.0
    bench.do()
    assert bench.state(job) == "failed"


@pytest.mark.parametrize("action", [ChangeNode("cpu-0", "drain", until=NOW), Hold("")], ids=["drain", "hold"])
def test_one_that_is_stopped_does_not_begin_again_without_anybody_at_it(bench: Bench, action: Any) -> None:
    job = bench.submit(ANN, interactive="shell", interruptible=None).body["id"]
    bench.do(Launched(job, 1))
    bench.do(Request(Hold(job) if isinstance(action, Hold) else action, OPERATOR))
    bench.do(GangEnded(job, 1, "stopped"))
    row = bench.store.job(job)
    assert row is not None
    assert (row.state, row.reason) == ("cancelled", "it was stopped, and what was in its terminal is gone")
    bench.controller.check()
    other = bench.submit(ANN, interactive="shell", interruptible=None).body["id"]
    bench.do(GangEnded(other, 1, "stopped"))
    assert bench.state(other) != "cancelled", "one that had not begun may begin elsewhere"


def test_the_process_itself_says_that_it_is_idle(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    job = started(ann)
    note = running.folder / "state" / "jobs" / job / "session.json"
    until(lambda: note.exists() and "null" not in note.read_text())
    screen = Screen(ann, job)
    screen.type(b"while true; do :; done\r")
    until(lambda: "null" in note.read_text())
    screen.stream.close()
    time.sleep(6)  # one more look: it computes, though nothing is typed
    assert "null" in note.read_text()
    ann.send("DELETE", f"/v1/jobs/{job}")


def test_one_that_was_used_between_two_looks_is_not_named_as_idle_any_more(bench: Bench) -> None:
    bench.restart(IDLE_SITE)
    job = bench.submit(interruptible=False, interactive="shell").body["id"]
    bench.do(Launched(job, 1), SessionIdle(job, 1, 0.0))
    bench.clock.at = 101.0
    bench.do()
    assert bench.controller.rows[job].reason.startswith("idle for ")
    bench.do(SessionIdle(job, 1, 5.0))
    assert bench.controller.rows[job].reason == ""
    bench.clock.at = 197.0
    bench.do()
    assert bench.controller.rows[job].reason.startswith("idle for ")


def ended_session(folder: Path, terminal: Pipe) -> tuple[Session, socket.socket]:
    """Return a session whose program has ended, with a client that has not read for long, and the client's end."""
    ours, theirs = socket.socketpair()
    session = Session(str(folder), socket.socket(socket.AF_UNIX), 0)
    session.terminal, session.code = terminal, 0
    session.client = StreamConnection(ours)
    session.connections = [session.client]
    for _ in range(5):
        session.client.send(DATA, b"x" * MOST_FRAME)
    return session, theirs


def test_the_last_output_reaches_a_client_that_was_late_before_the_exit_code(tmp_path: Path) -> None:
    read, write = os.pipe()
    session, theirs = ended_session(tmp_path, Pipe(read))
    os.write(write, b"the last words")
    got = bytearray()

    def take() -> None:
        while data := theirs.recv(MOST_FRAME):
            got.extend(data)

    reader = threading.Thread(target=take)
    reader.start()
    session.finish()
    reader.join(60)
    assert got.endswith(frame(DATA, b"the last words") + frame(EXIT, b"0"))
    theirs.close()
    os.close(write)
    os.close(read)
    session.listener.close()


@pytest.mark.parametrize("has_client", [True, False])
def test_a_process_that_is_left_behind_and_writes_without_end_does_not_keep_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_client: bool
) -> None:
    class Endless(Pipe):
        def read(self) -> bytes:
            assert time.monotonic() < limit
            return b"y\n"

    monkeypatch.setattr(interactive_session, "FLUSH_S", 0.2)
    read, write = os.pipe()
    session, theirs = ended_session(tmp_path, Endless(read))
    client = session.client
    assert client is not None
    if not has_client:
        session.client, session.connections = None, []
    limit = time.monotonic() + 20
    session.finish()
    client.close()
    theirs.close()
    os.close(write)
    os.close(read)
    session.listener.close()


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_what_does_not_go_with_an_interactive_job_is_refused_with_every_key_named(bench: Bench) -> None:
    from eunomia.service.job_document import InvalidRequest

    with pytest.raises(InvalidRequest) as error:
        bench.submit(interactive="shell", retries=2, array="0-3", min_accelerators=1, processes="per_accelerator")
    named = {one.field for one in error.value.problems}
    assert named == {"interruptible", "retries", "array", "min_accelerators", "processes"}
    bench.restart(IDLE_SITE)
    reply = bench.submit(interruptible=False, interactive="notebook", max_run_s=7201)
    assert reply.status == 422 and [one.field for one in reply.problems] == ["max_run_s"]


def test_null_is_no_way_around_what_holds_for_one_that_names_no_time(bench: Bench) -> None:
    from eunomia.service.messages import ChangeJob

    bench.restart(IDLE_SITE)
    job = bench.submit(interactive="shell", max_run_s=None, interruptible=None).body["id"]
    spec = bench.controller.rows[job].spec
    assert (spec["max_run_s"], spec["interruptible"]) == (7200, False)
    bench.do(Launched(job, 1), StepsSaved(job, 1, 5.0), Request(ChangeJob(job, {"max_run_s": None}), ANN))
    row = bench.controller.rows[job]
    assert row.spec["max_run_s"] == 7200 and not row.can_save


def test_an_engine_has_a_way_of_its_own_which_is_named(tmp_path: Path) -> None:
    from eunomia.service.interactive import check_interactive
    from eunomia.service.job_document import parse_job

    class Engine:
        class site:
            interactive = load_site(_site(tmp_path, SITE)).interactive

            class setup:
                class scenario:
                    class world:
                        backend = "slurm"

    job = parse_job({"command": ["sh"], "interactive": "shell"})
    (found,) = check_interactive(Engine, job)  # type: ignore[arg-type]
    assert "slurm" in found.rule and "srun --jobid" in found.fix


def _site(folder: Path, text: str) -> Path:
    (folder / "site.toml").write_text(text)
    return folder / "site.toml"


def test_wrong_keys_of_the_table_are_all_named_at_their_lines(tmp_path: Path) -> None:
    wrong = "[interactive]\nidle_warn_s = -1\nlongest_s = 0\nidle_stop_s = 5\n"
    with pytest.raises(InvalidInput) as error:
        load_site(_site(tmp_path, SITE + wrong))
    assert [one.column for one in error.value.problems] == [
        "interactive.idle_warn_s", "interactive.longest_s", "interactive.idle_stop_s",
    ]  # fmt: skip
    said = plan(load_site(_site(tmp_path, IDLE_SITE)))
    assert any("at most 7200 s, are named when idle for 100 s" in line for line in said)


# ---- the commands ----------------------------------------------------------------------------------------------------


class Typed:
    """A command at a terminal of its own."""

    def __init__(self, service: LiveService, *words: str, **variables: str) -> None:
        token = service.client("ann", "vision").address.token
        self.shown = b""
        environment = {**os.environ, "EUNOMIA_URL": service.url, "EUNOMIA_TOKEN": token, **variables}
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "eunomia", *words], environment)
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))

    def wait_for(self, text: bytes, within_s: float = 120.0) -> bytes:
        deadline = time.monotonic() + within_s
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self.handle], [], [], 1.0)[0]:
                self.shown += os.read(self.handle, 65_536)
        found, _, self.shown = self.shown.partition(text)
        return found

    def type(self, text: bytes) -> None:
        os.write(self.handle, text)

    def end(self) -> int:
        try:
            while select.select([self.handle], [], [], 120.0)[0] and (data := os.read(self.handle, 65_536)):
                self.shown += data
            os.kill(self.pid, signal.SIGKILL)  # it does not end by itself
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.handle)
        return os.waitstatus_to_exitcode(status)


def test_a_shell_is_left_gone_back_to_and_its_code_is_that_of_the_command(running: LiveService) -> None:
    typed = Typed(running, "shell", "--time", "10m", "--", "sh", PS1="ready> ")
    job = typed.wait_for(b" runs on").rpartition(b"job ")[2].decode()
    typed.wait_for(b"# " if os.geteuid() == 0 else b"$ ")
    typed.type(b"HERE=yes; stty size\r")
    typed.wait_for(b"30 90")
    typed.type(b"\x1c")
    assert typed.end() == 0 and f"eunomia attach {job}".encode() in typed.shown
    again = Typed(running, "attach", job)
    again.type(b"echo it is $HERE; exit 9\r")
    assert again.end() == 9 and b"it is yes" in again.shown


def test_ctrl_c_while_it_waits_cancels_it(running: LiveService) -> None:
    ann = running.client("ann", "vision")
    other = started(ann)
    typed = Typed(running, "shell", "--gpus", "8", "--", "sh")
    job = typed.wait_for(b" waits").rpartition(b"job ")[2].decode()
    typed.wait_for(b"Ctrl-C cancels it")
    typed.type(b"\x03")
    assert typed.end() == 130 and f"job {job} is cancelled".encode() in typed.shown
    assert state(ann, job) == "cancelled"
    ann.send("DELETE", f"/v1/jobs/{other}")


FAKE_JUPYTER = f"""\
#!{sys.executable}
import http.server, os, socketserver, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_known = self.headers.get("Authorization") == "token " + os.environ["JUPYTER_TOKEN"]
        body = b"[]" if self.path.startswith("/api") else " ".join(sys.argv[1:]).encode() * 2000
        self.send_response(200 if is_known else 403)
        self.end_headers()
        self.wfile.write(body if is_known else b"who are you")

    def address_string(self):
        return "browser"

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    pass

place = [word for word in sys.argv if word.startswith("--ServerApp.sock=")][0].partition("=")[2]
Server(place, Answers).serve_forever()
"""


def test_a_notebook_is_reached_through_a_port_of_this_machine_and_left_running(
    running: LiveService, tmp_path: Path
) -> None:
    (tmp_path / "jupyter").write_text(FAKE_JUPYTER)
    (tmp_path / "jupyter").chmod(0o755)
    typed = Typed(running, "notebook", "--forward", "0", "--", "--x=1", PATH=f"{tmp_path}:{os.environ['PATH']}")
    job = typed.wait_for(b" runs on").rpartition(b"job ")[2].decode()
    typed.wait_for(b"http://127.0.0.1:")
    port, _, token = typed.wait_for(b"\r\n").decode().partition("/lab?token=")
    typed.wait_for(b"Ctrl-C leaves")
    for known, status, said in ((token, 200, b"lab --x=1 --no-browser"), ("x", 403, b"who are you")):
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("GET", "/lab", headers={"Authorization": f"token {known}"})
        answer = connection.getresponse()
        found = answer.read()
        assert answer.status == status and found.startswith(said)
        connection.close()
    ann = running.client("ann", "vision")
    assert token not in str(ann.get(f"/v1/jobs/{job}"))
    typed.type(b"\x03")
    assert typed.end() == 0 and f"eunomia attach {job}".encode() in typed.shown
    assert state(ann, job) == "running"
    ann.send("DELETE", f"/v1/jobs/{job}")


def test_a_notebook_without_jupyter_says_what_to_install(running: LiveService, tmp_path: Path) -> None:
    typed = Typed(running, "notebook", "--forward", "0", PATH=str(tmp_path))
    assert typed.end() == 1
    assert b"pip install jupyterlab" in typed.shown.replace(b"\r\n", b" "), typed.shown
