"""Finds the accelerators of this machine through NVIDIA's driver."""

from __future__ import annotations

import re
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem

FIX = 'declare them instead, as in accelerators = { v100 = 4 }, or pip install "nvidia-ml-py"'


def discovered() -> list[dict[str, Any]]:
    """Return the accelerators as node groups of a cluster, one a type. Raises InvalidInput without a driver."""
    try:
        import pynvml
    except ImportError:
        raise _refusal("accelerators are discovered with the package nvidia-ml-py, which is not installed") from None
    try:
        pynvml.nvmlInit()
        names = [
            _plain(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(number)))
            for number in range(pynvml.nvmlDeviceGetCount())
        ]
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise _refusal(f"the driver of this machine does not answer ({error})") from error
    if not names:
        raise _refusal("the driver of this machine knows no accelerator")
    groups: list[dict[str, Any]] = []  # adjacent equal ones, so that seats have the driver's order
    for name in names:
        if groups and groups[-1]["type"] == name:
            groups[-1]["accelerators"] += 1
        else:
            groups.append({"type": name, "accelerators": 1})
    return groups


def _plain(name: str | bytes) -> str:
    """Return the type of a device name: `NVIDIA A100-SXM4-40GB` is `a100-sxm4-40gb`."""
    text = name.decode() if isinstance(name, bytes) else name
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").removeprefix("nvidia-")


def _refusal(rule: str) -> InvalidInput:
    return InvalidInput([Problem(file="this machine", rule=rule, fix=FIX)])
