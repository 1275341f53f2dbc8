"""Asks the policy in a process of its own, under limits of time and memory, so that nothing else waits for it.

`python -m eunomia.service.solver_process SITE` is that process; see `child_process`.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask
from eunomia.records.scheduler_snapshot import pack, unpack
from eunomia.service.child_process import ChildProcess, answer_frames
from eunomia.service.messages import PolicyAnswered, PolicyOverran
from eunomia.service.site import Site, load_site

STARTING_S = 120.0  # longest time until the process can be asked; it does not count
_READY, _ANSWER, _FAILED = b"r", b"a", b"f"  # first byte of a frame
_log = logging.getLogger(__name__)


class ProcessPolicyRunner:
    """A runner whose answers come later, as reports: `report` gets a `PolicyAnswered` or a `PolicyOverran`.

    A thread of its own waits for the process.
    """

    def __init__(self, site: Site) -> None:
        service = site.service
        self.report: Callable[[PolicyAnswered | PolicyOverran], None] = lambda _: None
        self._limit_s = service.solver_seconds
        self._process = ChildProcess(
            "eunomia.service.solver_process", str(site.path.resolve()), memory_gib=service.solver_memory_gib
        )
        self._asks: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="solver", daemon=True)
        self.overruns = 0

    def start(self) -> None:
        """Start the process."""
        self._thread.start()

    def close(self) -> None:
        """End the process, whatever it computes."""
        self._asks.put(None)
        self._process.stop()
        self._thread.join(10.0)

    def answer(self, ask: Ask) -> None:
        """Hand over an ask; its answer is reported later."""
        self._asks.put((ask.asked, pack(ask.view)))

    def _run(self) -> None:
        self._make_ready()
        while (ask := self._asks.get()) is not None:
            self.report(self._answer(*ask))

    def _make_ready(self) -> None:
        """Start the process before its time counts."""
        try:
            self._process.ask(_READY, STARTING_S)
        except OSError as error:
            _log.warning("the process that asks the policy could not be started: %s", error or "no answer in time")

    def _answer(self, asked: int, view: bytes) -> PolicyAnswered | PolicyOverran:
        try:
            frame = self._process.ask(_ANSWER + view, self._limit_s)
        except TimeoutError:
            reason = f"the policy gave no answer within solver_seconds = {self._limit_s:g}"
        except OSError as error:
            reason = f"the process that asks the policy failed ({error}); solver_memory_gib may be too low"
        else:
            if frame[:1] == _ANSWER:
                return PolicyAnswered(asked, unpack(frame[1:]))
            reason = f"the policy failed: {frame[1:].decode(errors='replace')}"
        self.overruns += 1
        _log.warning("the last answer goes on: %s", reason)
        if self._asks.empty():
            self._make_ready()
        return PolicyOverran(asked, reason)


def main(path: Path) -> None:
    """Answer views with what the site's policy decides."""
    policy = load_site(path).setup.policy

    def answer(frame: bytes) -> bytes:
        if frame[:1] == _READY:
            return _READY
        try:
            found = policy.decide(unpack(frame[1:]))
            if not isinstance(found, Answer):
                return _FAILED + f"it answered {type(found).__name__}, not Shares, Order or Grants".encode()
            return _ANSWER + pack(found)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
                ValueError) as error:  # fmt: skip
            _log.exception("policy %s failed", policy.info.name)
            return _FAILED + f"{type(error).__name__}: {error}".encode()[:2000]

    answer_frames(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
