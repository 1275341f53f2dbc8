"""How a command ends when something is wrong: what is said, and with which exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import typer

from eunomia.inputs.disk_errors import DISK, REFUSALS
from eunomia.inputs.problems import InvalidInput, Problem

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


@contextmanager
def answering_errors(as_json: bool) -> Iterator[None]:
    """Say what is wrong with the input, all of it, and leave with exit code 2; Ctrl-C leaves with 130.

    What the machine refuses, such as a file on a full disk, is one sentence and exit code 1.
    """
    try:
        yield
    except InvalidInput as error:
        if as_json:
            print(json.dumps(error.as_dict()))
        else:
            print(f"error: {error.count} problem{'s' if error.count != 1 else ''} in the input", file=sys.stderr)
            print(error, file=sys.stderr)
        raise typer.Exit(MISUSED) from None
    except (KeyboardInterrupt, SystemError) as error:
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise  # compiled code that is interrupted ends in a SystemError because of that
        print("interrupted; nothing was written", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except _policy_mistakes() as error:
        print(f"error: the policy failed, nothing was written: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except _tuner_mistakes() as error:
        print(f"error: a search failed, nothing was written: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except OSError as error:
        problem = _refused_by_the_machine(error)
        if problem is None:
            raise
        if as_json:
            print(json.dumps(InvalidInput([problem]).as_dict()))
        else:
            print(f"error: {problem}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def fail_if_unfinished(runs: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Leave with exit code 1 when runs left jobs unfinished; `runs` are their labels, and why, if they did."""
    left = [(label, why) for label, why in runs if why]
    for label, why in left:
        print(f"error: {label}: {'; '.join(why)}", file=sys.stderr)
    if left:
        raise typer.Exit(FAILED)


def _refused_by_the_machine(error: OSError) -> Problem | None:
    """Return what the machine refused and where; None for an error that it has no part in, or of no known place."""
    if error.errno not in REFUSALS:
        return None
    place, named = _place(), error.filename
    file = os.fsdecode(named) if isinstance(named, str | bytes | os.PathLike) else None
    draft = file is not None and place is not None and f"/.{place.name}." in file  # what nobody knows by that name
    if place is not None and (draft or (file is None and error.errno in DISK)):
        file = str(place)
    rule, fix = REFUSALS[error.errno]
    return None if file is None else Problem(file=file, rule=rule, fix=fix)


def _place() -> Path | None:
    """Return where the command that is running was told to write. A write that fails does not say its file."""
    # What knows of the command is a part of typer or a package of its own, by version; its classes say which.
    home = typer.Context.__mro__[1].__module__.replace("core", "globals")
    try:
        command = import_module(home).get_current_context(silent=True)
    except (ImportError, AttributeError):  # then it is not known
        return None
    said = {} if command is None else command.params
    return next((said[name] for name in ("out", "to") if isinstance(said.get(name), Path)), None)


def mistakes_of_plugins() -> tuple[type[Exception], ...]:
    """Return what says a mistake of a policy or a tuner so plainly that no traceback is needed."""
    return (*_policy_mistakes(), _tuner_mistakes())


def _tuner_mistakes() -> type[Exception]:
    from eunomia.tuners.tuner import InvalidTunerRequest

    return InvalidTunerRequest


def _policy_mistakes() -> tuple[type[Exception], ...]:
    """Return what says a policy's mistake so plainly that no traceback is needed."""
    from eunomia.model.answers import InvalidAnswer
    from eunomia.model.view import UndeclaredColumn
    from eunomia.solvers.program import NoOptimum

    return InvalidAnswer, UndeclaredColumn, NoOptimum
