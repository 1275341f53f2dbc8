"""Gangs of this machine that the store does not know to run, as after an older copy of it was put back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from eunomia.backends.processes.found_gangs import FoundGang, running_gangs
from eunomia.inputs.problems import Problems
from eunomia.service.store import StoreProblem
from eunomia.service.store.opening import FILE
from eunomia.service.store.reader import Reader


def orphans(place: Path | str, jobs: Path) -> list[FoundGang]:
    """Return the gangs that run below the folder `jobs`, and are not the last start of a live job of the store.

    Raises StoreProblem if there is no store.
    """
    if isinstance(place, Path) and not (place / FILE).exists():
        raise StoreProblem.of(place, f"there is no {FILE} in it", "give the state folder of a service")
    found = []
    with contextlib.closing(Reader(place)) as reader:
        for gang in running_gangs(jobs):
            row = reader.job(gang.job_id)
            if row is None or row.epoch != gang.epoch or row.ended_epoch >= row.epoch:
                found.append(gang)
    return found


def end_orphans(found: Sequence[FoundGang], wanted: Sequence[str], grace_s: float, jobs: Path) -> set[str]:
    """Stop those of these jobs; return which. Raises InvalidInput, before any is stopped, for one that is no orphan."""
    problems = Problems(str(jobs))
    known = sorted({gang.job_id for gang in found})
    for job_id in wanted:
        if job_id not in known:
            rule = "no gang of that job runs here without being known to the store"
            problems.add(
                rule, f"give one of {', '.join(known) or 'none, as there is none'}", column="--end", value=job_id
            )
    problems.raise_if_any()
    for gang in found:
        if gang.job_id in wanted:
            gang.stop(grace_s)
    return set(wanted)
