"""`eunomia reproduce`: published results measured again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.errors import FAILED, answering_errors
from eunomia.inputs.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from eunomia_reproduction.table import FigureRow, FigureTable

SHOWN = 80  # rows of a table; of a longer one only those outside are shown
REASONS = 20  # of rows outside; the others stand in the file
NOTHING = "no row has a published value and a tolerance; leave --check out, or give results that have them"


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What to measure again: see --list.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for NAME.csv and its figures.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with the published results, where NAME needs one.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Leave with exit code 1 when a row is outside or nothing is checked.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds to run, where NAME draws at random.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing NAME.csv.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be measured again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout, errors included.")] = False,
) -> None:
    """Measure a published result again.

    Writes NAME.csv into DIR: published value, measured value, their ratio, and whether it is within its tolerance.
    """
    with answering_errors(as_json):
        if list_:
            _show_list(as_json)
            return
        from eunomia_reproduction import load
        from eunomia_reproduction.table import Request, check_free

        if name is None:
            raise _misuse("NAME", "no experiment is named", "see eunomia reproduce --list")
        experiment = load(name)
        if out is None:
            raise _misuse("--out", "there is no folder for the results", f"add --out {name}-out")
        check_free(out, name, force=force)
        table = experiment(Request(reference=reference, keep=out / "runs", seeds=seeds, tell=_tell))
        files = table.write(out, name)
        if as_json:
            summary = {"name": name, "checked": _checked(table), **table.as_dict()}
            print(json.dumps(summary, allow_nan=False))
        else:
            _show(table, files)
        if check and not _checked(table):
            _tell(f"nothing was checked: {NOTHING}")
        if check and (table.outside or not _checked(table)):
            raise typer.Exit(FAILED)


def _checked(table: FigureTable) -> int:
    """Return how many rows something is asked of."""
    return sum(row.within is not None for row in table.rows)


def _misuse(column: str, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file="command line", column=column, rule=rule, fix=fix)])


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show_list(as_json: bool) -> None:
    from eunomia_reproduction import EXPERIMENTS

    if as_json:
        listed = [{"name": name, "about": e.about, "reference": e.reference} for name, e in EXPERIMENTS.items()]
        print(json.dumps(listed))
        return
    wide = max(map(len, EXPERIMENTS))
    for name, entry in EXPERIMENTS.items():
        needs = f"; needs --reference DIR, laid out like {entry.reference}" if entry.reference else ""
        print(f"{name:{wide}}  {entry.about}{needs}")


def _show(table: FigureTable, files: list[Path]) -> None:
    """Print the rows, the worst first where there are many, then what they rest on."""
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(highlight=False)
    rows = table.rows if len(table.rows) <= SHOWN else table.outside
    curves = any(row.x != "" for row in rows)
    grid = Grid(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    grid.add_column("series", overflow="fold", min_width=24)
    for title in (*["x"] * curves, "quantity", "published", "measured", "ratio", "within"):
        grid.add_column(title, justify="left" if title == "quantity" else "right", no_wrap=True)
    for row in rows:
        series, x, *others = _cells(row)
        grid.add_row(series, *[x] * curves, *others)
    if rows:
        console.print(grid)
    for note in table.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for line in _reasons(table):
        console.print(line, markup=False, soft_wrap=True)
    summary = f"{len(table.rows)} rows, {_checked(table)} checked, {len(table.outside)} outside"
    console.print(f"{summary}; wrote {', '.join(str(path) for path in files)}", markup=False, soft_wrap=True)


def _reasons(table: FigureTable) -> list[str]:
    """Return why rows are outside, as far as they say it, each reason once."""
    where: dict[str, list[str]] = {}
    for row in table.outside:
        if row.note:
            where.setdefault(row.note, []).append(f"{row.series}, {row.quantity}")
    lines = [
        f"outside: {rows[0]}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}: {note}"
        for note, rows in where.items()
    ]
    more = [f"outside: {len(lines) - REASONS} reasons more in the file"] if len(lines) > REASONS else []
    return lines[:REASONS] + more


def _cells(row: FigureRow) -> list[str]:
    from rich.markup import escape

    numbers = [_number(value) for value in (row.published, row.measured, row.ratio)]
    quantity = f"{row.quantity} [{row.unit}]" if row.unit else row.quantity
    answer = {None: "–", True: "yes", False: "NO"}[row.within]
    return [escape(row.series), escape(str(row.x)), escape(quantity), *numbers, answer]


def _number(value: float | int | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
