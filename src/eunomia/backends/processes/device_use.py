"""Who uses the accelerators of this machine: processes, their memory, and how busy they are, from NVIDIA's driver."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

GIB = 2**30
MOST_DIGITS = 12  # of a number that a variable of a process has


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What one accelerator does now."""

    memory_gib_by_pid: dict[int, float]  # nan = the driver does not say
    busy: float = math.nan  # share of the last sample in which it computed; nan = not known
    energy_j: float = math.nan  # since the driver was loaded; nan = it does not count it


class DeviceDriver(Protocol):
    """Tells who uses each accelerator."""

    def read(self) -> list[DeviceUse]:
        """Return the use of each accelerator, in the driver's order. Raises OSError if the driver does not answer."""
        ...


class NvidiaDriver:
    """NVIDIA's driver through nvidia-ml-py. Building it raises OSError where the package or the driver is missing.

    `given` are the devices that this process may use, by index or UUID as in CUDA_VISIBLE_DEVICES; None = all.
    """

    def __init__(self, given: Sequence[str] | None = None) -> None:
        try:
            import pynvml
        except ImportError as error:
            raise OSError("accelerators are asked with the package nvidia-ml-py, which is not installed") from error
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            every = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
            uuids = [_text(pynvml.nvmlDeviceGetUUID(handle)) for handle in every]
            self._handles = every if given is None else [every[device_named(name, uuids)] for name in given]
        except pynvml.NVMLError as error:
            raise OSError(f"the driver of this machine does not answer ({error})") from error

    def models(self) -> list[tuple[str, float]]:
        """Return name and memory in GiB of each accelerator."""
        nvml, found = self._nvml, []
        try:
            for handle in self._handles:
                found.append((_text(nvml.nvmlDeviceGetName(handle)), nvml.nvmlDeviceGetMemoryInfo(handle).total / GIB))
        except nvml.NVMLError as error:
            raise OSError(f"the driver of this machine does not answer ({error})") from error
        return found

    def read(self) -> list[DeviceUse]:
        """Return the use of each accelerator."""
        nvml, found = self._nvml, []
        try:
            for handle in self._handles:
                busy = math.nan
                with contextlib.suppress(nvml.NVMLError_NotSupported):
                    busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100.0
                energy_j = math.nan  # older accelerators than Volta do not count it
                with contextlib.suppress(nvml.NVMLError_NotSupported):
                    energy_j = nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000.0
                processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
                found.append(DeviceUse({one.pid: _gib(one.usedGpuMemory) for one in processes}, busy, energy_j))
        except nvml.NVMLError as error:
            raise OSError(f"the driver of this machine does not answer ({error})") from error
        return found


def _text(found: str | bytes) -> str:
    return found.decode() if isinstance(found, bytes) else found


def device_named(name: str, uuids: list[str]) -> int:
    """Return which device is named by its index or the beginning of its UUID, as CUDA takes them."""
    found = [n for n, uuid in enumerate(uuids) if name == str(n) or (not name.isdigit() and uuid.startswith(name))]
    if len(found) != 1:
        raise OSError(f"CUDA_VISIBLE_DEVICES names {name!r}, and the driver has the devices {', '.join(uuids)}")
    return found[0]


def _gib(memory_bytes: int | None) -> float:
    return math.nan if memory_bytes is None else memory_bytes / GIB


@dataclass(frozen=True, slots=True)
class OurProcess:
    """A process of a gang of ours."""

    job_id: str
    epoch: int
    seats: frozenset[int]


def our_process(pid: int, workdir: Path) -> OurProcess | None:
    """Return which gang below `workdir` a process belongs to, by its environment or that of an ancestor."""
    prefix = f"{workdir}{os.sep}".encode()
    while pid > 1:
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:  # it has ended, or belongs to another user
            return None
        variables = dict(part.partition(b"=")[::2] for part in raw.split(b"\0"))
        if variables.get(b"EUNOMIA_LEASE_FILE", b"").startswith(prefix):
            seats = frozenset(_number(seat) for seat in variables.get(b"EUNOMIA_SEATS", b"").split(b","))
            job_id = variables.get(b"EUNOMIA_JOB_ID", b"").decode(errors="replace")
            return OurProcess(job_id, _number(variables.get(b"EUNOMIA_EPOCH", b"")), seats)
        pid = int(stat.rpartition(b")")[2].split()[1])
    return None


def _number(text: bytes) -> int:
    """Return a number of a variable, which a job may have set to anything; -1 for what is none."""
    return int(text) if text.isdigit() and len(text) < MOST_DIGITS else -1


def described(pids: Iterable[int]) -> str:
    """Return processes in words: program, id and user."""
    return ", ".join(_one(pid) for pid in sorted(pids)[:3])


def _one(pid: int) -> str:
    import pwd

    try:
        folder = Path(f"/proc/{pid}")
        name, uid = (folder / "comm").read_text().strip(), folder.stat().st_uid
    except OSError:
        return f"process {pid}"
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"uid {uid}"
    shown = "".join(c for c in name if c.isprintable())
    return f"{shown} (process {pid}) of user {user}"
