"""Named points at which tests let the service die or pause; without both variables they do nothing.

EUNOMIA_TEST_BUILD=1 and EUNOMIA_FAULT_POINT="name:action[:hit]" with action kill, raise or pause; the fault strikes at
that hit of the point, the first by default. `pause` waits until the file named by EUNOMIA_FAULT_FILE exists.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

POINTS = (
    "submit.validated", "turn.decided", "turn.committed", "reply.sent", "orders.sent", "order.taken", "report.received",
    "snapshot.half", "migrate.half", "recover.half", "launch.forked",
    "removal.folder", "removal.rows", "audit.closed", "audit.written",
    "notices.taken", "token.stored", "token.written",
)  # fmt: skip
_hits: Counter[str] = Counter()


class InjectedFault(BaseException):
    """A fault that a test asked for: nothing goes on after it."""


def faultpoint(name: str) -> None:
    """Fail here if a test asked for it."""
    wanted = os.environ.get("EUNOMIA_FAULT_POINT", "")
    if not wanted or os.environ.get("EUNOMIA_TEST_BUILD") != "1":
        return
    assert name in POINTS, name
    point, action, *hit = wanted.split(":")
    if point != name:
        return
    _hits[name] += 1
    if _hits[name] != int(hit[0] if hit else 1):
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise InjectedFault(name)
    while not Path(os.environ["EUNOMIA_FAULT_FILE"]).exists():
        time.sleep(0.01)
