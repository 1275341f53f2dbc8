"""What remains of gangs that should have ended: processes that do not die, and the seats that no other gang may have.

The list is a file, so a restart knows it. An entry goes on evidence only: its processes have ended and its control
group is empty, or the machine was started again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from eunomia.backends.processes.folder import read_json
from eunomia.backends.processes.gang_group import GangGroup, boot_id, is_running, kill, processes_with, start_time
from eunomia.backends.processes.local_gang import LocalGang
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
        found = {*processes_with({f"EUNOMIA_LEASE_FILE={self.lease}".encode()}), *strays, *known}
        group = GangGroup(self.group) if self.group else None
        if group is not None:
            found.update(group.pids())
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
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return QuarantinedSeat(self.job_id, since, self.why)


class QuarantineFile:
    """The list of remains on disk."""

    def __init__(self, path: Path) -> None:
        self._path, self._stored = path, ""

    def read(self) -> list[Remains]:
        """Return what an earlier process wrote down; nothing if the machine was started again since."""
        found = read_json(self._path)
        if found is None or found["boot"] != boot_id():
            return []
        self._stored = json.dumps(found)
        return [
            Remains(
                **{**one, "seats": tuple(one["seats"]), "supervisor": one["supervisor"] and tuple(one["supervisor"])}
                | {"processes": {int(pid): started for pid, started in one["processes"].items()}}
            )
            for one in found["gangs"]
        ]

    def write(self, entries: Iterable[Remains]) -> None:
        """Write the list down if it has changed; a disk that does not take it is tried again at the next call."""
        rows = [{name: getattr(entry, name) for name in STORED} for entry in entries]
        text = json.dumps({"boot": boot_id(), "gangs": rows})
        if text == self._stored or not (rows or self._stored):
            return
        try:
            write_whole(self._path, text, durable=True)
        except OSError as error:
            _log.warning("%s: which seats are out of service could not be written down (%s)", self._path, error)
        else:
            self._stored = text
