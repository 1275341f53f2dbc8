"""Measurements of `benchmarks.service` in a process of its own, a line of JSON each.

    python service_run.py ended ENDED [ENDED …]             a short job after so many ended ones
    python service_run.py decisions POLICY WAITING          a decision with so many jobs waiting

The service's controller, store and writer in this process, with gangs that start at once, and a policy whose answers
come one turn late, as from a process of its own. It also measures another checkout, the one whose `src` is on
PYTHONPATH.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eunomia.backends.reports import GangEnded, Launched, OrderTaken
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask
from eunomia.records.packed_objects import capture, pack, unpack
from eunomia.records.run import InlinePolicyRunner
from eunomia.service.clock import SetClock
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
accelerators = {{ {accelerators} }}
[policy]
name = "{policy}"
"""
LONG = 3  # jobs that run all the time
MEMORY = Path("/dev/shm")  # CPU time is measured, so nothing is waited for a disk
WARM, MEASURED = 20, 300  # short jobs
SHORT = {"command": ["true"], "duration_s": 1.0}
WARM_DECISIONS, DECISIONS, APART_S = (
    3,
    7,
    720.0,
)  # of which the median counts; two rounds, so that a policy of rounds is asked each time
TENANTS = 10
MOST_ASKS = 20  # that follow each other without time passing


class LateRunner:
    """Keeps the last ask; it is answered later."""

    def __init__(self) -> None:
        self.ask: Ask | None = None

    def answer(self, ask: Ask) -> Answer | None:
        self.ask = ask
        return None


class Stand:
    """A service without network and processes."""

    def __init__(self, folder: Path, policy: str, accelerators: str) -> None:
        (folder / "site.toml").write_text(SITE.format(policy=policy, accelerators=accelerators))
        self.site = load_site(folder / "site.toml")
        self.store = open_store(self.site.place, self.site.state)
        self.inline, self.late = InlinePolicyRunner(self.site.setup.policy), LateRunner()
        controller, _ = recover(self.store, self.site, self.inline, "")
        self.clock = SetClock(0.0)
        self.writer = Writer(controller, self.store, self.clock)
        self.keys, self.ended, self.cpu_s = 0, 0, 0.0  # CPU seconds of all turns
        self.first: tuple[Any, float] = None, 0.0  # the last turn without those that followed it, and its CPU seconds

    def _submission(self, documents: Sequence[dict[str, Any]], tenant: str = "vision") -> Request:
        self.keys += 1
        action = Submit(tuple(map(parse_job, documents)), f"key-{self.keys:08}", str(self.keys), len(documents) > 1)
        return Request(action, Principal("ann", tenant, "submitter"))

    def _submit(self, documents: Sequence[dict[str, Any]], *, end: bool) -> None:
        turn = self._turn([self._submission(documents)])
        reply = turn.replies[0].body
        if end:
            who = Principal("op", "operators", "operator")
            self._turn([Request(Cancel(job), who) for job in reply.get("ids") or [reply["id"]]])

    def _turn(self, inputs: list[Any]) -> Any:
        """Do a turn, and what its orders lead to: gangs of short jobs begin and end."""
        begun = time.process_time()
        turn = first = self.writer.turn(inputs)
        self.first = first, time.process_time() - begun
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
        if not self.ended:
            self._submit([{**SHORT, "duration_s": 1e6}] * LONG, end=False)
        while self.ended < ended:
            count = min(AT_ONCE, ended - self.ended)
            self._submit([SHORT] * count, end=True)
            self.ended += count

    def short_jobs(self, count: int) -> None:
        """Submit jobs one by one; the policy's answer about each comes when the next one is there."""
        self.writer.controller.runner = self.late
        for _ in range(count):
            ask, self.late.ask = self.late.ask, None
            self._submit([SHORT], end=False)
            if ask is not None:
                self._turn([PolicyAnswered(ask.asked, self.site.setup.policy.decide(ask.view))])
        self.ended += count

    def wait(self, jobs: int) -> None:
        """Let so many jobs wait that all differ, of ten tenants."""
        self.writer.controller.runner = self.late
        for first in range(0, jobs, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, jobs))
            self._turn([self._submission([_waiting(n) for n in numbers], f"team-{first // AT_ONCE % TENANTS}")])
        self._answer([])

    def decision(self, number: int) -> list[dict[str, float]]:
        """Let time pass, a job end and one come; return what each ask of the policy took that this led to."""
        self.clock.at += APART_S
        found = self._answer([])
        running = next(row for row in self.writer.controller.rows.values() if row.state == "running")
        self.clock.at += 1.0
        found += self._answer([GangEnded(running.id, running.epoch, "finished")])
        return found + self._answer([self._submission([_waiting(number)])])

    def _answer(self, inputs: list[Any]) -> list[dict[str, float]]:
        """Do a turn; answer as often as the policy is asked, as its process does, and return what that took.

        A decision is the turn that asks, the view's way to the policy and back, the policy, and the turn that has the
        answer; not the turns that follow, in which gangs begin and end.
        """
        found = list[dict[str, float]]()
        asking_s, _ = self._cost(inputs)
        while (ask := self.late.ask) is not None and len(found) < MOST_ASKS:
            self.late.ask = None
            begun = time.process_time()
            view = unpack(pack(ask.view))
            between = time.process_time()
            answer = self.site.setup.policy.decide(view)
            end = time.process_time()
            answer = unpack(pack(answer))
            packing_s = between - begun + time.process_time() - end
            answering_s, stored = self._cost([PolicyAnswered(ask.asked, answer)])
            service_s = asking_s + packing_s + answering_s
            found.append({"policy_ms": 1e3 * (end - between), "service_ms": 1e3 * service_s, "bytes": stored})
            asking_s = 0.0  # of an ask that followed in that turn
        return found

    def _cost(self, inputs: list[Any]) -> tuple[float, int]:
        """Do a turn and what follows; return the CPU time of the turn alone, and the bytes of answers in it."""
        self._turn(inputs)
        turn, cpu_s = self.first
        lines = [moment.lines.partition("\n")[0] for moment in turn.moments]
        return cpu_s, sum(len(line) for line in lines if '"Answered"' in line)


