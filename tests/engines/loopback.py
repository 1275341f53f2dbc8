"""What the servers that tests start on this machine share."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable

PORTS = range(10_000, 32_000)  # below those that the system gives to connections, which could take a port meanwhile


def until(holds: Callable[[], bool], what: str, within_s: float = 30.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(0.1)


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
