"""A process of ours that answers questions, one after the other, under limits of time and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable

_HEAD = 8  # bytes that hold the length of a frame


class ChildProcess:
    """Runs a module of this package, which calls `answer_frames`; it is started when it is first asked.

    Its standard error is that of this process. Not thread-safe.
    """

    def __init__(self, module: str, *arguments: str, memory_gib: float, niceness: int = 0) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._memory, self._niceness = int(memory_gib * 2**30), niceness
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: bytes, limit_s: float) -> bytes:
        """Return the answer. Raises TimeoutError after so many seconds, OSError if the process died; it ends then."""
        try:
            process = self._process or self.start()
            assert process.stdin is not None
            deadline = time.monotonic() + limit_s
            process.stdin.write(len(question).to_bytes(_HEAD, "big") + question)
            process.stdin.flush()
            head = _read(process, _HEAD, deadline)
            return _read(process, int.from_bytes(head, "big"), deadline)
        except OSError:
            self.stop()
            raise

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process if it does not run."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            with contextlib.suppress(OSError, ValueError):  # a lower limit may be in force
                resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (self._memory, self._memory))
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, self._niceness)
        return self._process

    def stop(self) -> None:
        """End the process; the next question starts another one. From any thread."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written is lost with the process
                    pipe.close()


def _read(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
    assert process.stdout is not None
    found = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(found) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError
            part = os.read(process.stdout.fileno(), min(size - len(found), 1 << 20))
            if not part:
                raise ConnectionResetError(f"the process ended with code {process.wait()}")
            found += part
    return bytes(found)


def answer_frames(answer: Callable[[bytes], bytes]) -> None:
    """Answer the questions of the process that started this one, until it closes the pipe or dies.

    What the answering code prints goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    questions = sys.stdin.buffer
    while len(head := questions.read(_HEAD)) == _HEAD:
        question = questions.read(int.from_bytes(head, "big"))
        found = answer(question)
        answers.write(len(found).to_bytes(_HEAD, "big") + found)
        answers.flush()


def _end_with_parent() -> None:
    """End this process when the process that asks it is gone, whatever it computes."""
    poll = select.poll()
    poll.register(0, 0)  # a closed pipe is always reported
    poll.poll()
    os._exit(0)
