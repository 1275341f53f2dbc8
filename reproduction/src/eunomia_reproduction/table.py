"""Numbers measured here beside the numbers that others published, one row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.figure import Figure

COLUMNS = (
    "series",
    "x",
    "quantity",
    "unit",
    "published",
    "measured",
    "ratio",
    "tolerance",
    "within",
    "source",
    "note",
)
SLACK = 1e-9  # of a tolerance: what rounding may add
Number = float | int | None


def silent(line: str) -> None:
    """Ignore the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for. `tell` takes lines for whoever watches; finished runs are kept in `keep`."""

    reference: Path | None = None
    keep: Path | None = None
    seeds: int = 1
    processes: int = 0  # that make runs at a time; 0 = one per core
    tell: Callable[[str], None] = silent

    def folder(self, like: str) -> Path:
        """Return the folder of reference results, laid out like `like`. Raises InvalidInput when there is none."""
        if self.reference is None:
            rule, fix = (
                "this experiment compares with files, and no folder is given",
                f"give a folder laid out like {like}",
            )
        elif not self.reference.is_dir():
            rule, fix = f"there is no folder {self.reference}", f"give a folder laid out like {like}"
        else:
            return self.reference
        raise InvalidInput([Problem(file="command line", column="--reference", rule=rule, fix=fix)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """One quantity of one run. None = not known, not measured, or not to be checked."""

    series: str  # the run: system, case and policy
    x: float | int | str = ""  # where on the curve: a load, a number of jobs; empty where there is no curve
    quantity: str
    unit: str
    published: Number = None
    measured: Number = None
    tolerance: Number = None  # largest |ratio - 1|; where 0 was published, the largest |measured|
    is_least: bool = False  # what was published is a lower bound: nothing above it is off
    source: str = ""  # the file, table or figure that the published number comes from
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return measured ÷ published; None without both, or where 0 was published."""
        if self.measured is None or not self.published:
            return None
        return self.measured / self.published

    @property
    def within(self) -> bool | None:
        """Say whether it is as near as it has to be; None when nothing is asked of it. Not measured is not near."""
        if self.tolerance is None or self.published is None:
            return None
        if self.measured is None:
            return False
        if self.is_least and self.measured >= self.published:
            return True
        off = abs(self.measured) if self.published == 0 else abs(self.measured / self.published - 1)
        return off <= self.tolerance + SLACK

    def cells(self) -> list[str]:
        """Return what stands in the file, by `COLUMNS`."""
        return [_text(getattr(self, name)) for name in COLUMNS]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """What an experiment showed. `notes` say what the numbers rest on and what was left out."""

    rows: tuple[FigureRow, ...]
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def outside(self) -> tuple[FigureRow, ...]:
        """Return the rows that are further off than they may be."""
        return tuple(row for row in self.rows if row.within is False)

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write NAME.csv and a picture per figure as SVG and PNG, each file whole or not at all; return the files."""
        contents = {folder / f"{name}.csv": self.csv().encode()}
        for figure in self.figures:
            contents |= {folder / f"{figure.name}.{kind}": picture for kind, picture in figure.pictures().items()}
        for path, content in contents.items():
            write_whole(path, content)
        return list(contents)

    def csv(self) -> str:
        """Return the rows as a CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row.cells() for row in self.rows)
        return text.getvalue()

    def as_dict(self) -> dict[str, object]:
        """Return the form that is printed with `--json`."""
        return {
            "rows": [{name: getattr(row, name) for name in COLUMNS} for row in self.rows],
            "outside": len(self.outside),
            "notes": list(self.notes),
        }


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def check_free(folder: Path, name: str, *, force: bool) -> None:
    """Raise InvalidInput when `folder` cannot take NAME.csv, or has one and `force` is not said."""
    path = folder / f"{name}.csv"
    if folder.exists() and not folder.is_dir():
        rule, fix = f"{folder} is a file", "give a folder"
    elif path.exists() and not force:
        rule, fix = f"{path} exists", "give another folder, or --force to replace it"
    else:
        return
    raise InvalidInput([Problem(file=str(folder), column="--out", rule=rule, fix=fix)])
