"""One worker behind the weeks of Philly: a process that plays what it is told, as a worker of a sweep does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.experiment.sweep.worker import main

if TYPE_CHECKING:
    from eunomia.reproduction.week import Played


@cache
def _played(trace: str, first: float, days: float, seed: int) -> Played:
    from eunomia import traces
    from eunomia.reproduction.week import played

    return played(traces.read(Path(trace), "philly"), first, days, seed)


def work(asked: dict[str, Any]) -> None:
    """Make one run and write its file, whole."""
    from dataclasses import asdict

    from eunomia.mechanisms.leases import Leases
    from eunomia.reproduction.making import keep
    from eunomia.reproduction.week import measure

    work = _played(asked["trace"], asked["first"], asked["days"], asked["seed"])
    leases = None if asked["leases"] is None else Leases(**asked["leases"])
    keep(asked["file"], asdict(measure(work, asked["policy"], leases)))


if __name__ == "__main__":
    main(work)
