"""Small tables with a header, read whole, with everything that is wrong in them."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem, Problems


@dataclass(frozen=True, slots=True)
class Sheet:
    """The columns of one file, (row,) each."""

    path: Path
    numbers: Mapping[str, list[float]]
    texts: Mapping[str, list[str]]


def read(
    path: Path, numbers: Sequence[str] = (), texts: Sequence[str] = (), *, maybe: Sequence[str] = (), rest: bool = False
) -> Sheet:
    """Return these columns of a CSV file, which may be gzipped; those of `maybe` are numbers that it may lack.

    With `rest` all other columns are texts. Raises InvalidInput for what is missing, empty or not a finite number.
    """
    problems = Problems(str(path))
    header, rows = _rows(path)
    numbers = (*numbers, *(name for name in maybe if name in header))
    if rest:
        texts = (*texts, *(name for name in header if name not in (*numbers, *texts)))
    for name in (*numbers, *texts):
        if name not in header:
            problems.add("the file has no such column", f"its columns are {', '.join(header)}", column=name)
    problems.raise_if_any()
    if not rows:
        problems.add("the file has no rows", "give the whole file")
    found: dict[str, list[float]] = {name: [] for name in numbers}
    words: dict[str, list[str]] = {name: [] for name in texts}
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            problems.add(f"a row has {len(header)} fields", f"this one has {len(row)}", row=line)
            continue
        cells = dict(zip(header, row, strict=True))
        for name in numbers:
            found[name].append(_number(cells[name], name, line, problems))
        for name in texts:
            words[name].append(cells[name])
    problems.raise_if_any()
    return Sheet(path, found, words)


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8-sig") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except FileNotFoundError:
        raise InvalidInput(
            [Problem(file=str(path), rule="there is no such file", mend="give the whole folder")]
        ) from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(
            [Problem(file=str(path), rule=f"it cannot be read: {error}", mend="give a CSV file")]
        ) from error
    return header, rows


def _number(text: str, column: str, line: int, problems: Problems) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        problems.add("is a number", "write digits", row=line, column=column, value=text)
    return number
