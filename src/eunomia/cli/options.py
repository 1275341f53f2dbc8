"""Options and arguments that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from eunomia.report.figure_style import FigureStyle

OUT = "out"  # folder of the results without --out
SCENARIO = "scenario.toml"  # what an import calls its scenario, whatever was imported
FORMATS = re.compile(r"(pdf|svg|png)(,(pdf|svg|png))*")


def group(help: str) -> typer.Typer:
    """Return a group of commands, which shows them when none is named."""
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None)


def argument(metavar: str, help: str) -> Any:
    """Return what a command says of an argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(metavar: str, help: str, *names: str, min: float | None = None, max: float | None = None) -> Any:
    """Return what a command says of an option with a value; without `names` the parameter's name is the option's."""
    return typer.Option(*names, metavar=metavar, help=help, min=min, max=max)


def flag(help: str, *names: str) -> Any:
    """Return what a command says of an option without a value."""
    return typer.Option(*names, help=help)


ScenarioArgument = Annotated[Path, argument("SCENARIO.toml", "What to run: see docs/scenario.md.")]
TurnOption = Annotated[
    bool, flag("Of a history: look for the cost of a preemption that turns a verdict.", "--turn/--no-turn")
]
JsonOption = Annotated[bool, flag("Print JSON to stdout, errors included.", "--json")]
JobsOption = Annotated[int | None, option("N", "Processes at a time; without it, one a core.", "--jobs", min=1)]
OutOption = Annotated[
    Path | None,
    option(
        "DIR",
        "Folder for the results, written whole or not at all. Without: out/NAME, or out/NAME-2 and so on.",
        "--out",
    ),
]
WidthOption = Annotated[
    str | None, option("3.33in", "Width of pictures for a paper: no title, in, mm or pt.", "--width")
]
FontOption = Annotated[float | None, option("PT", "Size of the text in pictures for a paper.", "--font")]
NameOption = Annotated[
    list[str] | None, option("POLICY=NAME", "Show a policy under this name. May be repeated.", "--name")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What the picture options ask for."""

    formats: tuple[str, ...]
    style: FigureStyle | None
    names: Mapping[str, str]  # to show, by policy


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureOptions:
    """The options about pictures, as they were typed."""

    charts: Annotated[
        str | None,
        option("[pdf,svg,png]", "Write every chart as a picture too, into charts/. PNG and SVG if no format is named."),
    ] = None
    width: WidthOption = None
    font: FontOption = None
    name: NameOption = None

    def parsed(self) -> Pictures:
        """Return the checked options. Raises InvalidInput."""
        from eunomia.report.figure_style import parse_formats, parse_names, parse_style

        names = self.name or []
        return Pictures(
            formats=parse_formats(self.charts) if self.charts else (),
            style=parse_style(self.width, self.font, names),
            names=parse_names(names),
        )


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results_folder(out: Path | None, source: Path) -> Path:
    """Return the folder for the results: `out`, or out/NAME after the scenario."""
    return Path(OUT) / title_of(source) if out is None else out


def title_of(source: Path) -> str:
    """Return what a scenario's results are named after: its file, or its folder where the file is an import's."""
    return source.absolute().parent.name if source.name == SCENARIO else source.stem


def new_results_folder(out: Path | None, source: Path, *, force: bool, goes_on: bool = False) -> Path:
    """Return the folder for new results: `out`, or the first of out/NAME, out/NAME-2, … that is free, or replaced.

    With `goes_on` it may be that of an interrupted comparison.
    """
    from eunomia.runs.results_dir import UNFINISHED

    place = usual = results_folder(out, source)
    for number in count(2):
        if out is not None or force or not place.exists() or (goes_on and (place / UNFINISHED).is_file()):
            break
        place = usual.with_name(f"{usual.name}-{number}")
    return place


def with_default_formats(words: list[str]) -> list[str]:
    """Return the command line with `png,svg` after every `--charts` that no format follows."""
    filled: list[str] = []
    for i, word in enumerate(words):
        filled.append(word)
        if word == "--charts" and not FORMATS.fullmatch(words[i + 1] if i + 1 < len(words) else ""):
            filled.append("png,svg")
    return filled


def numbers_by_type(option: str, texts: Sequence[str] | None, *, most: float, example: str) -> dict[str, float]:
    """Return what an option such as `--price h100=32000` gives for accelerator types; one text may name several.

    Raises InvalidInput for anything else than a type and a number above 0 and below `most`.
    """
    from eunomia.inputs.problems import refused

    found = {}
    for text in ",".join(texts or ()).split(",") if texts else ():
        name, _, number = text.strip().partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = 0.0
        if not name or not 0 < found[name] < most:
            rule = f"must be TYPE=X with X above 0 and below {most:g}"
            raise refused("command line", option, text, rule, f"write for example {option} {example}")
    return found
