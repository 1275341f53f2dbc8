"""What the servers that tests start on this machine share."""

from __future__ import annotations

import queue
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

NODES = {"v100-0": ("v100", 4), "v100-1": ("v100", 4), "k80-0": ("k80", 8)}  # type and number of accelerators
T = TypeVar("T")
PORTS = range(10_000, 32_000)  # below those that the system gives to connections, which could take a port meanwhile


def until(holds: Callable[[], bool], what: str | Callable[[], str], within_s: float = 180.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.1)


def in_time(call: Callable[[], T], what: str, within_s: float = 300.0) -> T:
    """Return what a call returns that has no limit of its own; one that is too late is left alone in its thread."""
    ended: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put((call(), None))
        except BaseException as error:
            ended.put((None, error))

    threading.Thread(target=run, daemon=True, name=what).start()
    try:
        found, error = ended.get(timeout=within_s)
    except queue.Empty:
        raise AssertionError(f"not within {within_s:g} s: {what}") from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value]


def end_all(daemons: Iterable[subprocess.Popen[bytes]], within_s: float = 60.0) -> None:
    """End processes; kill those that do not end in time."""
    ending = list(daemons)
    for daemon in ending:
        daemon.terminate()
    for daemon in ending:
        try:
            daemon.wait(within_s)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait(within_s)


def free_ports(count: int) -> list[int]:
    """Return free ports, others than those of tests that begin at the same moment (but for unlikely draws)."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found
