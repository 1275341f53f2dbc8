"""Slices of accelerators (MIG): the device and the part of its compute that a name such as a100_1g.5gb stands for.

Reference: NVIDIA, "Multi-Instance GPU User Guide", supported profiles: an A30 has four slices of compute, others seven.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from eunomia.throughputs.catalogue import Accelerator, find, recognise

_NAME = re.compile(r"^(?P<device>.*?)[-_.:/ ]*(?:mig[-_.]?)?(?P<compute>\d)g\.(?P<memory>\d+)gb", re.IGNORECASE)
_PARTS, _PARTS_OF_A30 = 7, 4  # of the compute
_MEMORY_PARTS = {3: 4, 7: 8}  # of eight, where they are not as many as those of the compute
_DEVICE_BY_GIB = {5: "a100-40gb", 10: "a100-80gb", 17: "h200", 18: "h200"}  # of a part, where the device is not named
_A30_GIB = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorSlice:
    """A part of one accelerator."""

    device: Accelerator | None  # None = not recognised
    compute: float  # part of the device's compute, at most 1


@cache
def slice_of(name: str) -> AcceleratorSlice | None:
    """Return the slice that a name of a type stands for; None for whole accelerators."""
    found = _NAME.match(name.strip())
    if found is None:
        return None
    compute = int(found["compute"])
    gib = int(found["memory"]) // _MEMORY_PARTS.get(compute, max(compute, 1))
    device = recognise(found["device"]) if found["device"] else None
    whole = find(_DEVICE_BY_GIB.get(gib, ""))
    same_name = device is not None and whole is not None and device.name.split("-")[0] == whole.name.split("-")[0]
    parts = _PARTS_OF_A30 if gib == _A30_GIB else _PARTS
    return AcceleratorSlice(device=whole if device is None or same_name else device, compute=min(compute / parts, 1.0))
