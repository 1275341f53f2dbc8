"""Small tables with a header, read whole, with everything that is wrong in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.open_table import read_table

NUMBER = Rule(what="a finite number", fix="write digits")


@dataclass(frozen=True, slots=True)
class PeerSheet:
    """The columns of one file, (row,) each."""

    path: Path
    numbers: Mapping[str, list[float]]
    texts: Mapping[str, list[str]]


def read(
    path: Path, numbers: Sequence[str] = (), texts: Sequence[str] = (), *, maybe: Sequence[str] = (), rest: bool = False
) -> PeerSheet:
    """Return these columns of a CSV file, which may be gzipped; those of `maybe` are numbers that it may lack.

    With `rest` all other columns are texts. Raises InvalidInput for what is missing, empty or not a finite number.
    """
    table = read_table(path)
    numbers = (*numbers, *(name for name in maybe if name in table.columns))
    if rest:
        texts = (*texts, *(name for name in table.columns if name not in (*numbers, *texts)))
    table.expect((*numbers, *texts), None, "the file has no rows")
    found = {name: table.number(name, NUMBER).tolist() for name in numbers}
    words = {name: list(table.text(name)) for name in texts}
    table.raise_if_any()
    return PeerSheet(path, found, words)
