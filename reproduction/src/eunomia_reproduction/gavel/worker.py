"""One worker behind the figures: a process that makes the requested runs, and writes what each one showed.

It reads and answers lines of JSON, as a worker of a sweep does.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make one run and write its file, whole."""
    from eunomia_reproduction.gavel.figure_runs import FigureRun, show
    from eunomia_reproduction.run_cache import keep

    shown = show(FigureRun.of_dict(asked["cell"]), Path(asked["throughputs"]))
    keep(asked["file"], asdict(shown))


if __name__ == "__main__":
    main(work)
