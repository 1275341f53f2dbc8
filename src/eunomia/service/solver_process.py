"""Asks the policy in a process of its own (`policy_process`), under limits of time and memory: nothing waits for it."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable

from eunomia.child_process import ChildProcess
from eunomia.model.decisions import Ask
from eunomia.records.packed_objects import pack, unpack
from eunomia.service.messages import PolicyAnswered, PolicyOverran
from eunomia.service.policy_process import ANSWER, COMPILER, READY
from eunomia.service.site import Site
from eunomia.service.writer import Writer

MANY_JOBS = 500  # from here on decisions may take compiled kernels, which cost 50 MiB
STARTING_S = 120.0  # longest time until the process can be asked; it does not count
_log = logging.getLogger(__name__)


class ProcessPolicyRunner:
    """A runner whose answers come later, as reports: `report` gets a `PolicyAnswered` or a `PolicyOverran`.

    A thread of its own waits for the process.
    """

    def __init__(self, site: Site, limit_s: Callable[[], float]) -> None:
        self.report: Callable[[PolicyAnswered | PolicyOverran], None] = lambda _: None
        self._limit_s = limit_s
        scenario = site.setup.scenario
        policy = json.dumps([scenario.policy.name, scenario.policy.parameters, site.service.debug_lane])
        self._process = ChildProcess(
            "eunomia.service.policy_process", policy, str(scenario.base), memory_gib=site.service.solver_memory_gib
        )
        self._asks: queue.SimpleQueue[tuple[int, bytes, int] | None] = queue.SimpleQueue()
        self._has_compiler, self._is_closed = False, False
        self._thread = threading.Thread(target=self._run, name="solver", daemon=True)
        self.overruns = 0

    def start(self) -> None:
        """Start the process."""
        self._thread.start()

    def close(self) -> None:
        """End the process, whatever it computes."""
        self.report, self._is_closed = lambda _: None, True
        self._asks.put(None)
        self._process.stop()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def answer(self, ask: Ask) -> None:
        """Hand over an ask; its answer is reported later."""
        self._asks.put((ask.asked, pack(ask.view), ask.view.jobs))

    def _run(self) -> None:
        self._make_ready()
        while (ask := self._asks.get()) is not None:
            asked, view, jobs = ask
            if jobs >= MANY_JOBS and not self._has_compiler:
                self._has_compiler = True
                self._make_ready()
            if self._is_closed:  # meanwhile; an ask would start the process again
                break
            self.report(self._answer(asked, view))
        self._process.stop()

    def _make_ready(self) -> None:
        """Start the process, and let it load the compiler where it may need it, before its time counts."""
        try:
            self._process.ask(COMPILER if self._has_compiler else READY, STARTING_S)
        except OSError as error:
            _log.warning("the process that asks the policy could not be started: %s", error or "no answer in time")

    def _answer(self, asked: int, view: bytes) -> PolicyAnswered | PolicyOverran:
        limit_s = self._limit_s()
        try:
            frame = self._process.ask(ANSWER + view, limit_s)
        except TimeoutError:
            reason = f"the policy gave no answer within solver_seconds = {limit_s:g}"
        except OSError as error:
            reason = f"the process that asks the policy failed ({error}); solver_memory_gib may be too low"
        else:
            if frame[:1] == ANSWER:
                return PolicyAnswered(asked, unpack(frame[1:]), self)
            reason = f"the policy failed: {frame[1:].decode(errors='replace')}"
        self.overruns += 1
        _log.warning("the last answer goes on: %s", reason)
        if self._asks.empty():
            self._make_ready()
        return PolicyOverran(asked, reason, self)


class Solver:
    """The runners of one service, a new one for each policy; `overruns` counts asks without an answer."""

    def __init__(self) -> None:
        self._runner: ProcessPolicyRunner | None = None
        self._writer: Writer | None = None
        self._earlier = 0

    @property
    def overruns(self) -> int:
        """Asks without an answer so far."""
        return self._earlier + (0 if self._runner is None else self._runner.overruns)

    def runner(self, site: Site) -> ProcessPolicyRunner:
        """Return a runner for a site in place of the one before, which ends."""
        self.close()
        runner = self._runner = ProcessPolicyRunner(site, self._limit_s)
        if self._writer is not None:
            runner.report = self._writer.put
            runner.start()
        return runner

    def begin(self, writer: Writer) -> None:
        """Report to this writer from now on, and ask for runners when the policy changes."""
        self._writer, writer.make_runner = writer, self.runner
        assert self._runner is not None
        self._runner.report = writer.put
        self._runner.start()

    def close(self) -> None:
        """End the process."""
        if self._runner is not None:
            self._earlier += self._runner.overruns
            self._runner.close()
            self._runner = None

    def _limit_s(self) -> float:
        assert self._writer is not None
        return self._writer.controller.site.service.solver_seconds
