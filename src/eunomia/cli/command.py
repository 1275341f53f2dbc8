"""What makes a function a command: its `--json`, how its result is shown, and how its errors end it.

The decorators write the signature that typer reads, so that typer stays the one parser of words: its own way to share
options, a callback of a group, would put them before the name of the command.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from eunomia.cli.errors import handle_errors
from eunomia.cli.options import JsonOption
from eunomia.inputs.json_text import json_pieces


@dataclass(frozen=True, slots=True)
class Output:
    """How the result of a command is shown."""

    as_json: bool

    def show(self, found: Any, *texts: str | Callable[[], object]) -> None:
        """Print a result as JSON, or the texts; a function is called for its value, or to print its text."""
        if self.as_json:
            value = found() if callable(found) else found
            pieces = (
                json_pieces(value, ascii_only=True) if isinstance(value, dict) else [json.dumps(value, allow_nan=False)]
            )
            sys.stdout.writelines(pieces)
            print(flush=True)
            return
        for text in texts:
            print(text) if isinstance(text, str) else text()


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with --json for a function whose first parameter is its `Output`; errors end it as they do."""

    def call(given: dict[str, Any], as_json: bool) -> None:
        with handle_errors(as_json):
            function(Output(as_json), **given)

    return with_options(function, call, as_json=(JsonOption, False))


def with_options(function: Callable[..., None], call: Callable[..., None], **shared: Any) -> Callable[..., None]:
    """Return a command that hands what is given to a function to `call`, with the values of the `shared` options.

    It has the parameters of the function but its first, and those of `shared`: (annotation, default) by name. A
    parameter that is a dataclass stands for its fields.
    """
    signature = inspect.signature(function, eval_str=True)
    _, *own = signature.parameters.values()
    groups: dict[str, tuple[Any, list[inspect.Parameter]]] = {
        one.name: (one.annotation, _fields(one.annotation)) for one in own if is_dataclass(one.annotation)
    }
    parameters = [each for one in own for each in (groups[one.name][1] if one.name in groups else [one])]
    parameters += [_parameter(name, *pair) for name, pair in shared.items()]

    @functools.wraps(function)
    def called(**given: Any) -> None:
        common = {name: given.pop(name) for name in shared}
        for name, (kind, options) in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in options})
        call(given, **common)

    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    called.__signature__ = signature.replace(parameters=keyword_only)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _fields(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [_parameter(one.name, hints[one.name], one.default) for one in fields(kind)]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=annotation)
