"""The rows that an experiment gave when its page was written: misses that are known, and changes that are not.

A file for each experiment and number of seeds is in the folder `expected`; `eunomia reproduce NAME --accept` writes it.
A row that was never run, or is CPU time, has `NOT_RUN` in place of its value, and any value passes.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia_reproduction.table import FigureTable

FOLDER = Path(__file__).parent / "expected"
COLUMNS = ("series", "x", "quantity", "measured", "within")
NEAR = 1e-6  # relative: the same seed gives the same bytes, printed decimals aside
NOT_RUN = "?"
MACHINE_TIME = "CPU time"  # begins the quantities that differ from run to run
Key = tuple[str, str, str]


def file_of(name: str, seeds: int) -> Path:
    """Return where the expected rows of an experiment are."""
    return FOLDER / f"{name}-{seeds}.csv"


def kept_seeds(name: str) -> list[int]:
    """Return the numbers of seeds with which the rows of an experiment are kept."""
    return sorted(int(path.stem.removeprefix(f"{name}-")) for path in FOLDER.glob(f"{name}-[0-9]*.csv"))


def rows_of(table: FigureTable) -> dict[Key, tuple[str, str]]:
    """Return measured and within of each row, as text; rows of one key are numbered."""
    found: dict[Key, tuple[str, str]] = {}
    for row in table.rows:
        within = "" if row.within is None else str(row.within).lower()
        key, copies = (row.series, str(row.x), row.quantity), 1
        while key in found:
            copies += 1
            key = (f"{row.series} ({copies})", str(row.x), row.quantity)
        found[key] = ("" if row.measured is None else repr(row.measured), within)
    return found


def accept(path: Path, table: FigureTable) -> None:
    """Write the rows of the table as those that are expected."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, (measured, within) in rows_of(table).items():
        writer.writerow((*key, NOT_RUN if key[2].startswith(MACHINE_TIME) else measured, within))
    write_whole(path, text.getvalue().encode())


def read(path: Path) -> dict[Key, tuple[str, str]]:
    """Return the expected rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["series"], row["x"], row["quantity"]): (row["measured"], row["within"]) for row in rows}


def changes(table: FigureTable, expected: Mapping[Key, tuple[str, str]]) -> list[str]:
    """Return a line for each row that is new, missing, of another value, or within where it was outside, or reverse."""
    found = rows_of(table)
    lines = [f"{_name(key)}: this row was expected and is missing" for key in expected if key not in found]
    for key, (measured, within) in found.items():
        if key not in expected:
            lines.append(f"{_name(key)}: this row is new")
            continue
        before, was_within = expected[key]
        if before == NOT_RUN:
            continue
        if within != was_within or not _same(measured, before):
            lines.append(
                f"{_name(key)}: {measured or 'not measured'}, within: {within or '-'}; expected {before or 'none'}, "
                f"within: {was_within or '-'}"
            )
    return lines


def _name(key: Key) -> str:
    return ", ".join(part for part in key if part)


def _same(one: str, other: str) -> bool:
    if not one or not other:
        return one == other
    return math.isclose(float(one), float(other), rel_tol=NEAR, abs_tol=NEAR)
