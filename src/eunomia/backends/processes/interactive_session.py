"""The process of an interactive job: a program in a terminal, or a notebook server, reached through a unix socket.

Standard library only; the supervisor runs it as the job's user. It listens in the job's folder, ends with its program,
and keeps what the terminal has shown last while no client is attached. What goes over a connection are frames: a byte
that says what it is, 4 bytes with the length, and so many bytes. The first one of a connection (`OPEN`) says what it is
for. Where the program is idle is noted in a file, see `note_idle`; who reads it decides what follows.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import secrets
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import termios
import time

if not __package__:  # run by its path, see `supervisor`
    sys.path.append(os.path.abspath(__file__).removesuffix("/eunomia/backends/processes/interactive_session.py"))

from eunomia.backends.processes.gang_group import descendants, stat_of

TYPE_CHECKING = False  # see `gang_launch`
if TYPE_CHECKING:
    from typing import NoReturn

SOCKET, NOTE = "session.sock", "session.json"  # in the folder in which the job may write
OPEN, DATA, SIZE, EXIT, NOTICE, FACTS = b"O", b"D", b"W", b"X", b"N", b"T"  # kinds of frames
HEAD = struct.Struct(">cI")
MOST_FRAME = 65_536  # bytes
MOST_WAITING = 4 * MOST_FRAME  # bytes that wait for one end, before the other is not read any more
SHOWN_AGAIN = 65_536  # last bytes of the terminal's output, for a client that attaches
LOOK_S = 5.0  # between looks whether the program is idle
BUSY_SHARE = 0.05  # of a core: a program that computes so much is not idle
ASK_S = 20.0  # between questions to a notebook server what its kernels do
ANSWER_S, MOST_ANSWER = 1.0, 1 << 20  # longest wait for an answer, and its bytes
FIRST_S = 20.0  # for the first client to attach, where the program ends before
FLUSH_S = 2.0  # for the last bytes to reach a client
MOST_CONNECTIONS = 256
LOGIN_SHELL = "$SHELL"  # as the first word of a command: the shell of the job's user
CANNOT_START = 127


def frame(kind: bytes, data: bytes = b"") -> bytes:
    """Return a frame. `data` has at most MOST_FRAME bytes."""
    return HEAD.pack(kind, len(data)) + data


class Pipe:
    """A socket, or the terminal, with bytes that wait to be written to it."""

    def __init__(self, handle: int, owner: socket.socket | None = None) -> None:
        self.handle, self.owner, self.waiting = handle, owner, bytearray()
        self.ends = self.is_closed = False  # it is closed once all is written; it is closed
        os.set_blocking(handle, False)

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= MOST_WAITING

    def read(self) -> bytes | None:
        """Return what there is to read; None = the other end is closed."""
        try:
            return os.read(self.handle, MOST_FRAME) or None
        except BlockingIOError:
            return b""
        except OSError:  # EIO of a terminal whose program has ended, a reset
            return None

    def flush(self) -> None:
        """Write what can be written now."""
        try:
            del self.waiting[: os.write(self.handle, self.waiting[:MOST_FRAME])]
        except BlockingIOError:
            pass
        except OSError:
            self.waiting.clear()
            self.ends = True
        if self.ends and not self.waiting:
            self.close()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self.owner is not None:
                self.owner.close()
            else:
                os.close(self.handle)


class StreamConnection(Pipe):
    """A connection of the service: of a client at the terminal, or of one connection to the notebook server."""

    def __init__(self, found: socket.socket) -> None:
        super().__init__(found.fileno(), found)
        self.partial, self.is_open = bytearray(), False
        self.other: Pipe | None = None  # its connection to the notebook server

    def send(self, kind: bytes, data: bytes = b"") -> None:
        self.waiting += frame(kind, data)

    def frames(self) -> list[tuple[bytes, bytes]]:
        """Return the frames that have come whole. Raises ValueError for what is no frame."""
        found = []
        while len(self.partial) >= HEAD.size:
            kind, length = HEAD.unpack_from(self.partial)
            if length > MOST_FRAME:
                raise ValueError("a frame is too long")
            if len(self.partial) < HEAD.size + length:
                break
            found.append((kind, bytes(self.partial[HEAD.size : HEAD.size + length])))
            del self.partial[: HEAD.size + length]
        return found


class Session:
    """The program, and those who are connected. `terminal` is None for a notebook server, which has a `server`."""

    def __init__(self, folder: str, listener: socket.socket, pid: int) -> None:
        self.folder, self.listener, self.pid = folder, listener, pid
        self.terminal: Pipe | None = None
        self.server = self.token = ""
        self.asked_at, self.answers = 0.0, list[str]()
        self.shown = bytearray()
        self.client: StreamConnection | None = None  # at the terminal
        self.connections: list[StreamConnection] = []
        self.code: int | None = None
        self.active_at = self.looked_at = time.monotonic()
        self.ticks = 0
        self.noted: float | None = None  # as written
        self.has_ended = self.is_stopped = self.was_attached = False
        self.ended_at = 0.0
        listener.setblocking(False)

    def run(self, wake: int) -> int:
        """Serve until the program has ended; return its exit code. `wake` is readable when a signal came."""
        while not self.has_ended or self.awaits_client():
            self.turn(wake)
            self.look()
        self.finish()
        return self.code or 0

    def awaits_client(self) -> bool:
        """Say whether what a short program has shown is kept for its client, which is still to attach."""
        is_first = self.terminal is not None and not self.was_attached and not self.is_stopped
        return is_first and time.monotonic() < self.ended_at + FIRST_S

    def turn(self, wake: int) -> None:
        """Wait for something to do, and do it."""
        with selectors.DefaultSelector() as selector:
            for handle in (wake, self.listener.fileno()):
                selector.register(handle, selectors.EVENT_READ, None)
            for pipe in self.pipes():
                reads, writes = self.may_read(pipe), bool(pipe.waiting)
                if reads or writes:
                    events = selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes
                    selector.register(pipe.handle, events, pipe)
            found = selector.select(LOOK_S)
        for key, events in found:
            if key.data is None:
                if key.fd == wake:
                    self.wake(wake)
                else:
                    self.accept()
                continue
            if events & selectors.EVENT_WRITE and not key.data.is_closed:
                key.data.flush()
            if events & selectors.EVENT_READ and not key.data.is_closed:
                self.receive(key.data)
        self.connections = [one for one in self.connections if not self.is_over(one)]

    def pipes(self) -> list[Pipe]:
        found: list[Pipe] = [one for one in self.connections if not one.is_closed]
        found += [one.other for one in self.connections if one.other is not None and not one.other.is_closed]
        return found + ([self.terminal] if self.terminal is not None and not self.terminal.is_closed else [])

    def may_read(self, pipe: Pipe) -> bool:
        """Say whether there is room for what a pipe has."""
        if pipe is self.terminal:
            return self.client is None or not self.client.is_full
        if isinstance(pipe, StreamConnection):
            target = self.terminal if pipe is self.client else pipe.other
            return not pipe.ends and (target is None or not target.is_full)
        return not any(one.is_full for one in self.connections if one.other is pipe)

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            found, _ = self.listener.accept()
            if len(self.connections) >= MOST_CONNECTIONS:
                found.close()
                return
            self.connections.append(StreamConnection(found))

    def is_over(self, one: StreamConnection) -> bool:
        """Say whether a connection has ended, and let go of what belongs to it."""
        if not one.is_closed:
            return False
        if one.other is not None and not one.other.is_closed:
            one.other.ends = True
            one.other.flush()
        if one is self.client:
            self.client = None
        return True

    def wake(self, wake: int) -> None:
        """Deal with signals: the program may have ended."""
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code, self.has_ended = os.waitstatus_to_exitcode(status), True
                self.ended_at = time.monotonic()

    def receive(self, pipe: Pipe) -> None:
        data = pipe.read()
        if pipe is self.terminal:
            self.show(data)
        elif isinstance(pipe, StreamConnection):
            if data is None:
                pipe.close()
                return
            pipe.partial += data
            try:
                for kind, content in pipe.frames():
                    self.take(pipe, kind, content)
            except (ValueError, OSError) as error:
                pipe.send(NOTICE, str(error)[:500].encode(errors="replace"))
                pipe.ends = True
                pipe.flush()
        else:
            for one in self.connections:
                if one.other is pipe and data:
                    one.send(DATA, data)
                elif one.other is pipe and data is None:
                    pipe.close()
                    one.ends = True
                    one.flush()

    def show(self, data: bytes | None) -> None:
        """Pass on what the program has written to its terminal, and keep the last of it."""
        if data is None:
            assert self.terminal is not None
            self.terminal.close()
            return
        if data:
            self.active_at = time.monotonic()
        self.shown += data
        del self.shown[:-SHOWN_AGAIN]
        if self.client is not None and data:
            self.client.send(DATA, data)

    def take(self, one: StreamConnection, kind: bytes, data: bytes) -> None:
        """Take a frame of a client. Raises ValueError for one that means nothing."""
        if not one.is_open:
            if kind != OPEN:
                raise ValueError("the first frame says what the connection is for")
            one.is_open = True
            self.open(one, data)
        elif kind == DATA:
            if self.terminal is not None:
                self.active_at = time.monotonic()
            target = self.terminal if one is self.client else one.other
            if target is not None and not target.is_closed:
                target.waiting += data
        elif kind == SIZE and one is self.client:
            self.resize(data)

    def open(self, one: StreamConnection, data: bytes) -> None:
        """Connect a client with the terminal, in place of another one, or with the notebook server."""
        if self.terminal is not None:
            self.active_at = time.monotonic()
            if self.client is not None:
                self.client.send(NOTICE, b"another client has attached to this terminal")
                self.client.ends = True
                self.client.flush()
            self.client, self.was_attached = one, True
            for start in range(0, len(self.shown), MOST_FRAME):
                one.send(DATA, bytes(self.shown[start : start + MOST_FRAME]))
            self.resize(data)
        elif data == b"facts":
            self.active_at = time.monotonic()
            if not os.path.exists(self.server):
                raise ValueError("the notebook server is still starting")
            one.send(FACTS, json.dumps({"token": self.token}).encode())
            one.ends = True
            one.flush()
        else:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            found.settimeout(ANSWER_S)  # of one that takes no more connections
            found.connect(self.server)
            one.other = Pipe(found.fileno(), found)

    def resize(self, data: bytes) -> None:
        """Give the terminal another size: rows and columns, 2 bytes each; its program gets SIGWINCH."""
        if len(data) == 4 and self.terminal is not None and not self.terminal.is_closed:
            rows, columns = struct.unpack(">HH", data)
            fcntl.ioctl(self.terminal.handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            with contextlib.suppress(OSError):
                os.killpg(os.tcgetpgrp(self.terminal.handle), signal.SIGWINCH)  # also where the size is as before

    def look(self) -> None:
        """Note now and then whether the program is idle: no input, no output, and hardly any computing.

        A page that is open in a browser talks without end, so of a notebook server its kernels and terminals count.
        """
        now = time.monotonic()
        if now < self.looked_at + LOOK_S:
            return
        ticks = sum(ticks_of(pid) for pid in descendants(os.getpid()))
        if ticks - self.ticks > BUSY_SHARE * (now - self.looked_at) * os.sysconf("SC_CLK_TCK"):
            self.active_at = now
        self.looked_at, self.ticks = now, ticks
        if self.server and now >= self.asked_at + ASK_S:
            self.asked_at = now
            answers = [answer_of(self.server, self.token, path) for path in ("/api/kernels", "/api/terminals")]
            if answers != self.answers or '"busy"' in answers[0]:
                self.active_at, self.answers = now, answers
        idle_since = self.active_at if now - self.active_at >= LOOK_S else None
        if idle_since != self.noted:
            note_idle(self.folder, idle_since)
            self.noted = idle_since

    def stop(self) -> None:
        """End the program as a terminal does that is closed, or a notebook server by SIGTERM."""
        self.is_stopped = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGTERM if self.terminal is None else signal.SIGHUP)
            os.killpg(self.pid, signal.SIGCONT)

    def finish(self) -> None:
        """Pass on the last output and how the program ended, as far as a client takes it in time."""
        deadline = time.monotonic() + FLUSH_S  # also where a process that it left behind writes without end
        while self.terminal is not None and not self.terminal.is_closed and time.monotonic() < deadline:
            if self.client is not None and not self.client.is_closed and self.client.waiting:
                self.client.flush()
            if self.client is not None and self.client.is_full:
                time.sleep(0.01)
            elif data := self.terminal.read():
                self.show(data)
            else:
                break
        for one in self.connections:
            if one is self.client:
                one.send(EXIT, str(self.code).encode())
            one.ends = True
        while (left := [one for one in self.connections if not one.is_closed]) and time.monotonic() < deadline:
            for one in left:
                one.flush()
            time.sleep(0.01)


def ticks_of(pid: int) -> int:
    """Return the CPU time of a process and of its children that have ended, in ticks of the clock."""
    found = stat_of(pid)
    return sum(map(int, found[11:15])) if found else 0


def note_idle(folder: str, since: float | None) -> None:
    """Write since when the program is idle, in s of time.monotonic; None = it is not."""
    draft = f"{folder}/{NOTE}.draft"
    with contextlib.suppress(OSError):  # a full disk: it is noted the next time
        with open(draft, "w", encoding="ascii") as file:
            json.dump({"idle_since": since}, file)
        os.replace(draft, f"{folder}/{NOTE}")


def listen(folder: str) -> socket.socket:
    """Return a listening socket in a folder, whose path may be longer than an address can be."""
    here, found = os.open(".", os.O_RDONLY), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.chdir(folder)
    for name in (SOCKET, NOTE):
        with contextlib.suppress(FileNotFoundError):  # of an earlier start
            os.unlink(name)
    umask = os.umask(0o177)
    found.bind(SOCKET)
    os.umask(umask)
    found.listen(16)
    os.fchdir(here)
    os.close(here)
    return found


def begin_terminal(command: list[str]) -> tuple[int, int]:
    """Start a command in a terminal of its own; return its pid and the terminal."""
    if command[0] == LOGIN_SHELL:
        command = [os.environ.get("SHELL") or "/bin/sh", *command[1:]]
    if shutil.which(command[0]) is None:
        refuse(f"cannot start {command[0]!r}: there is no such program")
    os.environ.setdefault("TERM", "xterm-256color")
    pid, handle = pty.fork()
    if pid == 0:
        give_back_signals()
        os.execvp(command[0], command)
    return pid, handle


def begin_notebook(command: list[str], folder: str) -> tuple[int, str]:
    """Start a notebook server that listens on a socket in a folder; return its pid and its token."""
    token = secrets.token_hex(24)
    if shutil.which(command[0]) is None:
        refuse(f"{command[0]!r} is not found in PATH; install JupyterLab where the job runs: pip install jupyterlab")
    socket_file = f"{folder}/notebook.sock"
    pid = os.fork()
    if pid == 0:
        os.setsid()
        give_back_signals()
        os.environ["JUPYTER_TOKEN"] = token
        os.execvp(command[0], [*command, "--no-browser", f"--ServerApp.sock={socket_file}"])
    return pid, token


def answer_of(server: str, token: str, path: str) -> str:
    """Return what a notebook server answers without what it counts of connections; "" if it does not in time."""
    import http.client

    connection = http.client.HTTPConnection("localhost", timeout=ANSWER_S)
    try:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(ANSWER_S)
        connection.sock.connect(server)
        connection.request("GET", path, headers={"Authorization": f"token {token}"})
        found = json.loads(connection.getresponse().read(MOST_ANSWER))
        return json.dumps(
            [{key: one.get(key) for key in ("id", "name", "last_activity", "execution_state")} for one in found]
        )
    except (OSError, http.client.HTTPException, ValueError, AttributeError, TypeError):
        return ""
    finally:
        connection.close()


def give_back_signals() -> None:
    """Undo what this process did with signals, for a program that it becomes."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def refuse(text: str) -> NoReturn:
    """End: the program cannot be started, and why is the last line of the log."""
    sys.stderr.write(f"{text}\n")
    raise SystemExit(CANNOT_START)


def main() -> None:
    kind, folder, *command = sys.argv[1:]
    listener = listen(folder)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with tempfile.TemporaryDirectory(prefix="eunomia-") as private:
        if kind == "shell":
            pid, terminal = begin_terminal(command)
            session = Session(folder, listener, pid)
            session.terminal = Pipe(terminal)
        else:
            pid, token = begin_notebook(command, private)
            session = Session(folder, listener, pid)
            session.server, session.token = f"{private}/notebook.sock", token
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: session.stop())
        os.kill(os.getpid(), signal.SIGCHLD)  # it may have ended already
        code = session.run(wake_read)
    if kind == "shell" and command[0] == LOGIN_SHELL and code >= 0:
        code = 0  # a shell ends with the code of its last command
    raise SystemExit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
