"""One worker behind the weeks of Philly: a process that simulates what it is sent, as a worker of a sweep does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.sweeps.worker import main

if TYPE_CHECKING:
    from eunomia_reproduction.philly_window import WindowRun


@cache
def _played(trace: str, first: float, days: float, seed: int) -> WindowRun:
    from eunomia import traces
    from eunomia_reproduction.philly_window import played

    return played(traces.read(Path(trace), "philly"), first, days, seed)


def work(asked: dict[str, Any]) -> None:
    """Make one run and write its file, whole."""
    from dataclasses import asdict

    from eunomia.mechanisms.leases import Leases
    from eunomia_reproduction.philly_window import measure
    from eunomia_reproduction.run_cache import keep

    work = _played(asked["trace"], asked["first"], asked["days"], asked["seed"])
    leases = None if asked["leases"] is None else Leases(**asked["leases"])
    keep(asked["file"], asdict(measure(work, asked["policy"], leases)))


if __name__ == "__main__":
    main(work)
