"""One worker behind Themis' tables: a process that makes the requested runs, and writes what each one showed."""

from __future__ import annotations

from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make one run and write its file, whole."""
    from eunomia_reproduction.run_cache import keep
    from eunomia_reproduction.themis_runs import show

    keep(asked["file"], show(asked))


if __name__ == "__main__":
    main(work)
