"""Measurements of `benchmarks.service` in a process of its own: python service_run.py ENDED [ENDED …].

The service's controller, store and writer in this process, with gangs that end as soon as they are started, and a
policy whose answers come one turn late, as from a process of its own. It also measures another checkout, the one whose
`src` is on PYTHONPATH. Prints a line of JSON for each number of ended jobs.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eunomia.backends.reports import GangEnded, Launched, OrderTaken
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask
from eunomia.records.packed_objects import capture
from eunomia.records.run import InlinePolicyRunner
from eunomia.service.clock import MonotonicClock
from eunomia.service.job_document import parse_job
from eunomia.service.messages import AT_ONCE, Cancel, Launch, PolicyAnswered, Principal, Request, Submit
from eunomia.service.recovery import recover
from eunomia.service.site import load_site
from eunomia.service.store import open_store
from eunomia.service.writer import Writer

SITE = """\
[service]
submit_per_second = 1000000
max_pending_per_tenant = 1000000
[cluster]
accelerators = { cpu = 4 }
[policy]
name = "kueue_fair_share"
"""
LONG = 3  # jobs that run all the time
MEMORY = Path("/dev/shm")  # CPU time is measured, so nothing is waited for a disk
WARM, MEASURED = 20, 300  # short jobs
SHORT = {"command": ["true"], "duration_s": 1.0}


class LateRunner:
    """Keeps the last ask; it is answered later."""

    def __init__(self) -> None:
        self.ask: Ask | None = None

    def answer(self, ask: Ask) -> Answer | None:
        self.ask = ask
        return None


class Stand:
    """A service without network and processes."""

    def __init__(self, folder: Path) -> None:
        (folder / "site.toml").write_text(SITE)
        self.site = load_site(folder / "site.toml")
        self.store = open_store(self.site.place, self.site.state)
        self.inline, self.late = InlinePolicyRunner(self.site.setup.policy), LateRunner()
        controller, _ = recover(self.store, self.site, self.inline, "")
        self.writer = Writer(controller, self.store, MonotonicClock(self.store.clock()))
        self.keys, self.ended, self.cpu_s = 0, 0, 0.0  # CPU seconds of all turns
        self._submit({**SHORT, "duration_s": 1e6}, LONG, end=False)

    def _submit(self, document: dict[str, Any], count: int, *, end: bool) -> None:
        self.keys += 1
        jobs = tuple(parse_job(document) for _ in range(count))
        action = Submit(jobs, f"key-{self.keys:08}", str(self.keys), count > 1)
        turn = self._turn([Request(action, Principal("ann", "vision", "submitter"))])
        reply = turn.replies[0].body
        if end:
            who = Principal("op", "operators", "operator")
            self._turn([Request(Cancel(job), who) for job in reply.get("ids") or [reply["id"]]])

    def _turn(self, inputs: list[Any]) -> Any:
        """Do a turn, and what its orders lead to: gangs of short jobs begin and end."""
        begun = time.process_time()
        turn = first = self.writer.turn(inputs)
        while turn.orders:
            reports: list[Any] = []
            for order in turn.orders:
                reports.append(OrderTaken(order.number))
                if not isinstance(order, Launch):
                    reports.append(GangEnded(order.job_id, order.epoch, "stopped"))
                elif self.writer.controller.rows[order.job_id].spec["duration_s"] > 1.0:
                    reports.append(Launched(order.job_id, order.epoch))
                else:
                    ends = GangEnded(order.job_id, order.epoch, "finished")
                    reports += [Launched(order.job_id, order.epoch), ends]
            turn = self.writer.turn(reports)
        self.cpu_s += time.process_time() - begun
        return first

    def fill(self, ended: int) -> None:
        """Let so many jobs have come and ended, as quickly as that goes."""
        self.writer.controller.runner = self.inline
        while self.ended < ended:
            count = min(AT_ONCE, ended - self.ended)
            self._submit(SHORT, count, end=True)
            self.ended += count

    def short_jobs(self, count: int) -> None:
        """Submit jobs one by one; the policy's answer about each comes when the next one is there."""
        self.writer.controller.runner = self.late
        for _ in range(count):
            ask, self.late.ask = self.late.ask, None
            self._submit(SHORT, 1, end=False)
            if ask is not None:
                self._turn([PolicyAnswered(ask.asked, self.site.setup.policy.decide(ask.view))])
        self.ended += count


def main() -> None:
    """Measure at each number of ended jobs, in ascending order."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        stand = Stand(Path(folder))
        stand.fill(AT_ONCE)  # loads and compiles what turns need
        for ended in sorted(map(int, sys.argv[1:])):
            stand.fill(ended)
            stand.short_jobs(WARM)
            before = stand.cpu_s
            stand.short_jobs(MEASURED)
            cpu_s = stand.cpu_s - before
            scheduler = stand.writer.controller.scheduler
            found = {
                "ended": ended,
                "cpu_ms": 1000 * cpu_s / MEASURED,
                "rows": len(scheduler.state.jobs),
                "snapshot_bytes": len(capture(scheduler).content()),
                "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            print(json.dumps(found), flush=True)
        stand.store.close()


if __name__ == "__main__":
    main()
