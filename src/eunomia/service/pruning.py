"""What a service keeps no longer, asked for from outside of it: what would go, and its removal while it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from eunomia.service.clock import MonotonicClock
from eunomia.service.removal import JOBS_FOLDER, PAGE, Removal
from eunomia.service.site import Site
from eunomia.service.store import ServiceStore, open_store
from eunomia.service.store.old_rows import OldRows
from eunomia.service.store.removal_reader import RemovalReader

ROWS_S = 1.0  # of statements in one transaction: no service waits for it, and each commit waits for the disk


def prunable(site: Site) -> list[OldRows]:
    """Return what a removal would take now, also while a service runs. Raises StoreProblem if there is no store."""
    with closing(RemovalReader(site.place)) as reader:
        reader.check_version()
        return _removal(site, reader).plan()


def prune(site: Site) -> list[OldRows]:
    """Remove what the site keeps no longer, and return what has gone, which is less where something could not go.

    Raises StoreProblem if there is no store, or if a service uses it.
    """
    store = open_store(site.place, site.state, must_exist=True)
    try:
        with closing(RemovalReader(site.place)) as reader:
            removal = _removal(site, reader, lambda change: change(store))
            due = removal.plan()
            removal.sweep()
            left = removal.plan()
        store.rewrite()
    finally:
        store.close()
    return [
        OldRows(one.what, one.count - kept.count, one.size - kept.size) for one, kept in zip(due, left, strict=True)
    ]


def _removal(
    site: Site, reader: RemovalReader, change: Callable[[Callable[[ServiceStore], int]], int] = lambda change: 0
) -> Removal:
    now = MonotonicClock(reader.clock()).now()
    return Removal(
        site.service, site.state / JOBS_FOLDER, reader, now, change, lambda worked_s: None,
        jobs_at_once=PAGE, rows_s=ROWS_S,
    )  # fmt: skip
