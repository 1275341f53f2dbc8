"""Finds the accelerators of this machine through NVIDIA's driver."""

from __future__ import annotations

import os
import re
from typing import Any

from eunomia.backends.processes.device_use import NvidiaDriver
from eunomia.backends.processes.environment import given_devices
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem

DECLARED = "declare them instead, as in accelerators = { v100 = 4 }"


def discovered() -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the accelerators as node groups of a cluster, one a type, and the memory of each type in GiB.

    Raises InvalidInput without a driver.
    """
    try:
        models = NvidiaDriver(given_devices(os.environ)).models()
    except OSError as error:
        raise _refusal(str(error)) from error
    if not models:
        raise _refusal("the driver of this machine knows no accelerator")
    groups: list[dict[str, Any]] = []  # adjacent equal ones, so that seats have the driver's order
    memory: dict[str, float] = {}
    for model, gib in models:
        name = _plain(model)
        memory[name] = min(gib, memory.get(name, gib))
        if groups and groups[-1]["type"] == name:
            groups[-1]["accelerators"] += 1
        else:
            groups.append({"type": name, "accelerators": 1})
    return groups, memory


def _plain(name: str) -> str:
    """Return the type of a device name: `NVIDIA A100-SXM4-40GB` is `a100-sxm4-40gb`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").removeprefix("nvidia-")


def _refusal(rule: str) -> InvalidInput:
    return InvalidInput([Problem(file="this machine", rule=rule, fix=f"{DECLARED}, or {install_command('nvidia')}")])
