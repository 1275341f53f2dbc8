"""One worker behind experiments that train: a process that makes trainings, and writes what each one showed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make one training by the function `show` of its experiment, and write its file, whole."""
    from eunomia_reproduction.run_cache import keep

    keep(asked["file"], import_module(asked["experiment"]).show(**asked["training"]))


if __name__ == "__main__":
    main(work)
