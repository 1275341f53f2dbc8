"""Processes of ours that answer messages: how one is started, limited, spoken to, found dead and ended.

A message is 8 bytes that hold its length, and so many bytes. The process runs a module of ours that calls `connect` or
`answer_frames`; it ends when the process that started it is gone, whatever it computes.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_HEAD = 8  # bytes that hold the length of a message
_LAST_BYTES = 2000  # of standard error that are kept
_LAST_LINES_S = 1.0  # longest wait for them after the process ended


class ProcessDied(ConnectionResetError):
    """The process ended before it answered. `how` it ended, and the last `lines` of its standard error if kept."""

    def __init__(self, code: int, lines: list[str]) -> None:
        killed = f"was killed by signal {-code}, as when memory runs out"
        self.how, self.lines = killed if code < 0 else f"ended with exit code {code}", lines
        super().__init__(f"the process {self.how}")


class ChildProcess:
    """A process of ours, started when it is first spoken to and again after it ended. Not thread-safe but for `stop`.

    `memory_gib` limits its data and `niceness` is its priority; `variables` are added to its environment. Its standard
    error is that of this process, or with `keeps_lines` its end is kept to say why it died.
    """

    def __init__(
        self, module: str, *arguments: str, memory_gib: float = math.inf, niceness: int = 0,
        variables: Mapping[str, str] | None = None, keeps_lines: bool = False, own_session: bool = False,
    ) -> None:  # fmt: skip
        self._command = [sys.executable, "-P", "-m", module, *arguments]
        self._memory_gib, self._niceness, self._variables = memory_gib, niceness, variables or {}
        self._keeps_lines, self._own_session = keeps_lines, own_session
        self._process: subprocess.Popen[bytes] | None = None
        self._found = bytearray()  # of messages that are not taken yet
        self._said, self._listener = b"", threading.Thread()

    def ask(self, question: bytes, limit_s: float) -> bytes:
        """Return the answer. Raises TimeoutError after so many seconds, OSError if the process died; it ends then."""
        try:
            self.send(question)
            return self.receive(limit_s)
        except OSError:
            self.stop()
            raise

    def send(self, message: bytes) -> None:
        """Send a message. That the process died is found when its answer is read."""
        process = self.start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(len(message).to_bytes(_HEAD, "big") + message)
            process.stdin.flush()

    def receive(self, limit_s: float) -> bytes:
        """Return the next message. Raises TimeoutError after so many seconds, ProcessDied, OSError after `stop`."""
        process, deadline = self._process, time.monotonic() + limit_s
        if process is None:
            raise ConnectionResetError("the process was stopped before it answered")
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (message := self._take()) is None:
                if not selector.select(max(deadline - time.monotonic(), 0.0)):
                    raise TimeoutError
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    raise self._death(process)
                self._found += part
        return message

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process if it does not run, and return it."""
        if self._process is None:
            self._found.clear()
            self._process = process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if self._keeps_lines else None,
                env=environment(self._variables), start_new_session=self._own_session,
            )  # fmt: skip
            if self._keeps_lines:
                self._listener = threading.Thread(target=self._listen, args=(process,), daemon=True)
                self._listener.start()
            if math.isfinite(self._memory_gib):
                most = int(self._memory_gib * 2**30)
                with contextlib.suppress(OSError, ValueError):  # a lower limit may be in force
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (most, most))
            if self._niceness:
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, process.pid, self._niceness)
        return self._process

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process; the next message starts another one. From any thread."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written is lost with the process
                    pipe.close()

    def _take(self) -> bytes | None:
        """Return the first message that has come whole."""
        end = _HEAD + int.from_bytes(self._found[:_HEAD], "big")
        if len(self._found) < max(end, _HEAD):
            return None
        message = bytes(self._found[_HEAD:end])
        del self._found[:end]
        return message

    def _death(self, process: subprocess.Popen[bytes]) -> ProcessDied:
        code = process.wait()
        if self._keeps_lines:
            self._listener.join(_LAST_LINES_S)
        return ProcessDied(code, self._said.decode(errors="replace").splitlines())

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self._said = b""
        with process.stderr as pipe:
            while part := os.read(pipe.fileno(), 1 << 16):
                self._said = (self._said + part)[-_LAST_BYTES:]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process: the module path of this one, and these variables."""
    here = str(Path(__file__).parents[1])
    paths = [*(path or os.getcwd() for path in sys.path), here]
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def connect() -> tuple[Iterator[bytes], Callable[[bytes], None]]:
    """Return the messages of the process that started this one, until it closes the pipe, and what sends it one.

    What this process prints from now on goes to standard error.
    """
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def messages() -> Iterator[bytes]:
        while len(head := sys.stdin.buffer.read(_HEAD)) == _HEAD:
            yield sys.stdin.buffer.read(int.from_bytes(head, "big"))

    def send(message: bytes) -> None:
        out.write(len(message).to_bytes(_HEAD, "big") + message)
        out.flush()

    return messages(), send


def answer_frames(answer: Callable[[bytes], bytes]) -> None:
    """Answer the messages of the process that started this one."""
    messages, send = connect()
    for message in messages:
        send(answer(message))


def _end_with_parent() -> None:
    """End this process when the process that asks it is gone, whatever it computes."""
    poll = select.poll()
    poll.register(0, 0)  # a closed pipe is always reported
    poll.poll()
    os._exit(0)
