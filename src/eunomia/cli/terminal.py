"""Joins this terminal, or a port of this machine, with an interactive job."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eunomia.backends.processes.interactive_session import DATA, EXIT, MOST_FRAME, NOTICE
from eunomia.cli.live import printable
from eunomia.service.client import Client, ServiceRefusal, Unreachable
from eunomia.service.session_client import SessionStream

END_OF_INPUT = b"\x04"  # Ctrl-D: what a terminal's program reads as the end
ANSWER_S = 1.0  # between looks whether the job of a forwarded port is over
MOST_FORWARDED = 60  # connections at once


@dataclass(slots=True)
class End:
    """How the use of a terminal ended: exited, with the `code`; detached; or lost, with what was `said` of it."""

    how: str = "lost"
    code: int = 0
    said: str = ""


def use_terminal(stream: SessionStream, key: bytes) -> End:
    """Copy what is typed here to the job and what it shows to here, until it exits or `key` is typed."""
    end = End()
    wake_read, wake_write = os.pipe()
    reader = threading.Thread(target=_show, args=(stream, end, wake_write), daemon=True)
    with _raw_terminal(wake_write):
        reader.start()
        try:
            _type(stream, end, key, wake_read)
        except (Unreachable, ServiceRefusal) as error:
            end.said = end.said or str(error)
        reader.join(5.0 if end.how == "lost" else 0.0)  # it may still show how the program ended
        stream.close()
    return end


def _show(stream: SessionStream, end: End, wake: int) -> None:
    """Write what comes to this terminal as it is: it is its user's own."""
    try:
        for kind, data in stream.frames():
            if kind == DATA:
                _write(data)
            elif kind == NOTICE and data:
                end.said = printable(data.decode(errors="replace"))
                _write(f"\r\n[eunomia: {end.said}]\r\n".encode())
            elif kind == EXIT and end.how != "detached":
                end.how, end.code = "exited", _exit_code(data)
                break
    except (Unreachable, OSError) as error:
        end.said = end.said or str(error)
    finally:
        with contextlib.suppress(OSError):
            os.write(wake, b"E")


def _exit_code(data: bytes) -> int:
    try:
        code = int(data)
    except ValueError:
        return 1
    return code if 0 <= code < 256 else 128 - code if -128 < code < 0 else 1


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


def _type(stream: SessionStream, end: End, key: bytes, wake: int) -> None:
    """Send what is typed, and the size of the terminal when it changes."""
    inputs = [sys.stdin.fileno(), wake]
    while True:
        ready, _, _ = select.select(inputs, [], [])
        if wake in ready:
            said = os.read(wake, 4096)
            if b"E" in said:
                return
            with contextlib.suppress(OSError):
                size = os.get_terminal_size(sys.stdin.fileno())
                stream.send_size(size.lines, size.columns)
        if inputs[0] != wake and inputs[0] in ready:
            data = os.read(inputs[0], 4096)
            if key and key in data and sys.stdin.isatty():
                end.how = "detached"
                return
            stream.send(DATA, data or END_OF_INPUT)
            if not data:
                inputs = [wake]


@contextlib.contextmanager
def _raw_terminal(wake: int) -> Iterator[None]:
    """Pass every key on, and be woken when the size changes; where the input is no terminal, nothing changes."""
    if not sys.stdin.isatty():
        yield
        return
    handle = sys.stdin.fileno()
    before, old = termios.tcgetattr(handle), signal.getsignal(signal.SIGWINCH)
    signal.signal(signal.SIGWINCH, lambda *_: os.write(wake, b"W"))
    try:
        tty.setraw(handle, termios.TCSADRAIN)  # what was typed while it began is kept
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, old)
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[?25h\x1b[?1049l\x1b[0m\r\n")  # what a program may have left: no cursor, colours
            sys.stdout.flush()


def forward_connections(client: Client, job_id: str, listener: socket.socket, is_over: Callable[[], bool]) -> None:
    """Pass the connections of a port on to the server of a job, each over a stream of its own, until it is over."""
    room = threading.BoundedSemaphore(MOST_FORWARDED)
    listener.settimeout(ANSWER_S)
    looked_at = time.monotonic()
    while True:
        if time.monotonic() - looked_at > 5 * ANSWER_S:
            if is_over():
                return
            looked_at = time.monotonic()
        try:
            found, _ = listener.accept()
        except TimeoutError:
            continue
        found.settimeout(None)
        if room.acquire(timeout=5 * ANSWER_S):
            threading.Thread(target=_pass_on, args=(client, job_id, found, room), daemon=True).start()
        else:
            found.close()


def _pass_on(client: Client, job_id: str, browser: socket.socket, room: threading.BoundedSemaphore) -> None:
    try:
        stream = SessionStream(client, job_id)
        answers = threading.Thread(target=_answer, args=(stream, browser), daemon=True)
        answers.start()
        with contextlib.suppress(OSError, Unreachable):
            while data := browser.recv(MOST_FRAME // 2):
                stream.send(DATA, data)
        stream.close()
        answers.join()
    except (OSError, Unreachable, ServiceRefusal) as error:
        sys.stderr.write(f"a connection was not passed on: {error}\n")
    finally:
        browser.close()
        room.release()


def _answer(stream: SessionStream, browser: socket.socket) -> None:
    with contextlib.suppress(OSError, Unreachable):
        for kind, data in stream.frames():
            if kind == DATA:
                browser.sendall(data)
    with contextlib.suppress(OSError):
        browser.shutdown(socket.SHUT_RDWR)  # ends the reading in `_pass_on`
