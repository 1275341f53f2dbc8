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

TRAINING_WORKER = "eunomia_reproduction.training_worker"


class RunRequest(NamedTuple):
    """One run to make."""

    name: str  # what people call it
    key: str  # all that makes its result, but for the source of this package
    task: Task  # sent to its worker; `file` is added to it, where to write the result


def training_request(name: str, experiment: str, **training: object) -> RunRequest:
    """Return the request for one training, made by the function `show` of the experiment's module."""
    task = {"experiment": experiment, "training": training}
    return RunRequest(name, json.dumps(task, sort_keys=True), task)


R = TypeVar("R", bound=Hashable)
S = TypeVar("S")


def make_all(
    orders: Mapping[R, RunRequest], worker: str, read: Callable[[Path], S], tell: Callable[[S], str], request: Request
) -> tuple[dict[R, S], dict[R, str]]:
    """Make every run, in this order, and return what each showed, and why the others failed.

    `worker` is the module that makes one, `read` takes in what it wrote. A run that fails takes no other with it.
    """
    failed: dict[R, str] = {}
    with _folder(request) as folder:
        files = {run: folder / f"{_digest(order)}.json" for run, order in orders.items()}
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
        with Pool(request.processes or os.cpu_count() or 1, worker) as pool:
            pool.run([{**orders[run].task, "file": file} for file, run in missing.items()], observe)
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


def _digest(order: RunRequest) -> str:
    return sha256(f"{order.key}\0{_source()}".encode()).hexdigest()


@cache
def _source() -> str:
    """Return SHA-256 of all modules of Eunomia and of this package."""
    digest = sha256()
    for package in (Path(eunomia.__file__).parent, Path(__file__).parent):
        for file in sorted(package.rglob("*.py")):
            digest.update(f"{file.relative_to(package.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
