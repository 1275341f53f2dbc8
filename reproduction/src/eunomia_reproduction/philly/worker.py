"""One worker behind Philly's Table 2: a process that makes the requested plays, and writes what each one showed."""

from __future__ import annotations

from typing import Any

from eunomia.sweeps.worker import main


def work(asked: dict[str, Any]) -> None:
    """Make one play and write its file, whole."""
    from eunomia_reproduction.philly.table_runs import shown
    from eunomia_reproduction.run_cache import keep

    keep(asked["file"], shown(asked))


if __name__ == "__main__":
    main(work)
