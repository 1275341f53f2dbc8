"""All runs that a figure needs: each once, on all cores, and none that an earlier figure left in the same folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eunomia.runs.fingerprint import scenario_hash
from eunomia.sweeps.pool import Task
from eunomia_reproduction.gavel import figure_runs
from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun, throughputs_in
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What each run showed, and why the others failed."""

    shown: Mapping[FigureRun, FigurePoint]
    failed: Mapping[FigureRun, str]

    def number(self, cell: FigureRun, of: Callable[[FigurePoint], float | None]) -> float | None:
        """Return a number of a run; None where it failed."""
        one = self.shown.get(cell)
        return None if one is None else of(one)

    def jct_h(self, cell: FigureRun) -> float | None:
        """Return the average JCT in hours."""
        return self.number(cell, lambda one: one.jct_h)

    def failures(self) -> tuple[FigureRow, ...]:
        """Return a row for each run that failed, which is outside of what is tolerated."""
        return failures({cell.name: why for cell, why in self.failed.items()})


def over(one: float | None, other: float | None) -> float | None:
    """Return one ÷ other; None where either is missing."""
    return None if one is None or not other else one / other


def measure(cells: Iterable[FigureRun], request: Request) -> Runs:
    """Make every run once, the longest first, a process per core. A run that fails takes no other with it."""
    throughputs = throughputs_in(request)
    todo = sorted(dict.fromkeys(cells), key=lambda cell: -cell.weight)
    orders = {cell: RunRequest(cell.name, _task(cell, throughputs), _key(cell, throughputs)) for cell in todo}
    shown, failed = make_all(orders, __name__, _read, _describe, request)
    return Runs(shown=shown, failed=failed)


def show(cell: Mapping[str, Any], throughputs: str) -> dict[str, Any]:
    """Make one run, and return what it showed."""
    return asdict(figure_runs.show(FigureRun.of_dict(cell), Path(throughputs)))


def _describe(one: FigurePoint) -> str:
    return f"{one.jct_h:.2f} h ({one.cpu_s:.0f} s)"


def _task(cell: FigureRun, throughputs: Path) -> Task:
    return {"cell": cell.as_dict(), "throughputs": str(throughputs.absolute())}


def _read(file: Path) -> FigurePoint:
    return FigurePoint(**json.loads(file.read_text(encoding="utf-8")))


def _key(cell: FigureRun, throughputs: Path) -> str:
    """Return what names a run: its scenario, with the files that it reads, and what a scenario cannot say."""
    return repr((scenario_hash(cell.scenario(throughputs)), cell.as_published, cell.as_solved, cell.draws))
