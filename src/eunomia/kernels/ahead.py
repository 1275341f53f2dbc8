"""Compiling beside the run: a process of low priority puts compiled code into the cache, from which others load it.

`request` starts the process, if need be, and gives it a kernel with the types of the arguments of a call. It goes on
when the process that asked has ended, so what short commands interpret again and again is compiled for the next ones.
One of them compiles at a time on a machine. `python -m eunomia.kernels.ahead` is this process: it reads a line of JSON
for each kernel, and ends when nothing comes any more.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from eunomia.child_process import environment
from eunomia.kernels import PROCESS, Kernel
from eunomia.kernels.arguments import describe, find_named, numba_type
from eunomia.kernels.cache import AHEAD, compile_lock, folder, is_cached, is_compiling
from eunomia.kernels.costs import forget_costs

NICENESS = 10
IDLE_S = 20.0  # without a request
LOG_FILE = "ahead.log"  # in the folder of the cache: what the last of these processes could not compile
PIPE_BYTES = 60_000  # what a pipe takes before its writer waits for the reader

LOG = logging.getLogger(__name__)


class Helper:
    """The process, if this one has started it, and how many bytes were sent to it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = 0

    def send(self, line: bytes) -> bool:
        """Send it a line without waiting; return whether it may have come."""
        if self._process is None or self._process.poll() is not None:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
            # Where another one compiles a second would wait, as would one for each worker of a sweep.
            self._process, self._sent = None if is_compiling(AHEAD) else _start(), 0
        self._sent += len(line)
        if self._process is None or self._sent > PIPE_BYTES:
            return False
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), line)
        except OSError:  # it ends
            return False
        return True


HELPER = Helper()


def request(kernel: Kernel, args: tuple[Any, ...]) -> bool:
    """Ask that a kernel be compiled for such arguments; return False if that is not possible."""
    types = [describe(each) for each in args]
    if folder() is None or None in types or "<" in kernel.py_func.__qualname__:
        return False
    named = f"{kernel.py_func.__module__}:{kernel.py_func.__qualname__}"
    return HELPER.send(json.dumps([kernel.file_name, named, types]).encode() + b"\n")


def _start() -> subprocess.Popen[bytes] | None:
    """Start the process, in a group of its own so that Ctrl-C does not end it; None if that fails."""
    place = folder()
    try:
        with open(os.devnull if place is None else place / LOG_FILE, "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "eunomia.kernels.ahead"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=environment({}), process_group=0,
            )  # fmt: skip
    except OSError:  # no more processes are allowed, or the disk is full: kernels are compiled in the run, if at all
        return None


def compile_for(named: str, types: list[Any]) -> None:
    """Compile a kernel for arguments of the described types, unless the cache has it."""
    kernel = find_named(named)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{named} is no kernel, but a {type(kernel).__name__}")
    with compile_lock(AHEAD):
        if not is_cached(kernel):
            kernel.compile_for(tuple(numba_type(each) for each in types))


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input until it ends or nothing comes for a while."""
    rest = b""
    while select.select([0], [], [], IDLE_S)[0] and (part := os.read(0, 1 << 16)):
        *lines, rest = (rest + part).split(b"\n")
        yield from lines


def main() -> None:
    """Compile what is asked for."""
    os.nice(NICENESS)
    PROCESS.is_background = True
    for line in _lines():
        file_name, named, types = json.loads(line)
        try:
            compile_for(named, types)
        except Exception:
            # A kernel of a script, say, that this process cannot import; whoever asked compiles it when it must.
            LOG.exception("%s was not compiled", named)
            if (place := folder()) is not None:
                forget_costs(place, file_name)  # or the next process would ask again at once


if __name__ == "__main__":
    main()
