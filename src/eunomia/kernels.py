"""Where compiled kernels are kept: a folder for each state of the source, and for no other.

numba keeps a kernel as long as the file that it stands in does not change. But it holds what it calls from other files
too, so after an upgrade it would go on doing what they did before.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOMS = ("backends/simulated", "core", "metrics", "placing", "policies", "solvers")  # where kernels stand
KEPT = 3  # folders
# How `njit` compiles a step that makes no array: without counting who holds one, which costs more than a small step
# does. numba refuses one that makes an array after all. One that returns an array may be called by its like alone.
BARE: dict[str, Any] = {"cache": True, "_nrt": False}
COUNTING: dict[str, Any] = {"cache": True, "_nrt": True}  # one that makes arrays, though a bare step calls it
VARIABLE = "NUMBA_CACHE_DIR"


def stamp(files: Iterable[Path]) -> str:
    """Return a name that changes when one of these files does."""
    seen = sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return sha256(repr(seen).encode()).hexdigest()[:16]


def settle(package: Path = Path(__file__).parent) -> Path | None:
    """Tell numba where to keep the kernels of the package as it is now; None where it has been told already.

    Done when this module is imported, which every room with kernels does before any of them is made.
    """
    if VARIABLE in os.environ:
        return None
    sources = (file for room in ROOMS for file in (package / room).rglob("*.py"))
    folder = package / "__pycache__" / f"kernels-{stamp(sources)}"
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it has read its settings
        sys.modules["numba"].config.CACHE_DIR = str(folder)
    if not folder.exists():
        forget(folder.parent)
    return folder


def forget(parent: Path) -> None:
    """Remove the folders of states of the source that are long gone."""
    old = sorted(parent.glob("kernels-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in old[KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


settle()
