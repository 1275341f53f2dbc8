"""Every peer whose results are in the reference folder, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.peers.job_comparison import JobComparison
from eunomia_reproduction.run_cache import failures
from eunomia_reproduction.table import FigureTable, Request

SYSTEMS = ("tiresias", "blox", "helios", "pollux", "shockwave", "astraea")


def reproduce(request: Request) -> FigureTable:
    """Compare with every system in the reference folder, laid out like data/peers or data/peers/<system>.

    What is wrong in the files of one run, case or system is a row that is outside, and the others are compared. Raises
    InvalidInput when there is none, and for what is wrong in the only one.
    """
    folder = request.folder("data/peers")
    whole = JobComparison()
    places = {system: _place(folder, system) for system in SYSTEMS}
    if not any(places.values()):
        rule, fix = f"there is none of {', '.join(SYSTEMS)}", "give a folder laid out like data/peers"
        raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, fix=fix)])
    for system, place in places.items():
        if place is None and folder in places.values():
            continue  # one system was asked for
        if place is None:
            whole.notes.append(f"{system}: no results in {folder}")
            continue
        try:
            found: JobComparison = _module(system).reproduce(place, request)
        except InvalidInput as error:
            if sum(map(bool, places.values())) == 1:
                raise
            found = JobComparison(rows=list(failures({system: " | ".join(str(error).splitlines())})))
        whole.rows += found.rows
        whole.notes += found.notes
        whole.figures += found.figures
    return FigureTable(rows=tuple(whole.rows), notes=tuple(whole.notes), figures=tuple(whole.figures))


def _module(system: str) -> ModuleType:
    return import_module(f"eunomia_reproduction.peers.{system}")


def _place(folder: Path, system: str) -> Path | None:
    """Return where the results of a system are: in a folder of its name, or right here."""
    is_here: Callable[[Path], bool] = _module(system).is_here
    return next((place for place in (folder / system, folder) if place.is_dir() and is_here(place)), None)