def _waiting(number: int) -> dict[str, Any]:
    return {
        "command": ["train"], "accelerators": (1, 1, 2, 4)[number % 4], "duration_s": 90_000.0 + 7919 * number % 9973,
        "deadline_s": 1e6 + number, "weight": 1.0 + number % 3, "app": f"app-{number % 50}",
    }  # fmt: skip


def ended(counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Measure a short job after each number of ended ones, in ascending order."""
    with _stand("kueue_fair_share", "cpu = 4") as stand:
        stand.fill(AT_ONCE)  # loads and compiles what turns need
        for count in sorted(counts):
            stand.fill(count)
            stand.short_jobs(WARM)
            before = stand.cpu_s
            stand.short_jobs(MEASURED)
            scheduler = stand.writer.controller.scheduler
            yield {
                "ended": count,
                "cpu_ms": 1000 * (stand.cpu_s - before) / MEASURED,
                "rows": len(scheduler.state.jobs),
                "snapshot_bytes": len(capture(scheduler).content()),
                "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }


def decisions(policy: str, waiting: int) -> Iterator[dict[str, Any]]:
    """Measure decisions with so many jobs waiting; medians of several."""
    with _stand(policy, "v100 = 64, p100 = 64, k80 = 64") as stand:
        stand.wait(waiting)
        for number in range(WARM_DECISIONS):
            stand.decision(waiting + number)
        found = [one for number in range(DECISIONS) for one in stand.decision(waiting + WARM_DECISIONS + number)]
        if not found:
            raise RuntimeError(f"{policy} was not asked, so there is no decision to measure")
        yield {"policy": policy, "waiting": waiting} | {
            name: statistics.median(one[name] for one in found) for name in found[0]
        }


@contextmanager
def _stand(policy: str, accelerators: str) -> Iterator[Stand]:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        stand = Stand(Path(folder), policy, accelerators)
        try:
            yield stand
        finally:
            stand.store.close()


def main() -> None:
    """Print what was found, a line each."""
    what, *rest = sys.argv[1:]
    for found in ended(list(map(int, rest))) if what == "ended" else decisions(rest[0], int(rest[1])):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
