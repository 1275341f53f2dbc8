"""A worker behind experiments of many runs: a process that makes one at a time, and writes what it showed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make one run by the function `show` of its experiment's module, and write its file, whole."""
    from eunomia_reproduction.run_cache import keep

    keep(asked["file"], import_module(asked["experiment"]).show(**asked["run"]))


if __name__ == "__main__":
    main(work)
