"""`eunomia reproduce`: measures published results again."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from inspect import cleandoc
from itertools import groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.errors import FAILED, handle_errors
from eunomia.cli.options import JsonOption
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction import EXPERIMENTS
from eunomia_reproduction.expected import kept_seeds

if TYPE_CHECKING:
    from eunomia_reproduction.table import FigureRow, FigureTable

SHOWN = 80  # rows; of a longer table only rows outside their tolerance are shown
TITLES = ("series", "x", "quantity", "published", "measured", "ratio", "within")
REASONS = 20  # of rows outside; all are in the file
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
        bool,
        typer.Option(
            "--check", help="Leave with exit code 1 when a row changed, or is outside and not expected to be."
        ),
    ] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make these rows the ones that --check expects.")] = False,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds to run, where NAME draws at random.")] = 1,
    processes: Annotated[int, typer.Option(min=0, metavar="N", help="Runs at a time; 0 = one per core.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing NAME.csv.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be measured again.")] = False,
    claims: Annotated[
        bool,
        typer.Option("--claims", help="Print each published claim (of NAME, if given) with its verdict by kept rows."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure a published result again.

    Writes NAME.csv into DIR: published value, measured value, their ratio, and whether it is within its tolerance.
    """
    with handle_errors(as_json):
        if list_:
            _show_list(as_json)
            return
        if claims:
            _show_claims(name, as_json)
            return
        from eunomia_reproduction import expected, load
        from eunomia_reproduction.table import Request, check_free

        if name is None:
            raise _misuse("NAME", "no experiment is named", "see eunomia reproduce --list")
        experiment = load(name)
        _check_options(name, out, reference, seeds if check else None)
        assert out is not None
        check_free(out, name, force=force)
        table = experiment(Request(reference=reference, keep=out / "runs", seeds=seeds, processes=processes, tell=_log))
        files = table.write(out, name)
        if as_json:
            print(json.dumps({"name": name, "checked": _checked(table), **table.as_dict()}, allow_nan=False))
        else:
            _show(table, files)
        known = expected.file_of(name, seeds)
        if accept:
            expected.accept(known, table)
            _log(f"wrote {known}")
        entry = EXPERIMENTS.get(name)
        compared = known.is_file() and not (entry and entry.any_reference)
        if check and not _passes(table, expected.changes(table, expected.read(known)) if compared else None):
            raise typer.Exit(FAILED)


def _check_options(name: str, out: Path | None, reference: Path | None, checked_seeds: int | None) -> None:
    """Raise InvalidInput with every option that the experiment needs and lacks."""
    entry, problems = EXPERIMENTS.get(name), list[Problem]()
    if out is None:
        problems += _misuse("--out", "there is no folder for the results", f"add --out {name}-out").problems
    if entry is not None and entry.reference and reference is None:
        rule = "this experiment compares with files, and no folder is given"
        problems += _misuse("--reference", rule, f"give a folder laid out like {entry.reference}").problems
    if entry is not None and checked_seeds is not None and checked_seeds < entry.least_seeds:
        rule = f"{name} draws at random, and with fewer than {entry.least_seeds} seeds its rows are chance"
        problems += _misuse("--seeds", rule, f"add --seeds {entry.least_seeds}, or leave --check out").problems
    if problems:
        raise InvalidInput(problems)


def _passes(table: FigureTable, changed: list[str] | None) -> bool:
    """Say whether the check passes; `changed` are the rows that differ from the expected ones, None without those."""
    if changed is None:
        if not _checked(table):
            _log(f"nothing was checked: {NOTHING}")
        return bool(_checked(table)) and not table.outside
    for line in changed[:REASONS]:
        _log(f"changed: {line}")
    if len(changed) > REASONS:
        _log(f"changed: {len(changed) - REASONS} rows more")
    if not changed and table.outside:
        _log(f"{len(table.outside)} rows are outside, as expected")
    return not changed


def _checked(table: FigureTable) -> int:
    """Return the number of rows with a published value and a tolerance."""
    return sum(row.within is not None for row in table.rows)


def _misuse(column: str, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file="command line", column=column, rule=rule, fix=fix)])


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show_list(as_json: bool) -> None:
    if as_json:
        listed = [
            {
                "name": name,
                "about": e.about,
                "reference": e.reference,
                "minutes": e.minutes,
                "least_seeds": e.least_seeds,
                "kept_seeds": _compared_seeds(name),
            }
            for name, e in EXPERIMENTS.items()
        ]
        print(json.dumps(listed))
        return
    for line in list_experiments(get_terminal_size().columns):
        print(line)


