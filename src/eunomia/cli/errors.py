"""Error messages and exit codes of commands."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import typer

from eunomia.cli.options import results_folder
from eunomia.inputs.disk_errors import DISK, REFUSALS
from eunomia.inputs.interruption import is_interruption
from eunomia.inputs.problems import InvalidInput, Problem

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
Finished = TypeVar("Finished")


@contextmanager
def handle_errors(as_json: bool) -> Iterator[None]:
    """Print every problem of the input and exit with code 2; with 130 on Ctrl-C.

    A policy whose answer breaks a rule, or that raises an exception, is a problem of the input.
    An error of the operating system, such as a full disk, is printed in one sentence, with exit code 1.
    """
    try:
        yield
    except typer.Exit:  # the command asked for it; the clauses below would import what is not needed
        raise
    except InvalidInput as error:
        _show_problems(error, as_json)
        raise typer.Exit(MISUSED) from None
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interruption(error):
            raise
        print("interrupted; nothing was written", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except plugin_errors() as error:
        from eunomia.records.policy_call import TRACEBACK, policy_problem
        from eunomia.tuners.tuner import InvalidTunerRequest

        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        wrong = policy_problem(error)
        if wrong is not None:
            _show_problems(InvalidInput([wrong]), as_json)
            raise typer.Exit(MISUSED) from None
        failed = "a search" if isinstance(error, InvalidTunerRequest) else "the policy"
        print(f"error: {failed} failed, nothing was written: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except OSError as error:
        problem = _system_problem(error)
        if problem is None:
            raise
        if as_json:
            print(json.dumps(InvalidInput([problem]).as_dict()))
        else:
            print(f"error: {problem}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except _failed_runs() as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


@contextmanager
def resumable(kept: str, command: str = "the same command") -> Iterator[None]:
    """Say after Ctrl-C where what is finished is kept, and that the command continues from there; exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"interrupted; {kept}, and {command} continues from there", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def finished_before_interruption(running: Iterable[Finished]) -> list[Finished]:
    """Return what an iteration gives, up to Ctrl-C. Raises KeyboardInterrupt if that is nothing."""
    finished: list[Finished] = []
    try:
        for each in running:
            finished.append(each)
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interruption(error) or not finished:
            raise
    return finished


def _show_problems(error: InvalidInput, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.as_dict()))
    else:
        print(f"error: {error.count} problem{'s' if error.count != 1 else ''} in the input", file=sys.stderr)
        print(error, file=sys.stderr)


def fail_if_unfinished(runs: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Exit with code 1 when runs left jobs unfinished; `runs` are labels and reasons, empty if all jobs finished."""
    unfinished = [(label, why) for label, why in runs if why]
    for label, why in unfinished:
        print(f"error: {label}: {'; '.join(why)}", file=sys.stderr)
    if unfinished:
        raise typer.Exit(FAILED)


def _system_problem(error: OSError) -> Problem | None:
    """Return the problem of an operating system error; None for other errors, or if the file is not known."""
    if error.errno not in REFUSALS:
        return None
    place, name = _output_path(), error.filename
    file = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else None
    is_draft = file is not None and place is not None and f"/.{place.name}." in file  # a name that users do not know
    if place is not None and (is_draft or (file is None and error.errno in DISK)):
        file = str(place)
    rule, fix = REFUSALS[error.errno]
    return None if file is None else Problem(file=file, rule=rule, fix=fix)


def _output_path() -> Path | None:
    """Return the output path of the current command, as a failed write does not name its file."""
    # The module with the current context is part of typer or a package of its own, depending on the version.
    home = typer.Context.__mro__[1].__module__.replace("core", "globals")
    try:
        command = import_module(home).get_current_context(silent=True)
    except (ImportError, AttributeError):
        return None
    given = {} if command is None else command.params
    found = next((given[name] for name in ("out", "to") if isinstance(given.get(name), Path)), None)
    source = next((given[name] for name in ("scenario", "file") if isinstance(given.get(name), Path)), None)
    return results_folder(None, source) if found is None and "out" in given and source is not None else found


def _failed_runs() -> tuple[type[Exception], ...]:
    from eunomia.sweeps import RunsFailed

    return (RunsFailed,)


def plugin_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a policy or tuner whose message is clear without a traceback."""
    from eunomia.model.answers import InvalidAnswer
    from eunomia.records.policy_call import PolicyFailed
    from eunomia.solvers.program import NoOptimum
    from eunomia.tuners.tuner import InvalidTunerRequest

    return InvalidAnswer, PolicyFailed, NoOptimum, InvalidTunerRequest
