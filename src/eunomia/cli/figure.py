"""`eunomia figure`: draws another figure from results that are there, without running anything again."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Annotated, Any

from eunomia.cli.command import Output, command
from eunomia.cli.options import FontOption, NameOption, WidthOption, argument, option
from eunomia.inputs.problems import InvalidInput, Problem

TABLES = ("compare.csv", "sweep.parquet")


@command
def figure(
    output: Output,
    results: Annotated[Path, argument("RESULTS", "Folder of compare or sweep, or its table.")],
    y: Annotated[str, option("FIELD", "A field of summary.json.")] = "jct_mean_s",
    x: Annotated[str, option("COLUMN", "A column of numbers, such as load; policy draws bars.")] = "policy",
    out: Annotated[Path, option("FILE", "The picture, .pdf, .svg or .png.")] = Path("figure.pdf"),
    width: WidthOption = None,
    font: FontOption = None,
    name: NameOption = None,
) -> None:
    """Draw a figure of results, with 95 % intervals over the seeds.

    Text is TrueType, there is no title, and the lines and bars differ in grey too. An existing file is replaced.
    """
    from eunomia.report.figure import draw_figure, save_figure
    from eunomia.report.figure_style import FigureStyle, parse_names, parse_style

    style = parse_style(width, font, name or []) or FigureStyle(names=parse_names(name or []))
    save_figure(draw_figure(read_results(results), y, x, style), out, style)
    output.show({"figure": str(out)}, f"figure: {out}")


def read_results(path: Path) -> list[dict[str, Any]]:
    """Return the rows of compare.csv or sweep.parquet. Raises InvalidInput where there is none."""
    found = next((file for file in (path, *(path / name for name in TABLES)) if file.is_file()), None)
    rows: list[dict[str, Any]] = []
    if found is not None and found.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows = pq.read_table(found).to_pylist()
    elif found is not None and found.suffix == ".csv":
        with found.open(newline="", encoding="utf-8") as file:
            rows = [{key: _value(key, text) for key, text in row.items()} for row in csv.DictReader(file)]
    if not rows or not {"policy", "seed"} <= rows[0].keys():
        fix = "give a folder that compare or sweep has written, or its compare.csv or sweep.parquet"
        raise InvalidInput([Problem(file=str(path), column="RESULTS", rule="there are no runs here", fix=fix)])
    return rows


def _value(key: str, text: str | None) -> float | int | str | None:
    if key == "policy" or not text:
        return text or None
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if math.isfinite(number) and number.is_integer() and "." not in text else number
