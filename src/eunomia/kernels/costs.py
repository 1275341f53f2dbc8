"""Seconds for which the processes of this machine have interpreted each kernel since it was last compiled.

They are in a small file beside the compiled code. A process reads it when a kernel has taken some milliseconds, and
adds its own seconds when these have doubled and at its end. No process waits for a lock: of two that write at the same
moment the second one wins, as these are estimates. What is not such a file counts as none and is replaced.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

FILE = "costs.json"
KEPT_KERNELS = 1000  # that were added to last
MOST_BYTES = 1 << 20


def read_costs(place: Path) -> dict[str, float]:
    """Return seconds by the name of a kernel's files in the cache; empty for a missing, broken or foreign file."""
    try:
        with (place / FILE).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: each for name, each in found.items() if isinstance(each, float) and 0 < each < math.inf}


def add_costs(place: Path, seconds: Mapping[str, float]) -> None:
    """Add seconds to the file; where it cannot be written they are lost."""
    found = read_costs(place)
    for name, each in seconds.items():
        found[name] = found.pop(name, 0.0) + each  # the last that was added to comes last
    _write(place, found)


def forget_costs(place: Path, name: str) -> None:
    """Remove what a kernel has cost, as it has been compiled."""
    found = read_costs(place)
    if found.pop(name, None) is not None:
        _write(place, found)


def _write(place: Path, seconds: dict[str, float]) -> None:
    kept = {name: round(each, 6) for name, each in list(seconds.items())[-KEPT_KERNELS:]}
    draft = place / f".{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):  # the next process measures again
        draft.write_text(json.dumps(kept, indent=0), encoding="utf-8")
        draft.replace(place / FILE)
