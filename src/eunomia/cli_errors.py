"""How a command ends when something is wrong: what is said, and with which exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from eunomia.model.problems import InvalidInput

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


@contextmanager
def answering_errors(as_json: bool) -> Iterator[None]:
    """Say what is wrong with the input, all of it, and leave with exit code 2; Ctrl-C leaves with 130."""
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


def _tuner_mistakes() -> type[Exception]:
    from eunomia.tuners.tuner import InvalidWish

    return InvalidWish


def _policy_mistakes() -> tuple[type[Exception], ...]:
    """Return what says a policy's mistake so plainly that no traceback is needed."""
    from eunomia.model.answers import InvalidAnswer
    from eunomia.model.view import UndeclaredColumn
    from eunomia.solvers.program import NoOptimum

    return InvalidAnswer, UndeclaredColumn, NoOptimum
