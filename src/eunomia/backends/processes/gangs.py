"""The world of this machine: gangs under supervisors, which are found again by the next process.

A supervisor holds a lease of its own, which this world renews; when the lease ends it saves and stops its gang. Orders
reach it through the lease file, ends are seen by its process and read from its exit record, so a gang that an earlier
service started is handled like one of this one. The gangs of a run end with it: their supervisors notice when the pipe
from this process closes. Locked files, one a seat and one a job, keep two gangs from the same seat whatever their
schedulers believe.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Extend, Halt, Launch, Order
from eunomia.backends.processes.accounts import account_of
from eunomia.backends.processes.environment import environment_of
from eunomia.backends.processes.folder import JobFolder, read_json
from eunomia.backends.processes.seats import LOOK_S, SeatWatch
from eunomia.backends.processes.supervisor import start_time
from eunomia.backends.reports import GangEnded, Launched, MemoryUsed, OrderTaken, SeatsIdle, SeatsTaken, StepsSaved
from eunomia.backends.world import NO_SAVE_GRACE_S, ProcessWorld, WorldInputs
from eunomia.lease import CALLED_BACK
from eunomia.model.topology import Topology

SUPERVISOR = Path(__file__).with_name("supervisor.py")
POLL_S = 0.5  # of progress files, and of ends where the system cannot wait for a process
KILL_S = 5.0  # longest time to kill processes of a dead supervisor
MAX_WAIT_S = 3600.0  # in one system call, which has a limit
LATE_S = 2.0  # after the grace: then a run that ends kills a supervisor that has not ended


@dataclass(slots=True, eq=False)
class LocalGang:
    """A gang that was launched or found, and has not ended."""

    order: Launch
    folder: JobFolder
    grace_s: float
    end_s: float = math.inf  # when it stops whatever is renewed
    pidfd: int = -1
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    launched: bool = False
    launched_at: float = 0.0  # in s of time.monotonic; of an adopted gang: when it was found
    stop_grace_s: float | None = None
    stopped_by: float = math.inf  # when the grace is over, in s of time.monotonic
    steps: float | None = None
    lease_end: float = 0.0
    unkillable: bool = False  # it has ended, but for processes that do not die
    turned_away: str = ""  # who uses its seats, if it must not be launched therefore
    memory_gib: float = 0.0

    @property
    def key(self) -> tuple[str, int]:
        return self.order.job_id, self.order.epoch

    @property
    def seats(self) -> tuple[int, ...]:
        return self.order.seats

    def renew(self, end_s: float) -> None:
        """Write the lease, which ends then, or earlier if the gang has an end of its own."""
        self.lease_end = min(end_s, self.end_s)
        self.folder.write_lease(self.lease_end, self.stop_grace_s)

    def send(self, line: str) -> None:
        """Write to the supervisor: at first what to run, later whatever wakes it to read its lease."""
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; see `_end`
            self.process.stdin.write(line.encode() + b"\n")

    def close_pipes(self) -> None:
        """Close the pipes to and from the supervisor."""
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()


class LocalGangs(ProcessWorld):
    """The gangs of this machine."""

    def __init__(self, inputs: WorldInputs, look_s: float = LOOK_S) -> None:
        super().__init__("local", inputs)
        self._inputs, self._topology = inputs, inputs.topology
        self._workdir, self._lease_s = inputs.workdir.resolve(), inputs.lease_s
        self._inherited = dict(os.environ)
        # A supervisor has the rights of this process, so no variable that a user chose.
        self._libraries = {name: self._inherited[name] for name in ("LD_LIBRARY_PATH",) if name in self._inherited}
        self._seats: SeatWatch | None = None
        if inputs.driver is not None:
            self._seats = SeatWatch(inputs.driver, self._topology, self._inherited, self._workdir, look_s)
        self._leftover: list[LocalGang] = []  # their supervisors were killed, and some processes cannot be
        self._taken: dict[int, str] | None = None  # as reported
        self._idle: set[int] = set()  # likewise
        self._live: dict[tuple[str, int], LocalGang] = {}
        self._orders: deque[Order | Topology] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._renew_at = self._poll_at = 0.0
        (self._workdir / "seats").mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() == 0 and inputs.lock is None:
            self._workdir.chmod(0o711)  # accounts pass through to the folders of their jobs

    def carry_out(self, orders: Iterable[Order]) -> None:
        """Take orders; each is acknowledged with `OrderTaken`. An order that was taken before changes nothing."""
        self._orders.extend(orders)
        self._wake()

    def use_topology(self, topology: Topology) -> None:
        """Go on with other accelerators, for gangs that are launched from now on."""
        self._orders.append(topology)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # closed
            os.write(self._wake_write, b"!")

    # ---- the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing or (self._stops_jobs and self._live):
            for key, _ in self._selector.select(self._wait_s()):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                else:
                    kind, gang = key.data
                    self._guard(gang.key, self._end if kind == "end" else self._read, gang)
            while self._orders:
                self._take(self._orders.popleft())
            now = time.monotonic()
            if self._closing and self._stops_jobs:
                for gang in self._live.values():
                    self._halt(gang, saves=not self._hurries)
                    if self._inputs.lock is not None and gang.process is not None and now >= gang.stopped_by + LATE_S:
                        gang.process.kill()  # its gang is killed in `_report_end`
            if now >= self._poll_at:
                self._poll_at = now + POLL_S
                self._poll()
            self._report_taken()
            if now >= self._renew_at:
                self._renew_at = now + self._lease_s / 3
                for gang in self._live.values():
                    self._guard(gang.key, gang.renew, now + self._lease_s)
                self.renewals += len(self._live)
        for gang in self._live.values():
            if gang.process is not None:
                gang.process.returncode = 0  # it goes on without us, so its object must not wait for it
            gang.close_pipes()
            if gang.pidfd >= 0:
                os.close(gang.pidfd)
        self._selector.close()

    def _wait_s(self) -> float:
        polls = self._live or self._leftover
        due = min(self._renew_at, self._poll_at) if polls else self._renew_at
        if self._seats is not None:
            due = min(due, self._seats.due)
        return min(max(due - time.monotonic(), 0.0), self._lease_s / 3, MAX_WAIT_S)

    def _take(self, order: Order | Topology) -> None:
        if isinstance(order, Topology):
            self._topology, self._taken = order, None
            if self._seats is not None:
                self._seats.use_topology(order, self._inherited)
            return
        match order:
            case Launch():
                about = order.job_id, order.epoch
                if not self._guard(about, self._launch, order) and about not in self._live:
                    self._report(GangEnded(*about, "failed", "it could not be started"))
            case Halt(_, job_id, epoch, save) if (gang := self._live.get((job_id, epoch))) is not None:
                self._guard(gang.key, self._halt, gang, save)
            case Extend(_, job_id, epoch, end_s) if (gang := self._live.get((job_id, epoch))) is not None:
                gang.end_s = end_s
                gang.renew(time.monotonic() + self._lease_s)
        self._report(OrderTaken(order.number))

    def _halt(self, gang: LocalGang, saves: bool = True, *, at_once: bool = False) -> None:
        grace_s = 0.0 if at_once else gang.grace_s if saves else min(gang.grace_s, NO_SAVE_GRACE_S)
        if gang.stop_grace_s is None or grace_s < gang.stop_grace_s:
            gang.stop_grace_s = grace_s
            gang.stopped_by = min(gang.stopped_by, time.monotonic() + grace_s)
            gang.renew(gang.lease_end)
            if gang.process is not None:
                gang.send("")

    def _launch(self, order: Launch) -> None:
        if (order.job_id, order.epoch) in self._live:
            return
        folder = JobFolder.of(
            self._workdir, order.job_id, order.epoch, order.spec.get("checkpoint_dir", ""),
            account_of(order.user, self._inputs.account),
        )  # fmt: skip
        gang = LocalGang(order, folder, float(order.spec.get("checkpoint", {}).get("grace_s", 10.0)))
        gang.end_s = math.inf if order.end_s is None else order.end_s
        if folder.read_exit() is not None:
            self._report_end(gang)
        elif (record := read_json(folder.record)) is not None:
            self._adopt(gang, record)
        elif order.adopt_only or (self._is_taken(gang) and not self._has_earlier(gang)):
            self._report_end(gang)
        else:
            try:
                self._spawn(gang)
            except OSError as error:
                self._report(GangEnded(*gang.key, "failed", f"its supervisor cannot be started: {error}"))
            else:
                if gang.turned_away:
                    self._halt(gang, at_once=True)

    def _adopt(self, gang: LocalGang, record: dict[str, Any]) -> None:
        self._live[gang.key] = gang
        gang.renew(time.monotonic() + self._lease_s)
        gang.launched, gang.launched_at = bool(record["launched"]), time.monotonic()
        self._watch(gang, int(record["pid"]))
        if gang.launched:
            self._report(Launched(*gang.key))
        if not _is_alive(record):
            self._end(gang)

    def _spawn(self, gang: LocalGang) -> None:
        folder, lock = gang.folder, self._inputs.lock
        folder.make(0o777 if self._inputs.umask is None else 0o700)
        if self._inputs.token_of is not None:
            folder.write_token(self._inputs.token_of(*gang.key))
        gang.renew(time.monotonic() + self._lease_s)
        with open(folder.log, "ab") as log:
            log.write(f"--- epoch {gang.order.epoch}\n".encode())
            log.flush()
            gang.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env=self._libraries | {"EUNOMIA_LEASE_FILE": str(folder.lease)}, cwd=folder.path,
                start_new_session=True, pass_fds=() if lock is None else (lock,),
            )  # fmt: skip
        self._inputs.forked()
        self._live[gang.key] = gang
        gang.send(json.dumps(self._spec(gang)))
        assert gang.process.stdout is not None
        os.set_blocking(gang.process.stdout.fileno(), False)
        self._selector.register(gang.process.stdout, selectors.EVENT_READ, ("output", gang))
        self._watch(gang, gang.process.pid)

    def _spec(self, gang: LocalGang) -> dict[str, Any]:
        order, folder, inputs = gang.order, gang.folder, self._inputs
        first, *rest = order.spec["command"]
        seats = [(str(self._workdir / "seats" / f"{seat}.lock"), order.shared) for seat in sorted(order.seats)]
        per_accelerator = order.spec.get("processes") == "per_accelerator"
        ours = {"python": sys.executable} if first == "python" else {}  # where the user's shell has none
        searches = not ours or "PATH" in order.spec.get("env", {})
        token = {} if inputs.token_of is None else {"EUNOMIA_JOB_TOKEN_FILE": str(folder.token)}
        address = {"EUNOMIA_URL": self.url} if token and self.url else {}
        return {
            "command": [first if searches else sys.executable, *rest],
            **ours,
            **({} if inputs.umask is None else {"umask": inputs.umask}),
            "environment": environment_of(order, folder, self._topology, self._inherited, {**token, **address}),
            "cwd": order.spec.get("cwd") or str(folder.own),
            **({} if folder.account is None else {"account": asdict(folder.account)}),
            **({} if inputs.lock is None else {"lock": inputs.lock, "last_exit": str(folder.last_exit)}),
            "lease": str(folder.lease),
            "progress": str(folder.progress),
            "exit": str(folder.exit),
            "record": str(folder.record),
            "finished": str(folder.path / "finished.json"),
            "epoch": order.epoch,
            "grace_s": gang.grace_s,
            "log": str(folder.log),
            "log_bytes": inputs.log_bytes,
            **({"processes": len(order.seats)} if per_accelerator else {}),
            "locks": [(str(folder.path / "job.lock"), False), *seats],
        }

    def _watch(self, gang: LocalGang, pid: int) -> None:
        """Be woken when the process ends; where the system cannot, the exit record is polled."""
        if hasattr(os, "pidfd_open"):
            try:
                gang.pidfd = os.pidfd_open(pid)
            except OSError:
                return
            self._selector.register(gang.pidfd, selectors.EVENT_READ, ("end", gang))

    def _read(self, gang: LocalGang) -> None:
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
            self._be_launched(gang)
        gang.unkillable = gang.unkillable or b"U" in said
        self._read_steps(gang)

    def _be_launched(self, gang: LocalGang) -> None:
        if not gang.launched:
            gang.launched, gang.launched_at = True, time.monotonic()
            self._report(Launched(*gang.key))

    def _read_steps(self, gang: LocalGang) -> None:
        steps = gang.folder.read_progress(gang.order.total_steps or math.inf)
        if steps is not None and steps != gang.steps:
            gang.steps = steps
            self._report(StepsSaved(*gang.key, steps))

    def _poll(self) -> None:
        """Look after adopted gangs, which no pipe connects with this process, and after what remains of ended ones."""
        for gang in list(self._leftover):
            if not processes_of(gang.folder):
                self._leftover.remove(gang)
                self._guard(gang.key, self._report_end, gang)
        for gang in list(self._live.values()):
            if gang.process is None or gang.process.stdout is None or gang.process.stdout.closed:
                self._guard(gang.key, self._look_at, gang)
            if gang.key in self._faulty and not processes_of(gang.folder):
                self._guard(gang.key, self._end, gang)

    def _look_at(self, gang: LocalGang) -> None:
        record = read_json(gang.folder.record)
        if record is not None and record.get("launched"):
            self._be_launched(gang)
            gang.unkillable = bool(record.get("unkillable"))
        self._read_steps(gang)
        if gang.pidfd < 0 and (record is None or not _is_alive(record)):
            self._end(gang)

    def _end(self, gang: LocalGang) -> None:
        """Report the end of a gang whose supervisor has ended."""
        if self._live.pop(gang.key, None) is None:
            return
        if gang.pidfd >= 0:
            self._selector.unregister(gang.pidfd)
            os.close(gang.pidfd)
            gang.pidfd = -1
        if gang.process is not None:
            if gang.process.stdout is not None and not gang.process.stdout.closed:
                self._selector.unregister(gang.process.stdout)
            gang.close_pipes()
            gang.process.wait()
        record = read_json(gang.folder.record)
        if not gang.launched and record is not None and record.get("launched"):
            self._be_launched(gang)
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
        return {seat: gang.order.job_id for gang in gangs for seat in gang.seats}

    def _is_taken(self, gang: LocalGang) -> bool:
        """Ask the driver before a launch; a gang whose seat others use is turned away."""
        if self._seats is not None:
            self._seats.look()
        self._report_taken()
        self._turn_away(gang)
        return bool(gang.turned_away)

    def _has_earlier(self, gang: LocalGang) -> bool:
        """Say whether an earlier gang of the job still runs: the end of a later one would say that it does not."""
        return any(job == gang.order.job_id for job, _ in self._live)

    def _turn_away(self, gang: LocalGang) -> None:
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
                gib = self._seats.memory_gib.get(gang.key, 0.0)
                if gib > gang.memory_gib:
                    gang.memory_gib = gib
                    self._report(MemoryUsed(*gang.key, gib))
            self._report_idle()
        taken = self._taken_now()
        if taken == self._taken:
            return
        self._taken = taken
        self._report(SeatsTaken(tuple(sorted(taken.items())), tuple(sorted(self._quarantined().items()))))
        for gang in self._live.values():
            if not gang.launched and not gang.unkillable and not taken.keys().isdisjoint(gang.seats):
                self._turn_away(gang)
                self._halt(gang, at_once=True)

    def _report_end(self, gang: LocalGang) -> None:
        self._read_steps(gang)
        found = gang.folder.read_exit()
        if gang.turned_away:
            self._report(GangEnded(*gang.key, "stopped", f"its accelerator is used by {gang.turned_away}"))
        elif found is None:
            if kill_processes(gang.folder):
                self._leftover.append(gang)
            else:  # a gang of a run dies with its supervisor, and the job has failed
                outcome = "lost" if self._inputs.lock is None or gang.process is None else "failed"
                self._report(GangEnded(*gang.key, outcome, "its supervisor was killed"))
        else:
            line = gang.folder.last_line()
            outcome, reason = found.outcome(was_stopped=gang.stop_grace_s is not None, last_line=line)
            left_by_itself = outcome == "failed" and found.code == CALLED_BACK
            if outcome == "ended" or (left_by_itself and time.monotonic() >= gang.lease_end):
                outcome, reason = "stopped", "its lease ended while no service renewed it"
            self._report(GangEnded(*gang.key, outcome, reason))


def kill_processes(folder: JobFolder) -> list[int]:
    """Kill every process of this gang; return those that did not die within `KILL_S`."""
    deadline = time.monotonic() + KILL_S
    while pids := processes_of(folder):
        if time.monotonic() >= deadline:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return pids


def processes_of(folder: JobFolder) -> list[int]:
    """Return the ids of processes with the lease of this gang in their environment; none without /proc."""
    return processes_with(f"EUNOMIA_LEASE_FILE={folder.lease}".encode())


def processes_with(variable: bytes) -> list[int]:
    """Return the ids of processes with a variable NAME=value in their environment."""
    pids = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                if variable in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    pids.append(int(name))
    return pids


def _is_alive(record: Mapping[str, Any]) -> bool:
    """Say whether the very process of a record still runs."""
    started = start_time(int(record["pid"]))
    return bool(started) and started == record["start"]
