"""One worker behind the table: a process that makes all runs of the requested draws, and writes what they showed."""

from __future__ import annotations

from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make the runs of one draw and write their file, whole."""
    from eunomia_reproduction.run_cache import keep
    from eunomia_reproduction.themis_simulator.experiment import show

    keep(asked["file"], show(asked["seed"]))


if __name__ == "__main__":
    main(work)
