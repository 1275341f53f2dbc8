"""The folder of a real run: it has its name from the start, and holds all that a later process needs to go on.

OUT/run/lock             held by the process that drives the run; it says which
OUT/run/record.jsonl     the record so far; every line is on the disk before what it decides is done
OUT/run/clock.json       the time of the run, about once a second
OUT/work/JOB/            log, checkpoints and outcome of each job
OUT/summary.json …       the results; with summary.json the run is finished, and OUT/run is removed
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from eunomia.backends.local.job_directory import lock
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.records.record import JOURNAL
from eunomia.runs.results_dir import BELOW, BESIDE, OURS, check_free

FINISHED = "summary.json"  # written last
CLOCK = Path("run", "clock.json")
LOCK = Path("run", "lock")
RESULTS = Path("run", "results")  # where they are written before they take their place
WORK = "work"
STOPPING_S = 30.0  # longest time to wait for jobs of a process that was killed; they are given 10 s to save


class RunDirectoryState(Enum):
    """What a folder holds of a run."""

    NOTHING = "nothing"
    BEGUN = "begun"  # a process was here, but nothing was recorded
    UNFINISHED = "unfinished"
    FINISHED = "finished"
    OTHER = "other"  # something that is no real run


def look_into(out: Path) -> RunDirectoryState:
    """Say what a folder holds. Raises InvalidInput for one that cannot be read."""
    try:
        names = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
    except OSError as error:
        raise refusal(out, f"it cannot be read ({error.strerror})", "give another folder") from error
    if not names:
        return RunDirectoryState.NOTHING if not out.exists() or out.is_dir() else RunDirectoryState.OTHER
    if FINISHED in names:
        return RunDirectoryState.FINISHED
    if (out / JOURNAL).exists():
        return RunDirectoryState.UNFINISHED
    return RunDirectoryState.BEGUN if names == {"run"} else RunDirectoryState.OTHER


def demand_place(out: Path, *, resume: bool, force: bool, command: str) -> RunDirectoryState:
    """Return what is in the folder, if a run may begin or go on there; `command` is what resumes it.

    Raises InvalidInput otherwise: a run in progress, an unfinished run without `resume`, a folder of something else.
    """
    if resume and force:
        rule = "--resume goes on with a run, --force begins it anew"
        raise InvalidInput([Problem(file="command line", rule=rule, fix="give one of the two")])
    found = look_into(out)
    if (
        found in (RunDirectoryState.BEGUN, RunDirectoryState.UNFINISHED, RunDirectoryState.FINISHED)
        and (out / LOCK).exists()
    ):
        os.close(_take(out))
    if resume:
        if found in (RunDirectoryState.NOTHING, RunDirectoryState.OTHER):
            what = "there is no such folder" if not out.exists() else "the folder holds no run"
            raise refusal(out, f"{what}, so there is nothing to resume", "leave --resume out to begin one")
    elif found is RunDirectoryState.UNFINISHED:
        if not force:
            fix = f"to go on with it, type: {command}; to begin anew and lose what it did, give --force"
            raise refusal(out, "the folder holds a run that is not finished", fix)
        if others := sorted({entry.name for entry in out.iterdir()}.difference(OURS, BESIDE, BELOW)):
            rule = f"the folder holds something else than our results: {out / others[0]}"
            raise refusal(out, rule, "give another one; nothing was removed")
    elif found is not RunDirectoryState.BEGUN:
        check_free(out, force=force)
    return found


@contextmanager
def held(out: Path, *, anew: bool) -> Iterator[Path]:
    """Make the folder where there is none, and hold it for this process; `anew` removes what is in it first.

    Raises InvalidInput while another process holds it.
    """
    try:
        (out / LOCK.parent).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(out, f"it cannot be made ({error.strerror})", "give another folder") from error
    handle = _take(out)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        if anew:
            _clear(out)
        yield out
    finally:
        os.close(handle)


def make_results(out: Path) -> Path:
    """Return an empty folder to write results into."""
    shutil.rmtree(out / RESULTS, ignore_errors=True)
    (out / RESULTS).mkdir()
    return out / RESULTS


def publish(out: Path) -> None:
    """Let the results take their place, the one that says that the run is finished last; remove what a run needs."""
    found = sorted((out / RESULTS).iterdir(), key=lambda path: path.name == FINISHED)
    for path in found:
        os.replace(path, out / path.name)
    shutil.rmtree(out / LOCK.parent, ignore_errors=True)


def _take(out: Path) -> int:
    """Lock the folder of a run and return the open lock. Raises InvalidInput while another process holds it."""
    handle = os.open(out / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        rule = f"process {process or 'unknown'} is running in this folder"
        raise refusal(out, rule, "wait until it has ended, or give another folder") from None
    return handle


def _clear(out: Path) -> None:
    """Remove what an earlier run left, its record first: without it nothing is taken for an unfinished run."""
    if (out / WORK / "lock").exists():
        os.close(lock(out / WORK, STOPPING_S))
    with contextlib.suppress(FileNotFoundError):
        (out / JOURNAL).unlink()
    for entry in out.iterdir():
        if entry.name in OURS:
            entry.unlink()
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if entry.name != LOCK.parent.name:
                shutil.rmtree(entry)
        else:
            entry.unlink()
    (out / CLOCK).unlink(missing_ok=True)


def refusal(out: Path, rule: str, fix: str) -> InvalidInput:
    """Return the error that a folder cannot be used."""
    return InvalidInput([Problem(file=str(out), column="--out", rule=rule, fix=fix)])
