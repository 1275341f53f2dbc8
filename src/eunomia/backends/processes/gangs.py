"""The local world of a service: gangs whose supervisors outlive the service, and are found again by the next one.

A supervisor holds a lease of its own, which this world renews; without renewals it saves and stops its gang when the
lease ends. Orders reach it through the lease file, ends are seen by its process and read from its exit record, so a
gang that an earlier service started is handled like one of this one. Locked files, one a seat and one a job, keep two
gangs from the same seat whatever the services believe.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eunomia.backends.processes.accounts import Account, account_of
from eunomia.backends.processes.device_use import DeviceDriver
from eunomia.backends.processes.environment import environment_of
from eunomia.backends.processes.folder import JobFolder, folder_name
from eunomia.backends.processes.gang import SUPERVISOR, Ending, kill_processes, processes_of
from eunomia.backends.processes.seats import LOOK_S, SeatWatch
from eunomia.backends.processes.supervisor import start_time
from eunomia.backends.reports import (
    GangEnded,
    Launched,
    MemoryUsed,
    OrderTaken,
    Report,
    SeatsIdle,
    SeatsTaken,
    StepsSaved,
)
from eunomia.backends.world_thread import WorldThread
from eunomia.lease import CALLED_BACK, write_whole
from eunomia.model.decisions import Start
from eunomia.model.job import Job
from eunomia.model.topology import Topology

POLL_S = 0.5  # of progress files, and of ends where the system cannot wait for a process
NO_SAVE_GRACE_S = 0.5


class LaunchOrder(Protocol):
    """Start a gang, or adopt it if it runs; `adopt_only`: it was running, so do not start it again."""

    @property
    def number(self) -> int: ...
    @property
    def job_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def seats(self) -> tuple[int, ...]: ...
    @property
    def spec(self) -> dict[str, Any]: ...
    @property
    def total_steps(self) -> float: ...
    @property
    def array_index(self) -> int | None: ...
    @property
    def shared(self) -> bool: ...
    @property
    def adopt_only(self) -> bool: ...
    @property
    def user(self) -> str: ...


@dataclass(frozen=True, slots=True)
class EpochFolder(JobFolder):
    """The files of one start of a job; log, progress and checkpoints are those of the job."""

    epoch: int = 0
    account: Account | None = None  # under which the job runs; None = that of the service

    @property
    def own(self) -> Path:
        """Return the folder in which the job may write besides its checkpoints."""
        return self.path if self.account is None else self.path / "own"

    @property
    def progress(self) -> Path:
        return self.own / "progress.json"

    def make(self) -> None:
        """Create the folders; those that the job writes to belong to its account, which passes through the others."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in dict.fromkeys((self.checkpoints, self.own)):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                if self.account is not None:
                    self.account.own(folder)
        if self.account is not None:
            self.path.chmod(0o711)

    @property
    def token(self) -> Path:
        return self.path / f"token-{self.epoch}"

    def write_token(self, text: str) -> None:
        """Write the token of this start, for the job's account alone; its folder is the service's."""
        write_whole(self.token, f"{text}\n", mode=0o400)
        if self.account is not None:
            self.account.own(self.token)

    @property
    def lease(self) -> Path:
        return self.path / f"lease-{self.epoch}.json"

    @property
    def exit(self) -> Path:
        return self.path / f"exit-{self.epoch}.json"

    @property
    def record(self) -> Path:
        """Who supervises the gang."""
        return self.path / f"supervisor-{self.epoch}.json"


@dataclass(slots=True, eq=False)
class _Gang:
    job_id: str
    epoch: int
    folder: EpochFolder
    grace_s: float
    total_steps: float
    seats: frozenset[int] = frozenset()
    pidfd: int = -1
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    launched: bool = False
    launched_at: float = 0.0  # in s of time.monotonic; of an adopted gang: when it was found
    stop_grace_s: float | None = None
    steps: float | None = None
    lease_end: float = 0.0
    unkillable: bool = False  # it has ended, but for processes that do not die
    turned_away: str = ""  # who uses its seats, if it must not be launched therefore
    memory_gib: float = 0.0

    def write_lease(self, end_s: float) -> None:
        self.lease_end = end_s
        order = {} if self.stop_grace_s is None else {"stop": self.stop_grace_s}
        mode = None if self.folder.account is None else 0o644  # its account reads it
        write_whole(self.folder.lease, json.dumps({"end_s": end_s, **order}), mode=mode)


