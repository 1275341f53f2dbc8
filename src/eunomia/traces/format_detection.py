"""Which file of a folder a format means, and which format a file is in: both are told by the first line."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eunomia.inputs.file_contents import GZIP
from eunomia.inputs.problems import refused

MOST_HEADER = 65_536  # bytes looked at
LISTED = 12  # files named when there are several
LEAST_SHARED = 2  # columns that a nearest format has in common with a file
MISSPELT, COLUMNS_EACH = 2, 4  # a misspelt column is missing and strange; so many columns may hold one


def file_of(path: Path, module: str, format: str) -> Path:
    """Return the file that `path` names: itself, or the one file of that folder which is in the format."""
    if not path.is_dir():
        return path
    found = [file for file in _files(path) if fits(module, first_line(file))]
    if len(found) == 1:
        return found[0]
    if not found:
        rule = f"this folder holds no file in the format {format}"
        raise refused(str(path), None, None, rule, "name the file, or another format")
    names = ", ".join(file.name for file in found[:LISTED]) + ", …" * (len(found) > LISTED)
    raise refused(
        str(path), None, None, f"this folder holds {len(found)} files in the format {format}", f"name {names}"
    )


def guessed(path: Path, modules: Mapping[str, str]) -> str:
    """Return the one format whose columns a file has, or that one file of a folder has. Raises InvalidInput.

    A file whose columns are all but those of a format is taken for one of that.
    """
    files = _files(path) if path.is_dir() else [path]
    lines = [first_line(file) for file in files]
    found = [name for name, module in modules.items() if any(fits(module, line) for line in lines)]
    if len(found) == 1:
        return found[0]
    if not found:
        if not path.exists():
            raise refused(str(path), None, None, "there is no such file", "check the path")
        nearly = None if path.is_dir() else _misspelt(lines[0], modules)
        if nearly is not None:
            return nearly  # whose reader says which column is wrong
        where = "any of the files of this folder, by its first line" if path.is_dir() else "the first line"
        near = "" if path.is_dir() else _nearest(lines[0], modules)
        rule, names = f"the format cannot be told from {where}{near}", ", ".join(modules)
        fix = f"{'add these columns, or ' * bool(near)}name the format: {names}"
        raise refused(str(path), None, None, rule, fix)
    rule = f"this could be in the formats {', '.join(found)}"
    raise refused(str(path), None, None, rule, "name the format, or the file")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        rule = f"the folder cannot be looked into ({error.strerror})"
        raise refused(str(folder), None, None, rule, "check its permissions, or name the file") from error


def fits(module: str, line: list[str] | None) -> bool:
    """Say whether the cells of a first line are what the module reads."""
    if line is None:
        return False
    reader = import_module(module)
    if line[:1] and line[0].lstrip()[:1] == "[":
        return hasattr(reader, "JSON")
    if hasattr(reader, "JSON"):
        return False
    if hasattr(reader, "NAMES"):  # no header: the number of columns tells
        return len(line) == 1 and len(line[0].split("\t")) == len(reader.NAMES)
    known = set(line) if getattr(reader, "OPEN", False) else {*reader.REQUIRED, *reader.OPTIONAL}
    return set(reader.REQUIRED) <= set(line) <= known


def _misspelt(line: list[str] | None, modules: Mapping[str, str]) -> str | None:
    """Return the format whose columns nearly are those of a first line, None = of no format, or of several."""
    distance: dict[str, int] = {}
    for name, module in modules.items():
        reader, found = import_module(module), set(line or ())
        if hasattr(reader, "JSON") or hasattr(reader, "NAMES"):
            continue
        strange = set() if getattr(reader, "OPEN", False) else found - {*reader.REQUIRED, *reader.OPTIONAL}
        distance[name] = len(set(reader.REQUIRED) - found) + len(strange)
    near = min(distance.values(), default=0)
    names = [name for name, off in distance.items() if off == near]
    return names[0] if len(names) == 1 and near <= MISSPELT * max(1, len(line or ()) // COLUMNS_EACH) else None


def _nearest(line: list[str] | None, modules: Mapping[str, str]) -> str:
    """Return which one format a first line is nearest to, and which of its columns are missing; "" if to none.

    Near is what has more of the format's columns than of any other, and of its own columns at least half.
    """
    found, shared = set(line or ()), dict[str, int]()
    lacking: dict[str, list[str]] = {}
    for name, module in modules.items():
        reader = import_module(module)
        if hasattr(reader, "JSON") or hasattr(reader, "NAMES"):
            continue
        shared[name] = len(found & {*reader.REQUIRED, *reader.OPTIONAL})
        lacking[name] = [column for column in reader.REQUIRED if column not in found]
    most = max(shared.values(), default=0)
    names = [name for name, count in shared.items() if count == most]
    if len(names) != 1 or most < max(LEAST_SHARED, len(found) / 2) or not lacking[names[0]]:
        return ""
    return f", which is nearest to {names[0]} and lacks its columns {', '.join(lacking[names[0]])}"


def first_line(path: Path) -> list[str] | None:
    """Return the names in the first line of a file, as comma-separated cells; None where there is no such thing."""
    try:
        if path.suffix == ".parquet":
            return list(pq.read_schema(path).names)
        return _cells(_head(path))
    except (OSError, EOFError, zlib.error, ValueError, csv.Error, pa.ArrowException):
        return None  # no trace, whatever it is


def _head(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    if packed:
        with gzip.open(path) as unpacked:
            return unpacked.readline(MOST_HEADER).decode("utf-8-sig")
    with path.open("rb") as file:
        return file.readline(MOST_HEADER).decode("utf-8-sig")


def _cells(line: str) -> list[str] | None:
    if "\t" in line:
        return [line.rstrip("\r\n")]
    return next(csv.reader([line]), None)
