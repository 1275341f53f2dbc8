"""Many runs of one experiment: each once, in several processes, and none that is in the folder already."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

import eunomia
from eunomia.inputs.atomic_write import write_whole
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia_reproduction.table import FigureRow, Request

WORKER = "eunomia_reproduction.worker"


class RunRequest(NamedTuple):
    """One run to make."""

    name: str  # what people call it
    task: Task  # the parameters of `show`, in JSON
    key: str = ""  # all that makes its result, but for the source of this package; "" = the task


R = TypeVar("R", bound=Hashable)
S = TypeVar("S")


def make_all(
    orders: Mapping[R, RunRequest], experiment: str, read: Callable[[Path], S], tell: Callable[[S], str],
    request: Request,
) -> tuple[dict[R, S], dict[R, str]]:  # fmt: skip
    """Make every run, in this order, and return what each showed, and why the others failed.

    The function `show` of the module `experiment` makes one from its task and returns what it showed, in JSON; `read`
    takes that in from its file. A run that fails takes no other with it.
    """
    failed: dict[R, str] = {}
    with _folder(request) as folder:
        files = {run: folder / f"{_digest(experiment, order)}.json" for run, order in orders.items()}
        missing = {str(file): run for run, file in files.items() if not file.is_file()}
        ended: list[R] = []

        def observe(task: Task, answer: Answer) -> None:
            run = missing[task["file"]]
            ended.append(run)
            if "error" in answer:
                failed[run] = answer["error"]
                message = f"failed: {answer['error']}"
            else:
                message = tell(read(files[run]))
            request.tell(f"{len(ended)} of {len(missing)}: {orders[run].name}: {message}")

        if len(missing) < len(files):
            request.tell(f"{len(files) - len(missing)} of {len(files)} runs are there already")
        with Pool(request.processes or os.cpu_count() or 1, WORKER) as pool:
            tasks = [{"experiment": experiment, "run": orders[run].task, "file": file} for file, run in missing.items()]
            pool.run(tasks, observe)
        return {run: read(file) for run, file in files.items() if run not in failed}, failed


def failures(failed: Mapping[str, str]) -> tuple[FigureRow, ...]:
    """Return a row for each run that failed, by its name, which is outside of what is tolerated."""
    return tuple(
        FigureRow(series=name, quantity="runs that failed", unit="", published=0, measured=1, tolerance=0.0, note=why)
        for name, why in failed.items()
    )


def keep(file: str, showed: Mapping[str, object]) -> None:
    """Write what a run showed, whole or not at all: for workers."""
    write_whole(Path(file), json.dumps(showed).encode())


@contextmanager
def _folder(request: Request) -> Iterator[Path]:
    """Yield where runs are kept, or a folder for this time only."""
    if request.keep is not None:
        yield request.keep.absolute()
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _digest(experiment: str, order: RunRequest) -> str:
    key = order.key or json.dumps(order.task, sort_keys=True)
    return sha256(f"{experiment}\0{key}\0{_source()}".encode()).hexdigest()


@cache
def _source() -> str:
    """Return SHA-256 of all modules of Eunomia and of this package."""
    digest = sha256()
    for package in (Path(eunomia.__file__).parent, Path(__file__).parent):
        for file in sorted(package.rglob("*.py")):
            digest.update(f"{file.relative_to(package.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
