"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="What to run: see docs/scenario.md.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON to stdout, errors included.")]
