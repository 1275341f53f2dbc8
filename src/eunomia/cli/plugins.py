"""Commands of other packages: each announces its commands as entry points of the group `eunomia.commands`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from eunomia.cli.errors import handle_errors
from eunomia.inputs.install_hint import COMPANIONS, install_command
from eunomia.inputs.problems import InvalidInput, Problem

GROUP = "eunomia.commands"
OFFERED = {"reproduce": ("reproduction", "Measure a published result again.")}  # by packages of this project
ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_commands(app: typer.Typer) -> None:
    """Add the commands of installed packages to `app`, and the ones of `OFFERED` that tell which package to install."""
    announced = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted({*announced, *OFFERED}):
        if name in announced:
            _add(app, announced[name])
        else:
            companion, about = OFFERED[name]
            package, fix = COMPANIONS[companion], install_command(companion=companion)
            rule = f"the command is in a package of its own, {package}"
            app.command(name, help=f"{about} Needs {package}.", context_settings=ANY_WORDS)(_refusal(name, rule, fix))


def _add(app: typer.Typer, point: EntryPoint) -> None:
    try:
        command: Callable[..., Any] = point.load()
    except Exception as error:  # any mistake of the other package; it is reported when the command is typed
        rule = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        fix = "install a version of that package for this version of eunomia"
        app.command(point.name, context_settings=ANY_WORDS)(_refusal(point.name, rule, fix))
        return
    app.command(point.name)(command)


def _refusal(name: str, rule: str, fix: str) -> Callable[[typer.Context], None]:
    def refuse(context: typer.Context) -> None:
        with handle_errors("--json" in context.args):
            raise InvalidInput([Problem(file="command line", column="COMMAND", value=name, rule=rule, fix=fix)])

    return refuse
