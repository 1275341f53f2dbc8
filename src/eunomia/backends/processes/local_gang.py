"""One gang of this machine, and the orders of its supervisor."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Launch
from eunomia.backends.processes.environment import environment_of
from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.processes.gang_group import wake_supervisor
from eunomia.backends.processes.group_base import GroupBase
from eunomia.backends.world import WorldInputs
from eunomia.model.topology import Topology


@dataclass(slots=True, eq=False)
class LocalGang:
    """A gang that was launched or found, and has not ended."""

    order: Launch
    folder: JobFolder
    grace_s: float
    seats: tuple[int, ...] = ()  # those of its launch; an order to look for a stopped gang names none
    end_s: float = math.inf  # when it stops whatever is renewed
    pidfd: int = -1
    is_watched: bool = False  # the system says when it writes
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    supervisor: tuple[int, str] = (0, "")  # process id and start time
    group: str = ""  # its control group; "" = none
    launched: bool = False
    launched_at: float = 0.0  # in s of time.monotonic; of an adopted gang: when it was found
    stop_grace_s: float | None = None
    stopped_by: float = math.inf  # when the grace is over, in s of time.monotonic
    killed_at: float = math.inf  # likewise: when its supervisor was killed, as it did not stop the gang in time
    steps: float | None = None
    lease_end: float = 0.0
    frozen_at: float = math.inf  # likewise: since when its supervisor is found stopped, before the launch
    waits: tuple[frozenset[int], float, bool] = (
        frozenset(),
        0.0,
        False,
    )  # for which processes, since (wall clock), and whether that was said
    turned_away: str = ""  # who uses its seats, if it must not be launched therefore
    is_unusable: bool = False  # what its launch needs cannot be had
    delayed: str = ""  # what this machine has none of, so that it is launched later
    retry_at: float = 0.0  # when, in s of time.monotonic
    retry_s: float = 0.0  # how long that was put off
    memory_gib: float = 0.0
    energy_j: dict[int, tuple[float, float]] = field(default_factory=dict)  # as `SeatWatch` had it last

    def energy_since(self, counted: Mapping[int, tuple[float, float]], least_s: float) -> tuple[float, float] | None:
        """Return joules since the last call that returned some, and the accelerator-seconds in which they were used.

        None where that is less than `least_s` a seat. A seat that is seen for the first time, or whose counter began
        anew, counts from now on.
        """
        now = {seat: counted[seat] for seat in self.seats if seat in counted}
        spans = [
            (at - before[0], used - before[1])
            for seat, (at, used) in now.items()
            if (before := self.energy_j.get(seat)) is not None and used >= before[1]
        ]
        seconds = sum(span for span, _ in spans)
        if spans and seconds < least_s * len(spans):
            return None
        self.energy_j = now
        return (sum(used for _, used in spans), seconds) if seconds > 0 else None

    @property
    def key(self) -> tuple[str, int]:
        return self.order.job_id, self.order.epoch

    @property
    def has_ended_well(self) -> bool:
        """Whether its supervisor, a child of this process, has ended by itself, once nothing was left of the gang."""
        return self.process is not None and self.process.returncode == 0

    def renew(self, end_s: float) -> None:
        """Write the lease, which ends then, or earlier if the gang has an end of its own. Raises OSError."""
        before, self.lease_end = self.lease_end, min(end_s, self.end_s)
        self.folder.write_lease(self.lease_end, self.stop_grace_s)
        if self.stop_grace_s is not None or self.lease_end < before:
            wake_supervisor(*self.supervisor)

    def send(self, line: str) -> None:
        """Write to a supervisor that was just started what it is to run."""
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


def supervisor_spec(
    gang: LocalGang, inputs: WorldInputs, topology: Topology, inherited: Mapping[str, str], seats: Path, url: str,
    base: GroupBase, open_files: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the orders of the supervisor of a gang; `seats` is the folder of their locks."""
    order, folder = gang.order, gang.folder
    first, *rest = order.spec["command"]
    locks = [(str(seats / f"{seat}.lock"), order.shared) for seat in sorted(gang.seats)]
    per_accelerator = order.spec.get("processes") == "per_accelerator"
    ours = {"python": sys.executable} if first == "python" else {}  # where the user's shell has none
    searches = not ours or "PATH" in order.spec.get("env", {})
    token = {} if inputs.token_of is None else {"EUNOMIA_JOB_TOKEN_FILE": str(folder.token)}
    address = {"EUNOMIA_URL": url} if token and url else {}
    memory_gib = float(order.spec.get("memory_gib") or 0.0)
    watches = memory_gib and not (gang.group and "memory" in base.limits)
    return {
        "command": [first if searches else sys.executable, *rest],
        **ours,
        **({} if inputs.umask is None else {"umask": inputs.umask}),
        "environment": environment_of(order, folder, topology, inherited, {**token, **address}),
        "cwd": order.spec.get("cwd") or str(folder.own),
        **({} if folder.account is None else {"account": asdict(folder.account)}),
        **({} if inputs.lock is None else {"lock": inputs.lock, "last_exit": str(folder.last_exit)}),
        "is_woken": True,
        **({"memory_gib": memory_gib} if memory_gib else {}),
        **({"memory_bytes": memory_gib * 2**30} if watches else {}),
        "job": order.job_id,
        "seats": list(gang.seats),
        "group": gang.group,
        "limits": base.group(gang.group).limits if gang.group else {},
        "nofile": open_files,
        "lease": str(folder.lease),
        "exit": str(folder.exit),
        "record": str(folder.record),
        "finished": str(folder.path / "finished.json"),
        "epoch": order.epoch,
        "grace_s": gang.grace_s,
        "log": str(folder.log),
        **({"errors": str(folder.errors)} if order.spec.get("stderr") == "apart" else {}),
        "log_bytes": inputs.log_bytes,
        **({"processes": len(gang.seats)} if per_accelerator else {}),
        "locks": [(str(folder.path / "job.lock"), False), *locks],
    }
