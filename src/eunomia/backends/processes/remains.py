"""What remains of gangs that should have ended: processes that do not die, and the seats that no other gang may have.

The list is a file, so a restart knows it. An entry goes on evidence only: its processes have ended and its control
group is empty, or the machine was started again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.backends.processes.folder import read_json
from eunomia.backends.processes.gang_group import (
    GangGroup,
    become_subreaper,
    boot_id,
    children,
    descendants,
    is_running,
    kill,
    processes_with,
    start_time,
    stat_of,
)
from eunomia.backends.processes.local_gang import LocalGang
from eunomia.backends.processes.lock_holders import moment
from eunomia.backends.reports import QuarantinedSeat
from eunomia.lease import write_whole

STORED = ("job_id", "epoch", "seats", "lease", "group", "since", "why", "supervisor", "processes")
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Remains:
    """The processes of one gang, and the seats that it had."""

    job_id: str
    epoch: int
    seats: tuple[int, ...]
    lease: str  # file that its processes have in their environment
    group: str  # their control group; "" = none
    since: float  # wall-clock time
    why: str
    supervisor: tuple[int, str] | None = None  # process id and start time, if it may still run
    processes: dict[int, str] = field(default_factory=dict)  # likewise: those that were seen last
    patient_until: float = 0.0  # in s of time.monotonic: until then they have time to die
    gang: LocalGang | None = field(default=None, repr=False)  # whose end is to be reported; None = not asked for yet

    @property
    def key(self) -> tuple[str, int]:
        return self.job_id, self.epoch

    def look(self, strays: Iterable[int] = ()) -> bool:
        """Return whether anything is left, and remember which processes; `strays` may be some of them."""
        known = (pid for pid, started in self.processes.items() if is_running(pid, started))
        found = {*_processes(self.lease, self.group), *strays, *known}
        group = GangGroup(self.group) if self.group else None
        if self.supervisor is not None:
            found.discard(self.supervisor[0])
        self.processes = {pid: started for pid in sorted(found) if (started := start_time(pid))}
        runs = self.supervisor is not None and is_running(*self.supervisor)
        return runs or bool(self.processes) or (group is not None and group.is_populated())

    def kill(self) -> None:
        """Kill what is left, without the supervisor."""
        if self.group:
            GangGroup(self.group).kill()
        kill(self.processes)

    def describe(self) -> QuarantinedSeat:
        """Return why its seats are out of service."""
        return QuarantinedSeat(self.job_id, moment(self.since), self.why)


def processes_of(gang: LocalGang) -> set[int]:
    """Return the processes of a gang, its supervisor included, as far as they are known for its."""
    return _processes(str(gang.folder.lease), gang.group)


def _processes(lease: str, group: str) -> set[int]:
    found = processes_with({f"EUNOMIA_LEASE_FILE={lease}".encode()})
    return {*found, *(GangGroup(group).pids() if group else ())}


class KilledGangs:
    """The gangs of a world that were killed and are not known to be gone, by job and epoch.

    `adopts_strays`: this process is the subreaper of what killed supervisors leave behind. `known_group` returns the
    control group that the file names for a start (its folder and number), or "" if it is not that start's.
    """

    def __init__(self, path: Path, *, adopts_strays: bool, known_group: Callable[[str, str, int], str]) -> None:
        self._path, self._stored, self._adopts_strays = path, "", adopts_strays
        self._known_group = known_group
        self._entries = {entry.key: entry for entry in self._read()}
        if adopts_strays:
            become_subreaper()

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Remains]:
        """Return what remains of each."""
        return list(self._entries.values())

    def get(self, key: tuple[str, int]) -> Remains | None:
        """Return what remains of a gang; None if nothing is known to."""
        return self._entries.get(key)

    def forget(self, key: tuple[str, int]) -> None:
        """Take a gang off the list, as nothing is left of it."""
        self._entries.pop(key, None)

    def add(self, gang: LocalGang, why: str, *, supervised: bool, patience_s: float) -> Remains:
        """Return the entry of a gang, which has so much time to die; `supervised`: its supervisor may still run."""
        if (entry := self._entries.get(gang.key)) is None:
            entry = self._entries[gang.key] = Remains(
                *gang.key, gang.seats, str(gang.folder.lease), gang.group, time.time(), why,
                gang.supervisor if supervised else None, patient_until=time.monotonic() + patience_s, gang=gang,
            )  # fmt: skip
        return entry

    def is_killing(self, now: float) -> bool:
        """Say whether a gang has time left to die."""
        return any(now < entry.patient_until for entry in self._entries.values())

    def kill_again(self, live: Mapping[tuple[str, int], LocalGang]) -> list[Remains]:
        """Kill what is left of each gang that has no supervisor among the live ones; return those that have gone."""
        strays, gone = self.strays(live.values()), list[Remains]()
        for key, entry in list(self._entries.items()):
            if key in live:
                entry.look()
            elif entry.look(strays):
                entry.kill()
            else:
                del self._entries[key]
                gone.append(entry)
        return gone

    def strays(self, live: Iterable[LocalGang]) -> list[int]:
        """Return what killed supervisors have left to this process, and what descends from it.

        Those are our children in sessions that are neither ours nor begun by a supervisor.
        """
        if not (self._adopts_strays and self._entries):
            return []
        ours = {gang.process.pid for gang in live if gang.process is not None}
        own_session, found = str(os.getsid(0)), list[int]()
        for pid in children(os.getpid()):
            stat = stat_of(pid)
            if pid in ours or not stat or stat[3] == own_session:
                continue
            if stat[0] == "Z":
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            else:
                found += [pid, *descendants(pid)]
        return found

    def quarantined(self, now: float) -> list[Remains]:
        """Return the gangs whose time is over, and write them down if they are others than before."""
        entries = [entry for entry in self._entries.values() if now >= entry.patient_until]
        rows = [{name: getattr(entry, name) for name in STORED} for entry in entries]
        text = json.dumps({"boot": boot_id(), "gangs": rows}) if rows or self._stored else ""
        if text != self._stored:
            try:
                write_whole(self._path, text, durable=True)
            except OSError as error:  # tried again at the next call
                _log.warning("%s: which seats are out of service could not be written down (%s)", self._path, error)
            else:
                self._stored = text
        return entries

    def _read(self) -> list[Remains]:
        """Return what an earlier process wrote down; nothing if the machine was started again since."""
        found = read_json(self._path)
        if found is None:
            return []
        self._stored = "as it was found"  # it is written anew once that is known
        entries = list[Remains]()
        rows: Any = found.get("gangs") if found.get("boot") == boot_id() else []
        for row in rows if isinstance(rows, list) else [rows]:
            try:
                entries.append(self._entry(row))
            except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
                _log.error(
                    "%s: an entry cannot be read (%r), so its seats are not known: %.200r", self._path, error, row
                )
        return entries

    def _entry(self, row: dict[str, Any]) -> Remains:
        """Return an entry of the list as it was written down."""
        pid, started = row["supervisor"] or (0, "")
        folder, epoch = Path(str(row["lease"])).parent.name, int(row["epoch"])
        entry = Remains(
            str(row["job_id"]), epoch, tuple(map(int, row["seats"])), str(row["lease"]),
            self._known_group(str(row["group"]), folder, epoch), float(row["since"]), str(row["why"]),
            (int(pid), str(started)) if started else None,
            {int(pid): str(started) for pid, started in row["processes"].items()},
        )  # fmt: skip
        entry.describe()  # raises for a time that no calendar has
        return entry