class DetachedGangs:
    """Carries out orders in a thread of its own, and hands every report to `report`, from that thread."""

    def __init__(
        self, workdir: Path, topology: Topology, *, lease_s: float, report: Callable[[Report], None],
        forked: Callable[[], None] = lambda: None, driver: DeviceDriver | None = None, look_s: float = LOOK_S,
        log_bytes: int = 0, account: str = "", token_of: Callable[[str, int], str] | None = None,
        umask: int | None = None,
    ) -> None:  # fmt: skip
        """`account`: of this machine, for jobs of users who have none, where this process is root.

        `token_of` gives the token with which a start of a job may speak to the service. `umask` is that of jobs, None =
        that of this process.
        """
        self.url, self._token_of = "", token_of  # the address of the service, once it is known
        self._workdir, self._topology, self._lease_s, self._report = workdir.resolve(), topology, lease_s, report
        self._forked, self._log_bytes, self._account, self._umask = forked, log_bytes, account, umask
        self._inherited = dict(os.environ)
        # A supervisor has the rights of this process, so no variable that a user chose.
        self._libraries = {name: self._inherited[name] for name in ("LD_LIBRARY_PATH",) if name in self._inherited}
        self._seats: SeatWatch | None = None
        if driver is not None:
            self._seats = SeatWatch(driver, topology, self._inherited, self._workdir, look_s)
        self._leftover: list[_Gang] = []  # their supervisors were killed, and some processes cannot be
        self._taken: dict[int, str] | None = None  # as reported
        self._idle: set[int] = set()  # likewise
        self._live: dict[tuple[str, int], _Gang] = {}
        self._orders: deque[Any] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._closing, self._stops_jobs = False, False
        self.renewals = 0  # of leases so far
        self._renew_at = self._poll_at = 0.0
        self._thread = WorldThread(target=self._run, name="local world", daemon=True)
        (self._workdir / "seats").mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            self._workdir.chmod(0o711)  # accounts pass through to the folders of their jobs

    @property
    def failure(self) -> Exception | None:
        """Return what ended the thread unexpectedly."""
        return self._thread.failure

    def start(self) -> None:
        """Begin to carry out orders."""
        self._thread.start()

    def carry_out(self, orders: Iterable[Any]) -> None:
        """Take orders; each is acknowledged with `OrderTaken`. An order that was taken before changes nothing."""
        self._orders.extend(orders)
        with contextlib.suppress(OSError):  # closed
            os.write(self._wake_write, b"!")

    def use_topology(self, topology: Topology) -> None:
        """Go on with other accelerators, for gangs that are launched from now on."""
        self._orders.append(topology)
        self.carry_out(())

    def explain(self, why: Mapping[str, str]) -> None:
        """Do nothing: all jobs of this world are those of the service."""

    def close(self, *, stop_jobs: bool = False, wait_s: float = 30.0) -> None:
        """End the thread. The gangs go on under their supervisors, unless `stop_jobs` stops them with a checkpoint."""
        self._closing, self._stops_jobs = True, stop_jobs
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")
        self._thread.join(wait_s)

    # ---- the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing or (self._stops_jobs and self._live):
            for key, _ in self._selector.select(self._wait_s()):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                else:
                    kind, gang = key.data
                    self._end(gang) if kind == "end" else self._read(gang)
            while self._orders:
                self._take(self._orders.popleft())
            if self._closing and self._stops_jobs:
                for gang in self._live.values():
                    self._halt(gang, gang.grace_s)
            now = time.monotonic()
            if now >= self._poll_at:
                self._poll_at = now + POLL_S
                self._poll()
            self._report_taken()
            if now >= self._renew_at:
                self._renew_at = now + self._lease_s / 3
                for gang in self._live.values():
                    gang.write_lease(now + self._lease_s)
                self.renewals += len(self._live)
        for gang in self._live.values():
            if gang.process is not None:
                gang.process.returncode = 0  # it goes on without us, so its object must not wait for it
                if gang.process.stdout is not None:
                    gang.process.stdout.close()
            if gang.pidfd >= 0:
                os.close(gang.pidfd)
        self._selector.close()

    def _wait_s(self) -> float:
        polls = self._live or self._leftover
        due = min(self._renew_at, self._poll_at) if polls else self._renew_at
        if self._seats is not None:
            due = min(due, self._seats.due)
        return min(max(due - time.monotonic(), 0.0), self._lease_s / 3)

    def _take(self, order: Any) -> None:
        if isinstance(order, Topology):
            self._topology, self._taken = order, None
            if self._seats is not None:
                self._seats.use_topology(order, self._inherited)
            return
        if hasattr(order, "spec"):
            self._launch(order)
        elif (gang := self._live.get((order.job_id, order.epoch))) is not None:
            self._halt(gang, gang.grace_s if order.save else min(gang.grace_s, NO_SAVE_GRACE_S))
        self._report(OrderTaken(order.number))

    def _halt(self, gang: _Gang, grace_s: float) -> None:
        if gang.stop_grace_s is None or grace_s < gang.stop_grace_s:
            gang.stop_grace_s = grace_s
            gang.write_lease(gang.lease_end)

    def _launch(self, order: LaunchOrder) -> None:
        key = order.job_id, order.epoch
        if key in self._live:
            return
        path = self._workdir / folder_name(order.job_id)
        folder = EpochFolder(path, path / "checkpoint", order.epoch, account_of(order.user, self._account))
        grace_s = float(order.spec.get("checkpoint", {}).get("grace_s", 10.0))
        gang = _Gang(
            order.job_id, order.epoch, folder, grace_s, order.total_steps or float("inf"), frozenset(order.seats)
        )
        if folder.exit.exists():
            self._report_end(gang)
        elif (record := _supervisor(folder)) is not None:
            self._adopt(gang, record)
        elif order.adopt_only or (self._is_taken(gang) and not self._has_earlier(gang)):
            self._report_end(gang)
        else:
            try:
                self._spawn(gang, order)
            except OSError as error:
                self._report(GangEnded(*key, "failed", f"its supervisor cannot be started: {error}"))
            else:
                if gang.turned_away:
                    self._halt(gang, 0.0)

    def _adopt(self, gang: _Gang, record: dict[str, Any]) -> None:
        self._live[gang.job_id, gang.epoch] = gang
        gang.write_lease(time.monotonic() + self._lease_s)
        gang.launched, gang.launched_at = bool(record["launched"]), time.monotonic()
        self._watch(gang, int(record["pid"]))
        if gang.launched:
            self._report(Launched(gang.job_id, gang.epoch))
        if not _is_alive(record):
            self._end(gang)

    def _spawn(self, gang: _Gang, order: LaunchOrder) -> None:
        folder = gang.folder
        folder.make()
        if self._token_of is not None:
            folder.write_token(self._token_of(gang.job_id, gang.epoch))
        gang.write_lease(time.monotonic() + self._lease_s)
        with open(folder.log, "ab") as log:
            log.write(f"--- epoch {gang.epoch}\n".encode())
            log.flush()
            gang.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env=self._libraries | {"EUNOMIA_LEASE_FILE": str(folder.lease)}, cwd=folder.path,
                start_new_session=True,
            )  # fmt: skip
        self._forked()
        self._live[gang.job_id, gang.epoch] = gang
        assert gang.process.stdin is not None
        assert gang.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; see `_end`
            gang.process.stdin.write(json.dumps(self._spec(gang, order)).encode() + b"\n")
        gang.process.stdin.close()
        os.set_blocking(gang.process.stdout.fileno(), False)
        self._selector.register(gang.process.stdout, selectors.EVENT_READ, ("output", gang))
        self._watch(gang, gang.process.pid)

    def _spec(self, gang: _Gang, order: LaunchOrder) -> dict[str, Any]:
        first, *rest = order.spec["command"]
        folder = gang.folder
        seats = [(str(self._workdir / "seats" / f"{seat}.lock"), order.shared) for seat in sorted(order.seats)]
        per_accelerator = order.spec.get("processes") == "per_accelerator"
        ours = {"python": sys.executable} if first == "python" else {}  # where the user's shell has none
        searches = not ours or "PATH" in order.spec.get("env", {})
        return {
            "command": [first if searches else sys.executable, *rest],
            **ours,
            **({} if self._umask is None else {"umask": self._umask}),
            "environment": self._environment(order, folder),
            "cwd": order.spec.get("cwd") or str(folder.own),
            **({} if folder.account is None else {"account": asdict(folder.account)}),
            "lease": str(folder.lease),
            "progress": str(folder.progress),
            "exit": str(folder.exit),
            "record": str(folder.record),
            "finished": str(folder.path / "finished.json"),
            "epoch": gang.epoch,
            "grace_s": gang.grace_s,
            "detached": True,
            "log": str(folder.log),
            "log_bytes": self._log_bytes,
            **({"processes": len(order.seats)} if per_accelerator else {}),
            "locks": [(str(folder.path / "job.lock"), False), *seats],
        }

    def _environment(self, order: LaunchOrder, folder: EpochFolder) -> dict[str, str]:
        job = Job(job_id=order.job_id, total_steps=order.total_steps or 1.0)
        start = Start(order.job_id, order.epoch, order.seats, 0.0)
        ours = environment_of(job, start, self._topology, self._inherited)
        ours["EUNOMIA_TOTAL_STEPS"] = repr(order.total_steps) if order.total_steps else ""
        if order.array_index is not None:
            ours["EUNOMIA_ARRAY_INDEX"] = str(order.array_index)
        files: dict[str, str] = {
            "EUNOMIA_LEASE_FILE": str(folder.lease),
            "EUNOMIA_PROGRESS_FILE": str(folder.progress),
            "EUNOMIA_CHECKPOINT_DIR": str(folder.checkpoints),
        }
        if folder.account is not None:
            ours = folder.account.environment(ours)
        if self._token_of is not None:
            files = {**files, "EUNOMIA_JOB_TOKEN_FILE": str(folder.token)}
            files |= {"EUNOMIA_URL": self.url} if self.url else {}
        return {**ours, **order.spec.get("env", {}), **files}

    def _watch(self, gang: _Gang, pid: int) -> None:
        """Be woken when the process ends; where the system cannot, the exit record is polled."""
        if hasattr(os, "pidfd_open"):
            try:
                gang.pidfd = os.pidfd_open(pid)
            except OSError:
                return
            self._selector.register(gang.pidfd, selectors.EVENT_READ, ("end", gang))

    def _read(self, gang: _Gang) -> None:
        assert gang.process is not None
        assert gang.process.stdout is not None
        try:
            said = os.read(gang.process.stdout.fileno(), 4096)
        except BlockingIOError:
            return
        if not said:
            self._selector.unregister(gang.process.stdout)
            gang.process.stdout.close()
            if gang.pidfd < 0:
                self._end(gang)
            return
        if b"L" in said:
            self._launched(gang)
        gang.unkillable = gang.unkillable or b"U" in said
        self._read_steps(gang)

    def _launched(self, gang: _Gang) -> None:
        if not gang.launched:
            gang.launched, gang.launched_at = True, time.monotonic()
            self._report(Launched(gang.job_id, gang.epoch))

    def _read_steps(self, gang: _Gang) -> None:
        steps = gang.folder.read_progress(gang.total_steps)
        if steps is not None and steps != gang.steps:
            gang.steps = steps
            self._report(StepsSaved(gang.job_id, gang.epoch, steps))

    def _poll(self) -> None:
        """Look after adopted gangs, which no pipe connects with this process, and after what remains of ended ones."""
        for gang in list(self._leftover):
            if not processes_of(gang.folder):
                self._leftover.remove(gang)
                self._report_end(gang)
        for gang in list(self._live.values()):
            if gang.process is not None and gang.process.stdout is not None and not gang.process.stdout.closed:
                continue
            record = _read_json(gang.folder.record)
            if record is not None and record["launched"]:
                self._launched(gang)
                gang.unkillable = bool(record.get("unkillable"))
            self._read_steps(gang)
            if gang.pidfd < 0 and (record is None or not _is_alive(record)):
                self._end(gang)

    def _end(self, gang: _Gang) -> None:
        """Report the end of a gang whose supervisor has ended."""
        if self._live.pop((gang.job_id, gang.epoch), None) is None:
            return
        if gang.pidfd >= 0:
            self._selector.unregister(gang.pidfd)
            os.close(gang.pidfd)
            gang.pidfd = -1
        if gang.process is not None:
            if gang.process.stdout is not None and not gang.process.stdout.closed:
                self._selector.unregister(gang.process.stdout)
                gang.process.stdout.close()
            gang.process.wait()
        record = _read_json(gang.folder.record)
        if not gang.launched and record is not None and record["launched"]:
            self._launched(gang)
        self._read_steps(gang)
        self._report_end(gang)

    # ---- seats that cannot be given away ---------------------------------------------------------------------

    def _taken_now(self) -> dict[int, str]:
        """Return the seats that strangers use, and those where processes of an ended gang cannot be killed."""
        found = {} if self._seats is None else dict(self._seats.strangers)
        for seat, job in self._quarantined().items():
            found[seat] = f"processes of job {job} that cannot be killed"
        return found

    def _quarantined(self) -> dict[int, str]:
        """Return the seats with processes of an ended gang that cannot be killed, and its job."""
        gangs = (*self._leftover, *(gang for gang in self._live.values() if gang.unkillable))
        return {seat: gang.job_id for gang in gangs for seat in gang.seats}

    def _is_taken(self, gang: _Gang) -> bool:
        """Ask the driver before a launch; a gang whose seat others use is turned away."""
        if self._seats is not None:
            self._seats.look()
        self._report_taken()
        self._turn_away(gang)
        return bool(gang.turned_away)

    def _has_earlier(self, gang: _Gang) -> bool:
        """Say whether an earlier gang of the job still runs: the end of a later one would say that it does not."""
        return any(job == gang.job_id for job, _ in self._live)

    def _turn_away(self, gang: _Gang) -> None:
        taken = self._taken or {}
        gang.turned_away = ", ".join(dict.fromkeys(taken[seat] for seat in sorted(gang.seats) if seat in taken))

    def _report_idle(self) -> None:
        """Report accelerators that gangs have held for long without using them, if they are others than before."""
        assert self._seats is not None
        now, held = time.monotonic(), [gang for gang in self._live.values() if gang.launched]
        begun = {seat: gang.launched_at for gang in held for seat in gang.seats}
        seen = self._seats.idle_since
        waits = {seat: now - max(at, seen[seat]) for seat, at in begun.items() if seat in seen}
        idle = {seat: seconds for seat, seconds in waits.items() if seconds >= self._seats.idle_s}
        if idle.keys() != self._idle:
            self._idle = set(idle)
            self._report(SeatsIdle(tuple(sorted(idle.items()))))

    def _report_taken(self) -> None:
        """Report which seats are taken if that changed, and turn away gangs that wait for one of them."""
        if self._seats is not None and time.monotonic() >= self._seats.due:
            self._seats.look()
            for gang in self._live.values():
                gib = self._seats.memory_gib.get((gang.job_id, gang.epoch), 0.0)
                if gib > gang.memory_gib:
                    gang.memory_gib = gib
                    self._report(MemoryUsed(gang.job_id, gang.epoch, gib))
            self._report_idle()
        taken = self._taken_now()
        if taken == self._taken:
            return
        self._taken = taken
        self._report(SeatsTaken(tuple(sorted(taken.items())), tuple(sorted(self._quarantined().items()))))
        for gang in self._live.values():
            if not gang.launched and not gang.unkillable and not gang.seats.isdisjoint(taken):
                self._turn_away(gang)
                self._halt(gang, 0.0)

    def _report_end(self, gang: _Gang) -> None:
        key, found = (gang.job_id, gang.epoch), gang.folder.read_exit()
        if gang.turned_away:
            self._report(GangEnded(*key, "stopped", f"its accelerator is used by {gang.turned_away}"))
            return
        if found is None:
            if kill_processes(gang.folder):
                self._leftover.append(gang)
            else:
                self._report(GangEnded(*key, "lost", "its supervisor was killed"))
            return
        code, cause, _ = found
        ending = Ending(code, cause)
        if ending.finished:
            self._report(GangEnded(*key, "finished"))
        elif cause == "asked" or (code == CALLED_BACK and gang.stop_grace_s is not None):
            self._report(GangEnded(*key, "stopped"))
        elif cause != "exited" or (code == CALLED_BACK and time.monotonic() >= gang.lease_end):
            self._report(GangEnded(*key, "stopped", "its lease ended while no service renewed it"))
        else:
            line = gang.folder.last_line()
            self._report(GangEnded(*key, "failed", ending.reason("" if line.startswith("--- epoch ") else line)))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return dict(found)


def _supervisor(folder: EpochFolder) -> dict[str, Any] | None:
    """Return the record of the supervisor of an epoch; None if there was none."""
    return _read_json(folder.record)


def _is_alive(record: Mapping[str, Any]) -> bool:
    """Say whether the very process of a record still runs."""
    started = start_time(int(record["pid"]))
    return bool(started) and started == record["start"]