def _show_claims(name: str | None, as_json: bool) -> None:
    """Print the claims that rest on an experiment, or all. Raises InvalidInput for an unknown name."""
    from eunomia_reproduction import load
    from eunomia_reproduction.claims import judge_all
    from eunomia_reproduction.claims.page import as_dicts, lines

    if name is not None:
        load(name)
    judged = [one for one in judge_all() if name is None or name in one.claim.experiments]
    if as_json:
        print(json.dumps(as_dicts(judged)))
        return
    for line in lines(judged, get_terminal_size().columns):
        print(line)


def _compared_seeds(name: str) -> list[int]:
    """Return the numbers of seeds with which --check compares a run with kept rows."""
    return [] if EXPERIMENTS[name].any_reference else kept_seeds(name)


def list_experiments(width: int) -> list[str]:
    """Return the names, their minutes, what they show, and whether --check knows their rows, in lines of this width."""
    wide = max(map(len, EXPERIMENTS))
    lines = [f"{'NAME':{wide}}  min of CPU, about"]
    for name, entry in EXPERIMENTS.items():
        needs = f"; needs --reference DIR, laid out like {entry.reference}" if entry.reference else ""
        needs += "; rows are kept" if _compared_seeds(name) else ""
        seeds = f"; --check needs --seeds {entry.least_seeds}" if entry.least_seeds > 1 else ""
        head = f"{name:{wide}}  {entry.minutes:>4g}  "
        lines += wrap(entry.about + needs + seeds, width, initial_indent=head, subsequent_indent=" " * len(head))
    return lines


def _show(table: FigureTable, files: list[Path]) -> None:
    """Print the rows, or only those outside if there are many, then the notes."""
    from rich.console import Console

    console = Console(highlight=False)
    rows = table.rows if len(table.rows) <= SHOWN else table.outside
    if rows:
        for bold, line in _lines(rows, console.width):
            console.print(line, style="bold" if bold else "", markup=False, soft_wrap=True)
    for note in table.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for line in _reasons(table):
        console.print(line, markup=False, soft_wrap=True)
    counts = f"{len(table.rows)} rows, {_checked(table)} checked, {len(table.outside)} outside"
    console.print(f"{counts}; wrote {', '.join(str(path) for path in files)}", markup=False, soft_wrap=True)


def _lines(rows: Sequence[FigureRow], width: int) -> list[tuple[bool, str]]:
    """Return the lines of a table, and whether a line is a heading; where rows are wider, each series is a heading."""
    cells = [_cells(row) for row in rows]
    kept = [k for k, title in enumerate(TITLES) if title != "x" or any(line[k] for line in cells)]
    wide = [max(len(line[k]) for line in (TITLES, *cells)) for k in range(len(TITLES))]

    def line_of(texts: Sequence[str], columns: Sequence[int]) -> str:
        left = ("series", "quantity")
        aligned = [texts[k].ljust(wide[k]) if TITLES[k] in left else texts[k].rjust(wide[k]) for k in columns]
        return " ".join(aligned).rstrip()

    if sum(wide[k] + 1 for k in kept) - 1 <= width:
        return [(True, line_of(TITLES, kept)), *((False, line_of(line, kept)) for line in cells)]
    lines = [(True, f"  {line_of(TITLES, kept[1:])}")]
    for series, of_series in groupby(cells, key=itemgetter(0)):
        lines.append((True, series))
        lines += [(False, f"  {line_of(line, kept[1:])}") for line in of_series]
    return lines


def _reasons(table: FigureTable) -> list[str]:
    """Return the notes of rows outside their tolerance, each once, with the first of their rows."""
    rows_by_note: dict[str, list[str]] = {}
    for row in table.outside:
        if row.note:
            rows_by_note.setdefault(row.note, []).append(f"{row.series}, {row.quantity}")
    lines = [
        f"outside: {rows[0]}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}: {note}"
        for note, rows in rows_by_note.items()
    ]
    more = [f"outside: {len(lines) - REASONS} reasons more in the file"] if len(lines) > REASONS else []
    return lines[:REASONS] + more


def _cells(row: FigureRow) -> list[str]:
    numbers = [_number(value) for value in (row.published, row.measured, row.ratio)]
    quantity = f"{row.quantity} [{row.unit}]" if row.unit else row.quantity
    answer = {None: "–", True: "yes", False: "NO"}[row.within]
    return [row.series, str(row.x), quantity, *numbers, answer]


def _number(value: float | int | None) -> str:
    if value is None:
        return "–"
    whole = isinstance(value, int) or 1e4 <= abs(value) < inf
    return f"{value:,.0f}" if whole else f"{value:,.4g}"


# What can be measured is in the help, as paragraphs that are not wrapped again.
_EXAMPLE = "Example:  eunomia reproduce themis-w2 --seeds 10 --check --out themis-out"
reproduce.__doc__ = "\n\n\b\n".join([cleandoc(reproduce.__doc__ or ""), "\n".join(list_experiments(78)), _EXAMPLE])
