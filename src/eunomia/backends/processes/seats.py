"""Which seats processes of others use, and what memory our gangs use, as the driver says now and then."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from eunomia.backends.processes.device_use import DeviceDriver, described, our_process
from eunomia.backends.processes.environment import visible_devices
from eunomia.model.topology import Topology

IDLE_S = 1800.0  # an accelerator that a gang holds and that is less busy for so long is flagged
LEAST_BUSY = 0.05
LOOK_S = 4.0  # between looks; a seat is free again one look after its user has left
_log = logging.getLogger(__name__)


class SeatWatch:
    """What the driver said last. A driver that does not answer changes nothing."""

    def __init__(
        self, driver: DeviceDriver, topology: Topology, inherited: Mapping[str, str], workdir: Path,
        look_s: float = LOOK_S, idle_s: float = IDLE_S,
    ) -> None:  # fmt: skip
        self.look_s, self.idle_s = look_s, idle_s
        self.strangers: dict[int, str] = {}  # seat → who uses it
        self.memory_gib: dict[tuple[str, int], float] = {}  # (job, epoch) → most on one accelerator, ever seen
        self.energy_j: dict[int, tuple[float, float]] = {}  # seat → when it was read, and what the driver has counted
        self.idle_since: dict[int, float] = {}  # seat → when it was last seen busy, in s of time.monotonic
        self._driver, self._workdir = driver, workdir
        self._looked = -math.inf
        self._answers = True
        self.use_topology(topology, inherited)

    def use_topology(self, topology: Topology, inherited: Mapping[str, str]) -> None:
        """Watch these accelerators from now on."""
        self.strangers, self.energy_j, self._looked = {}, {}, -math.inf
        self._seat_of: dict[int, int] = {}  # device → seat
        for seat in range(topology.devices):
            for name in visible_devices(topology, [seat], inherited):
                if name.isdigit():
                    self._seat_of[int(name)] = seat

    @property
    def due(self) -> float:
        """When to look again, in s of time.monotonic."""
        return self._looked + self.look_s

    def look(self) -> None:
        """Ask the driver."""
        self._looked = time.monotonic()
        try:
            uses = self._driver.read()
        except OSError as error:
            if self._answers:
                _log.warning("who uses the accelerators is not known: %s", error)
            self._answers = False
            return
        self._answers = True
        strangers: dict[int, str] = {}
        memory: defaultdict[tuple[str, int], float] = defaultdict(float)
        for device, use in enumerate(uses):
            seat = self._seat_of.get(device)
            if seat is None:
                continue
            if math.isfinite(use.energy_j):
                self.energy_j[seat] = self._looked, use.energy_j
            else:
                self.energy_j.pop(seat, None)
            if use.busy < LEAST_BUSY:
                self.idle_since.setdefault(seat, self._looked)
            else:
                self.idle_since.pop(seat, None)
            others, misplaced, here = [], [], defaultdict[tuple[str, int], float](float)
            for pid, gib in use.memory_gib_by_pid.items():
                ours = our_process(pid, self._workdir)
                if ours is None:
                    others.append(pid)
                    continue
                here[ours.job_id, ours.epoch] += 0.0 if math.isnan(gib) else gib
                if seat not in ours.seats:
                    misplaced.append(f"job {ours.job_id}, to which it was not given")
            for key, gib in here.items():
                memory[key] = max(memory[key], gib)
            if others or misplaced:
                strangers[seat] = ", ".join([described(others)] * bool(others) + sorted(set(misplaced)))
        self.strangers = strangers
        for key, gib in memory.items():
            self.memory_gib[key] = max(self.memory_gib.get(key, 0.0), gib)
