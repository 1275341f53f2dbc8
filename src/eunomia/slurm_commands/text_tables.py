"""Columns as Slurm's commands print them: fixed widths, or fields with a character between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eunomia.model.spelling_suggestions import nearest
from eunomia.slurm_commands.command_line import WrongUsage

DIRECTIVE = re.compile(r"%(\.?)(\d{0,4})([A-Za-z%])")
MOST_WIDTH = 1000


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column: text before it, its title, what it shows, its width (0 = as long as it is), and its side."""

    title: str
    show: Callable[[Any], object]
    width: int = 0
    right: bool = False
    before: str = ""
    fill: str = " "

    def text(self, value: object) -> str:
        """Return a value as it is printed, without control characters."""
        shown = "".join(one if one.isprintable() else "?" for one in str(value))
        if not self.width:
            return shown
        cut = shown[: self.width]
        return cut.rjust(self.width) if self.right else cut.ljust(self.width)


def by_letters(form: str, letters: Mapping[str, tuple[str, Callable[[Any], object]]]) -> tuple[list[TextColumn], str]:
    """Return the columns of `%.18i %t` and the text behind them. Raises WrongUsage for an unknown letter."""
    columns, end = [], 0
    for found in DIRECTIVE.finditer(form):
        right, width, letter = found.groups()
        if letter not in letters:
            raise WrongUsage(f"Invalid job format specification: {letter}; there are {' '.join(sorted(letters))}")
        title, show = letters[letter]
        width = min(int(width or 0), MOST_WIDTH)
        columns.append(TextColumn(title, show, width, bool(right), form[end : found.start()].replace("\\n", "\n")))
        end = found.end()
    return columns, form[end:]


def by_names(
    names: Iterable[str], fields: Mapping[str, Callable[[Any], object]], sign: str, width: int, *, upper: bool
) -> list[TextColumn]:
    """Return the columns of `JobID%20` or `JobID:20`. Raises WrongUsage for an unknown name, with the nearest."""
    columns = []
    for one in names:
        name, _, digits = one.partition(sign)
        key = name.strip().lower()
        if key not in fields:
            raise WrongUsage(f'Invalid field requested: "{name}"; {nearest(key, fields)}')
        left = digits.startswith(("-", ".")) if sign == "%" else not digits.startswith(".")
        size = int(number) if (number := digits.lstrip("-.")).isdigit() else width
        columns.append(
            TextColumn(name.upper() if upper else name.strip(), fields[key], min(size, MOST_WIDTH), not left)
        )
    return columns


def lines_of(
    columns: Sequence[TextColumn], items: Iterable[Any], *, header: bool, between: str = "", after: str = ""
) -> list[str]:
    """Return a line for each item, after one of titles."""
    rows: list[list[object]] = [[one.title for one in columns]] if header else []
    rows += [[one.show(item) for one in columns] for item in items]
    found = []
    for row in rows:
        cells = (f"{one.before}{one.text(value)}" for one, value in zip(columns, row, strict=True))
        found.append(between.join(cells) + after)
    return found


def ruled(
    columns: Sequence[TextColumn], items: Iterable[Any], *, header: bool, parsable: str, delimiter: str
) -> list[str]:
    """Return lines as sacct prints them: in columns below a rule, or with a delimiter (`parsable2`), also behind."""
    if parsable:
        bare = [TextColumn(one.title, one.show) for one in columns]
        return lines_of(bare, items, header=header, between=delimiter, after=delimiter * (parsable == "parsable"))
    found = lines_of(columns, items, header=header, between=" ", after=" ")
    if header:
        found.insert(1, " ".join("-" * one.width for one in columns) + " ")
    return found


def cut_with_plus(column: TextColumn) -> TextColumn:
    """Return a column that ends what is too long with +, as sacct does."""

    def show(item: Any) -> str:
        text = str(column.show(item))
        return text if not column.width or len(text) <= column.width else f"{text[: column.width - 1]}+"

    return TextColumn(column.title, show, column.width, column.right)
