"""All runs that a figure needs: each once, on all cores, and none that an earlier figure left in the same folder."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import eunomia
from eunomia.experiment.sweep.fingerprint import scenario_hash
from eunomia.experiment.sweep.pool import Answer, Pool, Task
from eunomia.reproduction.gavel.cells import Cell, Shown, throughputs_in
from eunomia.reproduction.table import Request, Row

WORKER = "eunomia.reproduction.gavel.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What each run showed, and why the others failed."""

    shown: Mapping[Cell, Shown]
    failed: Mapping[Cell, str]

    def number(self, cell: Cell, of: Callable[[Shown], float]) -> float | None:
        """Return a number of a run; None where it failed."""
        one = self.shown.get(cell)
        return None if one is None else of(one)

    def jct_h(self, cell: Cell) -> float | None:
        """Return the average JCT in hours."""
        return self.number(cell, lambda one: one.jct_h)

    def failures(self) -> tuple[Row, ...]:
        """Return a row for each run that failed, which is outside of what is tolerated."""
        return tuple(
            Row(
                series=cell.name, quantity="runs that failed", unit="", published=0, measured=1, tolerance=0.0, note=why
            )
            for cell, why in self.failed.items()
        )


def over(one: float | None, other: float | None) -> float | None:
    """Return one ÷ other; None where either is missing."""
    return None if one is None or not other else one / other


def measure(cells: Iterable[Cell], request: Request) -> Runs:
    """Make every run once, the longest first, a process per core. A run that fails takes no other with it."""
    throughputs = throughputs_in(request)
    todo = sorted(dict.fromkeys(cells), key=lambda cell: -cell.weight)
    failed: dict[Cell, str] = {}
    with _folder(request) as folder:
        files = {cell: folder / f"{_key(cell, throughputs)}.json" for cell in todo}
        missing = {str(file): cell for cell, file in files.items() if not file.is_file()}
        ended: list[Cell] = []

        def hear(task: Task, answer: Answer) -> None:
            cell = missing[task["file"]]
            ended.append(cell)
            if "error" in answer:
                failed[cell] = answer["error"]
                told = f"failed: {answer['error']}"
            else:
                one = _read(files[cell])
                told = f"{one.jct_h:.2f} h ({one.cpu_s:.0f} s)"
            request.tell(f"{len(ended)} of {len(missing)}: {cell.name}: {told}")

        if len(missing) < len(todo):
            request.tell(f"{len(todo) - len(missing)} of {len(todo)} runs are there already")
        with Pool(os.cpu_count() or 1, WORKER) as pool:
            pool.run([_task(cell, file, throughputs) for file, cell in missing.items()], hear)
        return Runs(shown={cell: _read(files[cell]) for cell in todo if cell not in failed}, failed=failed)


@contextmanager
def _folder(request: Request) -> Iterator[Path]:
    """Yield where runs are kept, or a folder for this time only."""
    if request.keep is not None:
        yield request.keep.absolute()
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _task(cell: Cell, file: str, throughputs: Path) -> Task:
    return {"cell": cell.as_dict(), "file": file, "throughputs": str(throughputs.absolute())}


def _read(file: Path) -> Shown:
    return Shown(**json.loads(file.read_text(encoding="utf-8")))


def _key(cell: Cell, throughputs: Path) -> str:
    """Return what names a run: its scenario, the files that it reads, and the source that plays it."""
    parts = (scenario_hash(cell.scenario(throughputs)), cell.as_published, cell.draw, _source())
    return sha256(repr(parts).encode()).hexdigest()


@cache
def _source() -> str:
    """Return SHA-256 of all modules of this package."""
    package = Path(eunomia.__file__).parent
    digest = sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
