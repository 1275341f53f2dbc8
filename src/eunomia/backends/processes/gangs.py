"""The world of this machine: gangs under supervisors, which are found again by the next process.

A supervisor holds a lease of its own, which this world renews; when the lease ends it saves and stops its gang. Orders
reach it through the lease file, ends are seen by its process and read from its exit record, so a gang that an earlier
service started is handled like one of this one. The gangs of a run end with it: their supervisors notice when the pipe
from this process closes. Locked files, one a seat and one a job, keep two gangs from the same seat whatever their
schedulers believe. A supervisor that does not stop its gang in time is killed with it; what then remains keeps its
seats, see `remains`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Extend, Halt, Launch, Order
from eunomia.backends.processes.accounts import account_of
from eunomia.backends.processes.folder import PROGRESS, RECORD, ExitRecord, JobFolder, read_json
from eunomia.backends.processes.found_gangs import FoundGang, running_gangs
from eunomia.backends.processes.gang_group import (
    boot_id,
    descendants,
    is_running,
    start_time,
    thaw,
)
from eunomia.backends.processes.gang_launch import what_ran_out
from eunomia.backends.processes.group_base import GroupBase
from eunomia.backends.processes.local_gang import LocalGang, supervisor_spec
from eunomia.backends.processes.lock_holders import SeatLocks, lease_of, moment, seats_signed
from eunomia.backends.processes.machine_limits import open_files_left, raise_open_files, tasks_for
from eunomia.backends.processes.remains import KilledGangs, Remains, processes_of
from eunomia.backends.processes.seats import LOOK_S, SeatWatch
from eunomia.backends.processes.written_files import WrittenFiles
from eunomia.backends.reports import (
    EnergyUsed,
    GangEnded,
    GangFound,
    LaunchDelayed,
    Launched,
    MemoryUsed,
    OrderTaken,
    QuarantinedSeat,
    SeatsIdle,
    SeatsTaken,
    StepsSaved,
)
from eunomia.backends.world import NO_SAVE_GRACE_S, ProcessWorld, WorldInputs
from eunomia.lease import CALLED_BACK
from eunomia.model.topology import Topology

SUPERVISOR = Path(__file__).with_name("supervisor.py")
POLL_S = 0.5  # of progress files and ends, where the system does not say that there are any
REPORT_S = 0.2  # between looks at what gangs have written, however much that is
DYING_S = 0.05  # between looks at processes that were killed
KILL_S = 5.0  # longest time for them to die; then their seats are out of service
MAX_WAIT_S = 3600.0  # in one system call, which has a limit
LATE_S = 2.0  # after the grace: then a run that ends kills a supervisor that has not ended
WATCH_S = 7.0  # likewise, of a service; later than a supervisor says that processes do not die
RETRY_S = 1.0  # until a launch is tried again for which the machine had none of something; each time twice as long
MOST_RETRY_S = 30.0
SAID_S = 1.0  # after which it is said what a gang waits for
ENERGY_S = 60.0  # of a gang's time, after which what its accelerators used is reported
NEVER_DIES = "it was killed, and some of it does not die"
_log = logging.getLogger(__name__)


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
        self._open_files = raise_open_files()
        self._groups = GroupBase.find()
        self._mark = hashlib.sha256(str(self._workdir).encode()).hexdigest()[:8]  # of our groups, among others'
        self._groups.remove_empty(self._mark)
        self._taken: dict[int, str] | None = None  # as reported
        self._idle: set[int] = set()  # likewise
        self._live: dict[tuple[str, int], LocalGang] = {}
        self._delayed: dict[tuple[str, int], LocalGang] = {}  # gangs that the machine has no room for now
        self._retry_at = math.inf
        self._orphans: dict[tuple[str, int], FoundGang] = {}  # gangs that no order named
        self._found: deque[FoundGang] = deque()  # those of them that are not reported yet
        self._has_looked = inputs.lock is not None  # for them; a run begins with none
        self._orders: deque[Order | Topology] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._renew_at = self._poll_at = self._written_at = 0.0
        self._written = WrittenFiles(lambda name: name == PROGRESS or name.startswith(RECORD))
        self._seat_files = self._workdir / "seats"
        self._seat_files.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._locks = SeatLocks(self._seat_files)
        adopts_strays = not self._groups.path and inputs.lock is None
        self._killed = KilledGangs(
            self._seat_files / "quarantine.json", adopts_strays=adopts_strays, known_group=self._known_group
        )
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

    def _is_done_again(self, error: Exception) -> bool:
        return isinstance(error, OSError) and bool(what_ran_out(error))

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # closed
            os.write(self._wake_write, b"!")

    # ---- the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing or (self._stops_jobs and (self._live or self._killed.is_killing(time.monotonic()))):
            try:
                self._turn()
            except OSError as error:  # what is not done yet is done in the next turn
                if not what_ran_out(error):
                    raise
                _log.warning("%s; gangs go on, and orders wait", what_ran_out(error))
                time.sleep(RETRY_S)
        for gang in self._live.values():
            if gang.process is not None:
                gang.process.returncode = 0  # it goes on without us, so its object must not wait for it
            gang.close_pipes()
            if gang.pidfd >= 0:
                os.close(gang.pidfd)
        self._selector.close()
        self._written.close()

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._wait_s()):
            if key.data is self._written:
                self._selector.unregister(self._written.handle)
                self._written_at = time.monotonic() + REPORT_S
                for gang in [self._live[key] for key in sorted(self._written.read()) if key in self._live]:
                    self._guard(gang.key, self._look_at, gang)
            elif key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            else:
                kind, gang = key.data
                self._guard(gang.key, self._end if kind == "end" else self._read, gang)
        if not self._has_looked:
            self._find_orphans()  # before the end of another gang, after which their seats would be given away
        while self._orders:
            self._take(self._orders[0])
            self._orders.popleft()
        while self._found:
            orphan = self._found.popleft()
            self._report(GangFound(*orphan.key, orphan.seats))
        now = time.monotonic()
        if now >= self._written_at and self._written.handle >= 0:
            self._selector.register(self._written.handle, selectors.EVENT_READ, self._written)
            self._written_at = math.inf
        if self._closing and self._stops_jobs:
            for gang in self._live.values():
                self._halt(gang, saves=not self._hurries)
            for gang in self._delayed.values():
                gang.stop_grace_s, self._retry_at = 0.0, 0.0
        if now >= self._retry_at:
            self._launch_delayed()
        if now >= self._poll_at:
            self._poll(now)
            self._poll_at = now + (DYING_S if self._killed.is_killing(now) else POLL_S)
        self._report_taken()
        if now >= self._renew_at:
            for gang in self._live.values():
                self._guard(gang.key, self._renew, gang, now + self._lease_s)
                self._guard(gang.key, self._read_steps, gang)  # of one that has its file open, which tells nothing
            self._renew_at = now + self._lease_s / 3
            self.renewals += len(self._live)

    def _renew(self, gang: LocalGang, end_s: float) -> None:
        """Renew a lease; if the machine has no room to write it, that of the other gangs must not wait for it."""
        thaw(*gang.supervisor)  # a job may have stopped it
        try:
            gang.renew(end_s)
        except OSError as error:
            if not what_ran_out(error):
                raise
            _log.warning("the lease of job %s is not renewed: %s", gang.order.job_id, what_ran_out(error))

    def _wait_s(self) -> float:
        polls = self._live or self._killed or self._orphans
        due = min(self._renew_at, self._poll_at) if polls else self._renew_at
        due = min(due, self._retry_at, self._written_at if self._written.handle >= 0 else math.inf)
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
                    folder = JobFolder.of(self._workdir, *about)
                    unusable = LocalGang(order, folder, 0.0, order.seats, is_unusable=True)
                    self._guard(about, self._report_end, unusable)
            case Halt(_, job_id, epoch, save) if (gang := self._live.get((job_id, epoch))) is not None:
                self._guard(gang.key, self._halt, gang, save)
            case Halt(_, job_id, epoch) if (gang := self._delayed.get((job_id, epoch))) is not None:
                gang.stop_grace_s, self._retry_at = 0.0, 0.0
            case Extend(_, job_id, epoch, end_s) if (gang := self._live.get((job_id, epoch))) is not None:
                gang.end_s = end_s
                self._guard(gang.key, self._renew, gang, time.monotonic() + self._lease_s)
        self._report(OrderTaken(order.number))

    def _halt(self, gang: LocalGang, saves: bool = True, *, at_once: bool = False) -> None:
        grace_s = 0.0 if at_once else gang.grace_s if saves else min(gang.grace_s, NO_SAVE_GRACE_S)
        if gang.stop_grace_s is None or grace_s < gang.stop_grace_s:
            gang.stop_grace_s = grace_s
            gang.stopped_by = min(gang.stopped_by, time.monotonic() + grace_s)
            gang.renew(gang.lease_end)

    def _launch(self, order: Launch) -> None:
        if (order.job_id, order.epoch) in self._live or (order.job_id, order.epoch) in self._delayed:
            return
        folder = JobFolder.of(
            self._workdir, order.job_id, order.epoch, order.spec.get("checkpoint_dir", ""),
            account_of(order.user, self._inputs.account),
        )  # fmt: skip
        gang = LocalGang(order, folder, float(order.spec.get("checkpoint", {}).get("grace_s", 10.0)), order.seats)
        gang.end_s = math.inf if order.end_s is None else order.end_s
        if (entry := self._killed.get(gang.key)) is not None:
            entry.gang = gang
        elif (found := folder.read_exit()) is not None and found.cause != "later":
            self._report_end(gang)
        elif found is None and (record := read_json(folder.record)) is not None:
            if not _is_usable(record, gang):  # its job has written it
                self._report_end(gang)
                return
            self._adopt(gang, record)
            if order.seats and sorted(gang.seats) != sorted(order.seats):  # it runs elsewhere than it is believed to
                self._halt(gang)
        elif order.adopt_only or (self._is_taken(gang) and not self._has_earlier(gang)):
            self._report_end(gang)
        else:
            self._start(gang)

    def _adopt(self, gang: LocalGang, record: dict[str, Any]) -> None:
        gang.renew(time.monotonic() + self._lease_s)
        self._live[gang.key] = gang
        gang.supervisor = int(record["pid"]), str(record["start"])
        gang.group = self._known_group(str(record.get("group", "")), gang.folder.path.name, gang.order.epoch)
        gang.seats = tuple(map(int, record.get("seats", gang.seats)))
        gang.launched, gang.launched_at = bool(record["launched"]), time.monotonic()
        self._watch(gang, gang.supervisor[0])
        self._read_steps(gang)
        if gang.launched:
            self._report(Launched(*gang.key))
        if not _is_alive(record):
            self._end(gang)

    def _start(self, gang: LocalGang) -> None:
        """Start the supervisor of a gang, later if the machine has no room for it now."""
        try:
            self._spawn(gang)
        except OSError as error:
            if reason := what_ran_out(error):
                self._delay(gang, reason)
            else:
                self._report(GangEnded(*gang.key, "failed", f"its supervisor cannot be started: {error}"))
        else:
            if gang.turned_away:
                self._halt(gang, at_once=True)

    def _delay(self, gang: LocalGang, reason: str) -> None:
        """Launch a gang later, the next time after twice as long; what it lacks may be there for all others."""
        if gang.delayed != reason:
            gang.delayed = reason
            self._report(LaunchDelayed(*gang.key, f"{reason}; it is tried again, at least each {MOST_RETRY_S:g} s"))
        gang.retry_s = min(max(2 * gang.retry_s, RETRY_S), MOST_RETRY_S)
        gang.retry_at = time.monotonic() + gang.retry_s
        self._delayed[gang.key] = gang
        self._retry_at = min(self._retry_at, gang.retry_at)

    def _launch_delayed(self) -> None:
        """Launch the gangs that had no room and whose time has come; those that were stopped end."""
        now = time.monotonic()
        for key, gang in list(self._delayed.items()):
            if gang.stop_grace_s is None:
                if now >= gang.retry_at:
                    del self._delayed[key]
                    self._guard(key, self._start, gang)
            elif self._has_earlier(gang):
                gang.retry_at = now + RETRY_S
            else:
                del self._delayed[key]
                self._report(GangEnded(*key, "stopped"))
        self._retry_at = min((gang.retry_at for gang in self._delayed.values()), default=math.inf)

    def _spawn(self, gang: LocalGang) -> None:
        """Start a supervisor. Raises OSError, and has changed nothing then but the job's folder."""
        folder, lock = gang.folder, self._inputs.lock
        if open_files_left() < 0:
            raise OSError(errno.EMFILE, "too many open files")
        folder.make(0o777 if self._inputs.umask is None else 0o700)
        folder.forget_start()
        if self._inputs.token_of is not None:
            folder.write_token(self._inputs.token_of(*gang.key))
        gang.renew(time.monotonic() + self._lease_s)
        with open(folder.begin_log(), "ab") as log:
            gang.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env=self._libraries | {"EUNOMIA_LEASE_FILE": str(folder.lease)}, cwd=folder.path,
                start_new_session=True, pass_fds=() if lock is None else (lock,),
            )  # fmt: skip
        self._inputs.forked()
        gang.supervisor = gang.process.pid, start_time(gang.process.pid)
        self._live[gang.key] = gang
        gang.group = self._make_group(gang)
        spec = supervisor_spec(
            gang, self._inputs, self._topology, self._inherited, self._seat_files, self.url, self._groups,
            self._open_files,
        )  # fmt: skip
        gang.send(json.dumps(spec))
        assert gang.process.stdout is not None
        os.set_blocking(gang.process.stdout.fileno(), False)
        self._selector.register(gang.process.stdout, selectors.EVENT_READ, ("output", gang))
        self._watch(gang, gang.process.pid)

    def _group_of(self, folder: str, epoch: int) -> str:
        return self._groups.group_of(f"{self._mark}-{folder}.{epoch}")

    def _known_group(self, written: str, folder: str, epoch: int) -> str:
        """Return the group that a file names, if it is that of this start: jobs may have written the file."""
        return written if written == self._group_of(folder, epoch) else ""

    def _make_group(self, gang: LocalGang) -> str:
        """Make the control group of a gang; "" where there can be none."""
        path, spec = self._group_of(gang.folder.path.name, gang.order.epoch), gang.order.spec
        tasks = tasks_for(len(gang.seats) / max(self._topology.devices, 1))
        try:
            if path:
                self._groups.group(path).make(float(spec.get("memory_gib") or 0), float(spec.get("cpus") or 0), tasks)
        except OSError:
            return ""
        return path

    def _watch(self, gang: LocalGang, pid: int) -> None:
        """Be woken when the process ends, or the gang writes; where the system cannot, its files are polled."""
        gang.is_watched = self._written.watch(gang.key, (gang.folder.path, gang.folder.own))
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
        if b"U" in said:
            self._begin_killing(gang, NEVER_DIES, patience_s=0.0)

    def _be_launched(self, gang: LocalGang) -> None:
        if not gang.launched:
            gang.launched, gang.launched_at, gang.frozen_at = True, time.monotonic(), math.inf
            self._report(Launched(*gang.key))

    def _read_steps(self, gang: LocalGang) -> None:
        steps = gang.folder.read_progress(gang.order.total_steps or math.inf)
        if steps is not None and steps != gang.steps:
            gang.steps = steps
            self._report(StepsSaved(*gang.key, steps))

    def _poll(self, now: float) -> None:
        """Look after what remains of ended gangs, those that are late, and those that nothing tells us about."""
        self._orphans = {key: gang for key, gang in self._orphans.items() if key not in self._live and gang.is_running}
        for entry in self._killed.kill_again(self._live):
            if entry.gang is not None:
                self._guard(entry.key, self._report_end, entry.gang)
        if now >= self._locks.due or not all(gang.launched for gang in self._live.values()):
            self._look_at_locks()
        for gang in list(self._live.values()):
            if not gang.launched:
                self._guard(gang.key, self._look_at_start, gang, now)
            self._guard(gang.key, self._stop_overdue, gang, now)
            if gang.pidfd < 0 or not gang.is_watched:
                self._guard(gang.key, self._look_at, gang)
            if gang.key in self._faulty and not processes_of(gang):
                self._guard(gang.key, self._end, gang)

    def _look_at(self, gang: LocalGang) -> None:
        """Read what a gang has written, and of one that no pipe connects with this process how its supervisor is."""
        self._read_steps(gang)
        if gang.process is not None and gang.process.stdout is not None and not gang.process.stdout.closed:
            return
        record = read_json(gang.folder.record)
        if record is not None and record.get("launched"):
            self._be_launched(gang)
            if record.get("unkillable"):
                self._begin_killing(gang, NEVER_DIES, patience_s=0.0)
        if gang.pidfd < 0 and not is_running(*gang.supervisor):
            self._end(gang)

    def _find_orphans(self) -> None:
        """Look for gangs that the first orders did not name, as after an older copy of the store was put back."""
        named = {(order.job_id, order.epoch) for order in self._orders if isinstance(order, Launch)}
        for gang in running_gangs(self._workdir):
            if gang.key in named or gang.key in self._killed or gang.key in self._orphans:
                continue
            if gang.doubt:
                _log.warning("start %d of job %s is left alone: %s", gang.epoch, gang.job_id, gang.doubt)
                continue
            self._orphans[gang.key] = gang
            self._found.append(gang)
            _log.warning("start %d of %s", gang.epoch, _orphaned(gang.job_id))
        self._has_looked = True
        self._look_at_locks({str(JobFolder.of(self._workdir, *key).lease) for key in named})
        self._report_taken()

    def _stop_overdue(self, gang: LocalGang, now: float) -> None:
        """Kill a gang with its supervisor, if that has not stopped it in time, as it is frozen or hangs.

        One that was not launched waits until the earlier gang of its job has ended: its end would say that it has.
        """
        is_closing_run = self._closing and self._inputs.lock is not None
        due = min(gang.stopped_by, gang.end_s + gang.grace_s, gang.frozen_at) + (LATE_S if is_closing_run else WATCH_S)
        if now < due or gang.key in self._killed:
            return
        if not (gang.launched or is_closing_run) and (self._has_earlier(gang) or self._others(gang, seats=False)):
            return
        pid, started = gang.supervisor
        entry = self._begin_killing(gang, "its supervisor has not stopped it in time, and some of it does not die")
        entry.processes = {pid: start_time(pid) for pid in descendants(pid)}
        entry.look()
        if is_running(pid, started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        entry.kill()

    def _end(self, gang: LocalGang) -> None:
        """Report the end of a gang whose supervisor has ended."""
        record, found = (
            read_json(gang.folder.record),
            gang.folder.read_exit(),
        )  # first what may fail, and is tried again
        if self._live.pop(gang.key, None) is None:
            return
        self._written.forget(gang.key)
        if gang.pidfd >= 0:
            self._selector.unregister(gang.pidfd)
            os.close(gang.pidfd)
            gang.pidfd = -1
        if gang.process is not None:
            if gang.process.stdout is not None and not gang.process.stdout.closed:
                self._selector.unregister(gang.process.stdout)
            gang.close_pipes()
            gang.process.wait()
        if not gang.launched and record is not None and record.get("launched"):
            self._be_launched(gang)
        is_later = found is not None and found.cause == "later" and gang.has_ended_well
        if found is not None and is_later and gang.stop_grace_s is None and not self._closing:
            gang.process, gang.lease_end = None, 0.0
            self._delay(gang, found.reason)
        else:
            self._report_end(gang)

    # ---- seats that cannot be given away ---------------------------------------------------------------------

    def _taken_now(self) -> tuple[dict[int, str], dict[int, Remains]]:
        """Return the seats that strangers use or remains of gangs keep; and the latter, with what remains."""
        found = {} if self._seats is None else dict(self._seats.strangers)
        now, count = time.monotonic(), self._topology.devices
        found |= {
            seat: _orphaned(gang.job_id) for gang in self._orphans.values() for seat in gang.seats if 0 <= seat < count
        }
        found |= {seat: self._holder(seat) for seat in self._locks.strange if seat < count}
        kept = {seat: entry for entry in self._killed.quarantined(now) for seat in entry.seats if 0 <= seat < count}
        for seat, entry in kept.items():
            found[seat] = f"processes of job {entry.job_id} that cannot be killed"
        return found, kept

    def _begin_killing(self, gang: LocalGang, why: str, patience_s: float = KILL_S) -> Remains:
        """Kill a gang until nothing is left of it, from the next poll on; return its entry."""
        self._poll_at = 0.0
        return self._killed.add(gang, why, supervised=gang.key in self._live, patience_s=patience_s)

    def _look_at_locks(self, named: Set[str] = frozenset()) -> None:
        """Find the seats that are locked by a process of which no gang is known to have them.

        `named` are lease files of gangs whose orders were not taken yet.
        """
        known = [(gang.supervisor[0], str(gang.folder.lease), gang.seats) for gang in self._live.values()]
        known += [(gang.supervisor[0], str(gang.folder.lease), gang.seats) for gang in self._orphans.values()]
        known += [((one.supervisor or (0,))[0], one.lease, one.seats) for one in self._killed.values()]
        self._locks.look(known, named, f"{self._workdir}{os.sep}")

    def _holder(self, seat: int) -> str:
        """Return in words who has locked a seat that none of our gangs is known to have."""
        pid, lease, since = self._locks.strange[seat]
        whose = f"process {pid} of job {_job_of(lease)}" if lease else f"process {pid}"
        return f"{whose}, which has locked it since {since}"

    def _others(self, gang: LocalGang, *, seats: bool = True) -> dict[int, str]:
        """Return which processes have locked what a gang needs that is not launched, each with what it has locked."""
        files = {gang.folder.path / "job.lock": "the folder of its job"}
        files |= {self._seat_files / f"{seat}.lock": f"accelerator {seat}" for seat in gang.seats if seats}
        mates = {one.supervisor[0] for one in self._live.values() if one.order.shared and gang.order.shared}
        ours, lease = {gang.supervisor[0], *mates}, str(gang.folder.lease)
        found = {pid: what for path, what in files.items() for pid in self._locks.holders(path) - ours}
        return {pid: what for pid, what in found.items() if lease_of(pid) != lease}

    def _look_at_start(self, gang: LocalGang, now: float) -> None:
        """Say what a gang waits for that is not launched, and continue its supervisor, which a job may have stopped."""
        gang.frozen_at = min(gang.frozen_at, now) if thaw(*gang.supervisor) else math.inf
        others = self._others(gang)
        waits, since, is_said = gang.waits
        if waits != others.keys():
            gang.waits = frozenset(others), time.time(), False
        elif others and not is_said and time.time() >= since + SAID_S:
            gang.waits = waits, since, True
            by = ", ".join(f"{what} by {self._process(pid)}" for pid, what in sorted(others.items()))
            self._report(LaunchDelayed(*gang.key, f"locked since {moment(since)}: {by}; it begins once that has ended"))

    def _process(self, pid: int) -> str:
        lease = lease_of(pid)
        gang = next((one for one in self._live.values() if one.supervisor[0] == pid), None)
        whose = f" of job {_job_of(lease)}" if lease.startswith(f"{self._workdir}{os.sep}") else ""
        is_ending = gang is not None and gang.stop_grace_s is not None
        return f"process {pid}{whose}" + ", which is being stopped" * is_ending

    def _is_taken(self, gang: LocalGang) -> bool:
        """Ask the driver before a launch; a gang whose seat others use is turned away."""
        if self._seats is not None:
            self._seats.look()
        self._report_taken()
        self._turn_away(gang)
        return bool(gang.turned_away)

    def _has_earlier(self, gang: LocalGang) -> bool:
        """Say whether an earlier gang of the job still runs: the end of a later one would say that it does not."""
        return any(job == gang.order.job_id and epoch < gang.order.epoch for job, epoch in (*self._live, *self._killed))

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
                if gang.launched:
                    self._report_energy(gang, ENERGY_S)
            self._report_idle()
        taken, kept = self._taken_now()
        if taken == self._taken:
            return
        self._taken = taken
        quarantined = {seat: entry.describe() for seat, entry in kept.items()}
        for seat, (_, lease, since) in self._locks.strange.items():
            if lease and seat in taken and seat not in kept:
                quarantined[seat] = QuarantinedSeat(_job_of(lease), since, self._holder(seat))
        self._report(SeatsTaken(tuple(sorted(taken.items())), tuple(sorted(quarantined.items()))))
        for gang in self._live.values():
            if not gang.launched and gang.key not in self._killed and not taken.keys().isdisjoint(gang.seats):
                self._turn_away(gang)
                self._halt(gang, at_once=True)

    def _report_energy(self, gang: LocalGang, least_s: float) -> None:
        """Report the energy that a gang's accelerators used, if there is so much of its time."""
        if self._seats is not None and (found := gang.energy_since(self._seats.energy_j, least_s)) is not None:
            self._report(EnergyUsed(*gang.key, *found))

    def _report_end(self, gang: LocalGang) -> None:
        """Report the end of a gang; if something of it is left, that is killed first, and its end reported later."""
        found = gang.folder.read_exit()
        if self._leaves_something(gang, found):
            return
        self._read_steps(gang)
        self._report_energy(gang, 0.0)
        if gang.is_unusable:
            self._report(GangEnded(*gang.key, "failed", "it could not be started"))
        elif gang.turned_away:
            self._report(GangEnded(*gang.key, "stopped", f"its accelerator is used by {gang.turned_away}"))
        elif found is None:
            self._report_loss(gang)
        else:
            self._report(GangEnded(*gang.key, *self._outcome(gang, found)))
        if gang.group:
            self._groups.group(gang.group).remove()

    def _leaves_something(self, gang: LocalGang, found: ExitRecord | None) -> bool:
        """Say whether something of an ended gang is left, and kill it; a job may have written what its files say."""
        if found is not None and gang.has_ended_well:
            self._killed.forget(gang.key)
            return False  # its supervisor has seen to it
        path = self._group_of(gang.folder.path.name, gang.order.epoch)
        gang.group = path if path and os.path.isdir(path) else gang.group
        gang.seats = gang.seats or seats_signed(self._seat_files, str(gang.folder.lease))
        entry = self._begin_killing(gang, "its supervisor was killed, and some of what it left does not die")
        entry.supervisor = None
        if entry.look(self._killed.strays(self._live.values())):
            entry.kill()
            return True
        self._killed.forget(gang.key)
        return False

    def _outcome(self, gang: LocalGang, found: ExitRecord) -> tuple[str, str]:
        """Return how a gang ended, and why."""
        if found.cause == "later":  # it was stopped before there was room for it
            return "stopped", found.reason
        outcome, reason = found.outcome(was_stopped=gang.stop_grace_s is not None, last_line=gang.folder.last_line())
        left_by_itself = outcome == "failed" and found.code == CALLED_BACK
        if outcome == "ended" or (left_by_itself and time.monotonic() >= gang.lease_end):
            return "stopped", "its lease ended while no service renewed it"
        return outcome, reason

    def _report_loss(self, gang: LocalGang) -> None:
        """Report a gang whose supervisor ended without a word."""
        record = read_json(gang.folder.record)
        # A gang of a run dies with its supervisor, and the job has failed.
        outcome = "lost" if self._inputs.lock is None or gang.process is None else "failed"
        is_restart = record is not None and record.get("boot", boot_id()) != boot_id()
        reason = "the machine was started again" if is_restart else "its supervisor was killed"
        self._report(GangEnded(*gang.key, outcome, reason, by_restart=is_restart))


def _orphaned(job_id: str) -> str:
    return f"job {job_id}, which the store does not know to run; eunomia store orphans --end {job_id} stops it"


def _job_of(lease: str) -> str:
    return Path(lease).parent.name


def _is_usable(record: Mapping[str, Any], gang: LocalGang) -> bool:
    """Say whether a record can be that of the supervisor of a gang: its job may have written it."""
    try:
        pid, started, _ = int(record["pid"]), str(record["start"]), bool(record["launched"])
        tuple(map(int, record.get("seats", ())))
    except (LookupError, ValueError, TypeError, OverflowError):
        return False
    return not is_running(pid, started) or lease_of(pid) == str(gang.folder.lease)


def _is_alive(record: Mapping[str, Any]) -> bool:
    """Say whether the very process of a record still runs."""
    return record.get("boot", boot_id()) == boot_id() and is_running(int(record["pid"]), record["start"])
