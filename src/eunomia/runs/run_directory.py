"""The folder of a real run, which holds everything that a later process needs to resume the run.

OUT/run/lock             locked by the process that drives the run; contains its id
OUT/run/record.jsonl     the journal; lines are on disk before their decisions are carried out
OUT/run/clock.json       time of the run, written about once a second
OUT/work/JOB/            log, checkpoints and outcome of each job
OUT/summary.json …       results; summary.json marks a finished run, whose OUT/run is removed
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

from eunomia.backends.processes.folder import lock
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.records.record import JOURNAL
from eunomia.runs.results_dir import FOLDERS, MARKERS, OTHER_FILES, check_free, refused_out

FINISHED = "summary.json"  # written last
CLOCK = Path("run", "clock.json")
LOCK = Path("run", "lock")
RESULTS = Path("run", "results")  # of the drafts of result files
WORK = "work"
STOPPING_S = 30.0  # longest wait for jobs of a killed process, which have 10 s to save


class RunDirectoryState(Enum):
    """What a folder contains."""

    NOTHING = "nothing"
    BEGUN = "begun"  # a process locked the folder, but recorded nothing
    UNFINISHED = "unfinished"
    FINISHED = "finished"
    OTHER = "other"  # anything but a real run


def state_of(out: Path) -> RunDirectoryState:
    """Return what a folder contains. Raises InvalidInput for one that cannot be read."""
    try:
        names = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
    except OSError as error:
        raise refused_out(out, f"it cannot be read ({error.strerror})", "give another folder") from error
    if not names:
        return RunDirectoryState.NOTHING if not out.exists() or out.is_dir() else RunDirectoryState.OTHER
    if FINISHED in names:
        return RunDirectoryState.FINISHED
    if (out / JOURNAL).exists():
        return RunDirectoryState.UNFINISHED
    return RunDirectoryState.BEGUN if names == {"run"} else RunDirectoryState.OTHER


def check_folder(out: Path, *, resume: bool, force: bool, command: str) -> RunDirectoryState:
    """Return what the folder contains, if a run may start or be resumed there; `command` resumes it.

    Raises InvalidInput for a run in progress, an unfinished run without `resume`, and a folder of something else.
    """
    if resume and force:
        rule = "--resume continues a run, --force starts it again"
        raise InvalidInput([Problem(file="command line", rule=rule, fix="give one of the two")])
    state = state_of(out)
    no_run = state in (RunDirectoryState.NOTHING, RunDirectoryState.OTHER)
    if not no_run and (out / LOCK).exists():
        os.close(_lock(out))
    if resume:
        if no_run:
            what = "there is no such folder" if not out.exists() else "the folder holds no run"
            raise refused_out(out, f"{what}, so there is nothing to resume", "leave --resume out to begin one")
    elif state is RunDirectoryState.UNFINISHED:
        if not force:
            fix = f"to resume it, type: {command}; to start again and lose its progress, give --force"
            raise refused_out(out, "the folder holds a run that is not finished", fix)
        if others := sorted({entry.name for entry in out.iterdir()}.difference(MARKERS, OTHER_FILES, FOLDERS)):
            rule = f"the folder holds something else than our results: {out / others[0]}"
            raise refused_out(out, rule, "give another one; nothing was removed")
    elif state is not RunDirectoryState.BEGUN:
        check_free(out, force=force)
    return state


@contextmanager
def locked(out: Path, *, restart: bool) -> Iterator[Path]:
    """Make the folder if needed and lock it for this process; `restart` removes its content first.

    Raises InvalidInput while another process has the lock.
    """
    try:
        (out / LOCK.parent).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused_out(out, f"it cannot be made ({error.strerror})", "give another folder") from error
    handle = _lock(out)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        if restart:
            _clear(out)
        yield out
    finally:
        os.close(handle)


def make_results(out: Path) -> Path:
    """Return an empty folder for the drafts of result files."""
    shutil.rmtree(out / RESULTS, ignore_errors=True)
    (out / RESULTS).mkdir()
    return out / RESULTS


def publish(out: Path) -> None:
    """Move the results into `out`, summary.json last; remove the state of the run."""
    for path in sorted((out / RESULTS).iterdir(), key=lambda path: path.name == FINISHED):
        os.replace(path, out / path.name)
    shutil.rmtree(out / LOCK.parent, ignore_errors=True)


def _lock(out: Path) -> int:
    """Lock the folder of a run; return the open lock file. Raises InvalidInput while another process has the lock."""
    handle = os.open(out / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        rule = f"process {process or 'unknown'} is running in this folder"
        raise refused_out(out, rule, "wait until it has ended, or give another folder") from None
    return handle


def _clear(out: Path) -> None:
    """Remove an earlier run, its journal first: without a journal no folder counts as an unfinished run."""
    if (out / WORK / "lock").exists():
        os.close(lock(out / WORK, STOPPING_S))
    with contextlib.suppress(FileNotFoundError):
        (out / JOURNAL).unlink()
    for entry in out.iterdir():
        if entry.name in MARKERS:
            entry.unlink()
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if entry.name != LOCK.parent.name:
                shutil.rmtree(entry)
        else:
            entry.unlink()
    (out / CLOCK).unlink(missing_ok=True)
