"""A service for days on end on a clock that is set: what it keeps, and what a start, a summary and a backup take.

    python -m benchmarks service year [--days N] [--jobs N] [--history DAYS]

20,000 jobs a day are submitted hour by hour, each with a folder as a supervisor leaves it, and what the site keeps no
longer is removed every hour, as in a service. It prints ten lines, and ends with 1 where the books do not agree.
`python benchmarks/service_year.py FOLDER DAYS JOBS HISTORY` goes on from where it was killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from eunomia.backends.processes.folder import folder_name
from eunomia.backends.reports import GangEnded, Launched, OrderTaken
from eunomia.inputs.file_contents import contents
from eunomia.records.run import InlinePolicyRunner
from eunomia.service.clock import SetClock
from eunomia.service.job_document import parse_job
from eunomia.service.living_state import summary
from eunomia.service.messages import Launch, LongSubmission, Principal, Request, Submit
from eunomia.service.recovery import recover
from eunomia.service.removal import JOBS_FOLDER, Removal
from eunomia.service.site import load_site
from eunomia.service.store import open_store
from eunomia.service.store.audit_files import FOLDER, check_file
from eunomia.service.store.audit_log import DAY_S, KEY_FILE, read_key
from eunomia.service.store.backup import back_up
from eunomia.service.store.reader import Reader
from eunomia.service.store.removal_reader import RemovalReader
from eunomia.service.writer import Writer

HOUR_S, RUN_S = 3600.0, 600.0
LONG = 3  # jobs that run all the time
USERS = 10
HEAD = (f"{'day':>5} {'jobs':>11} {'kept':>9} {'store':>10} {'folders':>9} {'audit':>9} {'memory':>9} {'start':>8} "
        f"{'summary':>9} {'backup':>8} {'CPU a job':>10} {'removal':>9}")  # fmt: skip
SITE = """\
[service]
submit_per_second = 1000000
max_pending_per_tenant = 1000000
submit_mib_per_day = 100000
history_days = {history}
audit_days = {history}
[cluster]
accelerators = {{ cpu = {accelerators} }}
[policy]
name = "fifo"
"""
FILES = {"log": 400, "progress.json": 60, "exit-1.json": 80, "lease-1.json": 90, "supervisor-1.json": 160}  # bytes


class Year:
    """A service whose gangs take ten minutes each; opened again, it goes on within the hour in which it ended."""

    def __init__(self, folder: Path, jobs_a_day: int, history_days: float) -> None:
        self.an_hour = max(round(jobs_a_day / 24), 2)
        path = folder / "site.toml"
        path.write_text(SITE.format(history=history_days, accelerators=LONG + self.an_hour * 2 // 3 + 1))
        self.site = load_site(path)
        self.jobs = self.site.state / JOBS_FOLDER
        self.cpu_s, self.removal_s = 0.0, 0.0  # processor time of turns, and of removals
        self.start()

    def start(self) -> float:
        """Start the service; return how long that took."""
        begun = time.perf_counter()
        self.store = open_store(self.site.place, self.site.state)
        controller, orders = recover(self.store, self.site, InlinePolicyRunner(self.site.setup.policy))
        took = time.perf_counter() - begun
        self.jobs.mkdir(exist_ok=True)
        last = self.store.clock()
        self.clock = SetClock(0.0 if last is None else last.at)
        self.writer = Writer(controller, self.store, self.clock)
        self._act(orders)
        return took

    # ---- what happens ----------------------------------------------------------------------------------------

    def run(self, days: int, each_day: Callable[[int], None] = lambda day: None) -> None:
        """Let the days until one pass, from where the service is."""
        for hour in range(int(self.clock.at // HOUR_S), 24 * days):
            self._hour(hour)
            if (hour + 1) % 24 == 0:
                each_day((hour + 1) // 24)

    def _hour(self, hour: int) -> None:
        self.clock.at = max(self.clock.at, hour * HOUR_S)
        begun = time.process_time()
        if hour == 0:
            self._submit("long", "long", [1e9] * LONG)
        self._submit(f"user-{hour % USERS}", f"hour-{hour:06}", [RUN_S] * self.an_hour)
        while ends := [row for row in self.writer.controller.rows.values() if row.owner != "long"]:
            self.clock.at += RUN_S
            self._act([], [GangEnded(row.id, row.epoch, ("finished", "failed")[row.number % 10 == 0]) for row in ends])
        if hour % 24 == 23 or self.writer.replay_cost.is_snapshot_due(is_busy=False):
            self.writer.snapshot()
        swept = time.process_time()
        self.sweep()
        self.cpu_s += swept - begun
        self.removal_s += time.process_time() - swept

    def _submit(self, user: str, key: str, run_s: list[float]) -> None:
        jobs = tuple(parse_job({"command": ["train", "--lr", "0.1"], "duration_s": one}) for one in run_s)
        (found,) = self._turn([Request(Submit(jobs, key, key, True), Principal(user, "vision", "submitter"))])
        while isinstance(found, LongSubmission):
            (found,) = self._turn([found])

    def _turn(self, inputs: Sequence[Any]) -> list[Any]:
        """Do a turn, and what its orders lead to; return its replies."""
        turn = self.writer.turn(inputs)
        self._act(turn.orders)
        return list(turn.replies)

    def _act(self, orders: Sequence[Any], reports: Sequence[Any] = ()) -> None:
        """Carry out orders and report them, until there are no more."""
        while orders or reports:
            found = list(reports)
            for order in orders:
                found.append(OrderTaken(order.number))
                if isinstance(order, Launch):
                    self._write_folder(order.job_id)
                    found.append(Launched(order.job_id, order.epoch))
            orders, reports = self.writer.turn(found).orders, ()

    def _write_folder(self, job_id: str) -> None:
        folder = self.jobs / folder_name(job_id)
        folder.mkdir(exist_ok=True)
        for name, size in FILES.items():
            (folder / name).write_bytes(b"x" * size)

    def sweep(self) -> None:
        """Remove what the site keeps no longer now."""
        with closing(RemovalReader(self.site.place)) as reader:
            change, pause = (lambda do: do(self.store)), (lambda worked_s: None)
            Removal(self.site.service, self.jobs, reader, self.clock.now(), change, pause).sweep()

    # ---- what is there ---------------------------------------------------------------------------------------

    def disagreements(self) -> list[str]:
        """Return where the books do not agree, also where a removal was interrupted."""
        found, db, hours = self.store.problems(self.key()), self.store._db, int(self.clock.at // HOUR_S)
        limit = self.clock.at - self.site.service.history_days * DAY_S
        kept = dict(db.execute("SELECT id, ended FROM jobs").fetchall())
        due = sum(ended is not None and ended < limit for ended in kept.values())
        ended = int(max(limit, 0.0) // HOUR_S) * self.an_hour  # in whole hours, besides those of one hour more
        live = {row.id for row in self.writer.controller.rows.values() if not row.is_over}
        folders = set(os.listdir(self.jobs))
        sums = dict(db.execute("SELECT hour, sum(jobs) FROM ended_hours GROUP BY hour").fetchall())
        counted = dict(db.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
        with closing(Reader(self.site.place)) as reader:
            counts = reader.counts()
        for what, holds in {
            "the jobs that run all the time are live, with their folders":
                len([row for row in self.writer.controller.rows.values() if row.owner == "long"]) == LONG
                and all(folder_name(one) in folders for one in live),
            "no job is lost, and none is removed before its time":
                0 <= self.store.next_job() - 1 - len(kept) + due - ended <= self.an_hour,
            "each folder is that of a stored job": folders <= {folder_name(one) for one in kept},
            "jobs that are kept have their folders":
                {folder_name(one) for one, at in kept.items() if at is not None and at >= limit} <= folders,
            "counts are those of the stored jobs": counts == counted,
            "the sums of hours are those of all jobs":
                all(sums.get(hour) == self.an_hour for hour in range(int(max(limit, 0.0) // HOUR_S) + 1, hours)),
            "each submission is in the audit log or in a part that was taken away": self._logged() >= hours + 1,
        }.items():  # fmt: skip
            found += [] if holds else [f"not so: {what}"]
        return found

    def key(self) -> bytes | None:
        """Return the key that signs the audit log."""
        return read_key(self.site.state / KEY_FILE)

    def _logged(self) -> int:
        """Return how many submissions the audit log has, in the store and in files, which are verified."""
        found = {seq for (seq,) in self.store._db.execute("SELECT seq FROM audit WHERE action = 'submit'").fetchall()}
        for path in (self.site.state / FOLDER).glob("*.gz"):
            check_file(path, self.key())
            rows = map(json.loads, contents(path).splitlines()[1:])
            found.update(row[0] for row in rows if row[5] == "submit")
        return len(found)

    def measured(self, day: int) -> dict[str, Any]:
        """Return what is stored, and what it takes to use it; the service starts anew for that."""
        reader = Reader(self.site.place)
        since, times = self.clock.at - 30 * DAY_S, list[float]()
        for _ in range(5):
            begun = time.perf_counter()
            sums, rows = reader.ended_since(since)
            summary([*rows, *self.writer.controller.rows.values()], self.clock.at, sums)
            times.append(time.perf_counter() - begun)
        kept = sum(reader.counts().values())
        reader.close()
        backup = self.site.state.parent / "backup.db"
        begun = time.perf_counter()
        back_up(self.site.state, backup)
        took = time.perf_counter() - begun
        backup.unlink()
        self.store.close()
        size = sum(path.stat().st_size for path in self.site.state.glob("store.db*"))
        jobs = 24 * day * self.an_hour
        return {
            "day": day, "jobs": jobs, "kept": kept, "store_bytes": size, "folders": len(os.listdir(self.jobs)),
            "audit_bytes": sum(path.stat().st_size for path in (self.site.state / FOLDER).glob("*")),
            "memory_bytes": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            "start_s": self.start(), "summary_s": median(times), "backup_s": took, "cpu_s_a_job": self.cpu_s / jobs,
            "removal_s_a_job": self.removal_s / jobs,
        }  # fmt: skip


def _line(one: dict[str, Any]) -> str:
    mib = {key: f"{one[f'{key}_bytes'] / 2**20:,.1f} MiB" for key in ("store", "audit", "memory")}
    return (
        f"{one['day']:>5} {one['jobs']:>11,} {one['kept']:>9,} {mib['store']:>10} {one['folders']:>9,} "
        f"{mib['audit']:>9} {mib['memory']:>9} {one['start_s']:>6.2f} s {1000 * one['summary_s']:>6.1f} ms "
        f"{one['backup_s']:>6.1f} s {1000 * one['cpu_s_a_job']:>7.2f} ms {1000 * one['removal_s_a_job']:>6.2f} ms"
    )


def main(days: int, jobs_a_day: int, history_days: float, out: Path) -> list[str]:
    """Measure, print and write; return where the books do not agree."""
    print(HEAD, flush=True)
    found: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        year = Year(Path(folder), jobs_a_day, history_days)

        def each_day(day: int) -> None:
            if day % max(days // 10, 1) == 0:
                found.append(year.measured(day))
                print(_line(found[-1]), flush=True)

        year.run(days, each_day)
        wrong = year.disagreements()
        year.store.close()
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return wrong


def go_on(folder: Path, days: int, jobs_a_day: int, history_days: float) -> list[str]:
    """Go on in a folder until a day; return where the books do not agree at the start, or at the end."""
    year = Year(folder, jobs_a_day, history_days)
    found = year.disagreements() if year.clock.at else []
    year.run(days)
    found += year.disagreements()
    year.store.close()
    return found


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    wrong = go_on(Path(place), int(numbers[0]), int(numbers[1]), float(numbers[2]))
    print(*wrong, sep="\n")
    sys.exit(bool(wrong))
