"""Detects the format of a file, or the file of a folder in a format, from the first line of each file."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import Any

from eunomia.inputs.file_contents import GZIP
from eunomia.inputs.options import known
from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.inputs.table import usual_name
from eunomia.model.registry import load_place
from eunomia.model.spelling_suggestions import nearest

MOST_HEADER = 65_536  # bytes read of the first line
LISTED = 12  # files named when there are several
TRIED = 3  # formats named with what a file lacks for them
LEAST_SHARED = 2  # columns that the nearest format has in common with a file
MISSPELT, COLUMNS_EACH = 2, 4  # a misspelt column is missing and unknown; one is allowed for each 4 columns


def read_as(path: Path | str, format: str, modules: Mapping[str, str], options: Mapping[str, object]) -> Any:
    """Return the result of the format's reader for a file, or for the one file of a folder that has the format.

    `modules` names the module of each format, or module:layout; the format "auto" is detected from the first line.
    Raises InvalidInput for an unknown format or option, or with everything that is wrong with the file.
    """
    path = Path(path)
    is_guessed = format == "auto"
    if is_guessed:
        format = detect_format(path, modules)
    if format not in modules:
        raise refused(str(path), "format", format, "this format is not known", nearest(format, modules))
    reader = load_place(modules[format])
    names = reader.options if hasattr(reader, "options") else list(signature(reader.read).parameters)[1:]
    known(str(path), options, names)
    try:
        return reader.read(resolve_file(path, modules[format], format), **options)
    except InvalidInput as error:
        if not is_guessed or path.is_dir() or is_in_format(modules[format], read_first_line(path)):
            raise
        rule, fix = f"read as the format {format}, to which its columns are nearest", "or name another format"
        problem = Problem(file=str(path), rule=rule, fix=fix + _hint_at_import(path, read_first_line(path)))
        raise InvalidInput([problem, *error.problems], error.count + 1) from error


def _hint_at_import(path: Path, line: list[str] | None) -> str:
    """Return how a table of past jobs is read whatever its columns are called; "" for one without submissions."""
    is_table = any(usual_name(name) == "submitted_s" for name in line or ())
    return f"; a table of past jobs in any layout: eunomia import csv {quote(str(path))} --out ours" * is_table


def resolve_file(path: Path, module: str, format: str) -> Path:
    """Return `path`, or the one file of that folder which is in the format. Raises InvalidInput for none or several."""
    if not path.is_dir():
        return path
    files = [file for file in _list_files(path) if is_in_format(module, read_first_line(file))]
    if len(files) == 1:
        return files[0]
    if not files:
        rule = f"this folder holds no file in the format {format}"
        raise refused(str(path), None, None, rule, "name the file, or another format")
    names = ", ".join(file.name for file in files[:LISTED]) + ", …" * (len(files) > LISTED)
    rule = f"this folder holds {len(files)} files in the format {format}"
    raise refused(str(path), None, None, rule, f"name {names}")


def detect_format(path: Path, modules: Mapping[str, str]) -> str:
    """Return the one format of a file, or of files in a folder; a file with nearly the columns of a format has it too.

    Raises InvalidInput for no format, or several.
    """
    files = _list_files(path) if path.is_dir() else [path]
    lines = [read_first_line(file) for file in files]
    names = [name for name, module in modules.items() if any(is_in_format(module, line) for line in lines)]
    names = names or [name for name, module in modules.items() if any(_has_suffix(module, file) for file in files)]
    if len(names) == 1:
        return names[0]
    if names:
        rule = f"this could be in the formats {', '.join(names)}"
        raise refused(str(path), None, None, rule, "name the format, or the file")
    if not path.exists():
        raise refused(str(path), None, None, "there is no such file", "check the path")
    where, near, tried = "any of the files of this folder, by its first line", "", ""
    if not path.is_dir():
        misspelt = _find_misspelt(lines[0], modules)
        if misspelt is not None:
            return misspelt  # its reader reports which column is wrong
        where, near = "the first line", _describe_nearest(lines[0], modules)
        tried = _describe_tried(lines[0], modules) + _hint_at_import(path, lines[0])
    rule = f"the format cannot be detected from {where}{near}"
    fix = f"{'add these columns, or ' * bool(near)}name the format: {', '.join(modules)}{tried}"
    raise refused(str(path), None, None, rule, fix)


def _required(reader: Any) -> tuple[str, ...]:
    return tuple(reader.required if hasattr(reader, "required") else reader.REQUIRED)


def _known(reader: Any) -> set[str]:
    return {*_required(reader), *(reader.optional if hasattr(reader, "required") else reader.OPTIONAL)}


def _has_suffix(module: str, file: Path) -> bool:
    return file.name.lower().endswith(getattr(load_place(module), "SUFFIXES", ())) and file.exists()


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        rule = f"the folder cannot be read ({error.strerror})"
        raise refused(str(folder), None, None, rule, "check its permissions, or name the file") from error


def is_in_format(module: str, line: list[str] | None) -> bool:
    """Say whether the cells of a first line are those of the module's format."""
    if line is None:
        return False
    reader = load_place(module)
    if hasattr(reader, "detects"):
        return bool(reader.detects(line))
    if line[:1] and line[0].lstrip()[:1] == "[":
        return hasattr(reader, "JSON")
    if hasattr(reader, "JSON"):
        return False
    if hasattr(reader, "NAMES"):  # no header: the number of columns decides
        return len(line) == 1 and len(line[0].split("\t")) == len(reader.NAMES)
    known = set(line) if getattr(reader, "OPEN", False) else _known(reader)
    return set(_required(reader)) <= set(line) <= known


def _with_header(modules: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield name and reader of each format whose files have a header."""
    for name, module in modules.items():
        reader = load_place(module)
        if not any(hasattr(reader, name) for name in ("JSON", "NAMES", "detects")):
            yield name, reader


def _find_misspelt(line: list[str] | None, modules: Mapping[str, str]) -> str | None:
    """Return the format that has nearly the columns of a first line; None = none has, or several."""
    columns = set(line or ())
    distance: dict[str, int] = {}
    for name, reader in _with_header(modules):
        unknown = set() if getattr(reader, "OPEN", False) else columns - _known(reader)
        if not columns & {*_required(reader)}:
            continue  # nothing in common, whatever else its files may have
        distance[name] = len(set(_required(reader)) - columns) + len(unknown)
    least = min(distance.values(), default=0)
    names = [name for name, away in distance.items() if away == least]
    return names[0] if len(names) == 1 and least <= MISSPELT * max(1, len(line or ()) // COLUMNS_EACH) else None


def _describe_nearest(line: list[str] | None, modules: Mapping[str, str]) -> str:
    """Return a phrase with the format nearest to a first line and the columns it lacks; "" if none is near.

    The nearest format shares more columns with the line than any other, and at least half of the line's columns.
    """
    columns = set(line or ())
    shared, missing = dict[str, int](), dict[str, list[str]]()
    for name, reader in _with_header(modules):
        shared[name] = len(columns & _known(reader))
        missing[name] = [column for column in _required(reader) if column not in columns]
    most = max(shared.values(), default=0)
    names = [name for name, count in shared.items() if count == most]
    if len(names) != 1 or most < max(LEAST_SHARED, len(columns) / 2) or not missing[names[0]]:
        return ""
    return f", which is nearest to {names[0]} and lacks its columns {', '.join(missing[names[0]])}"


def _describe_tried(line: list[str] | None, modules: Mapping[str, str]) -> str:
    """Return a phrase with the formats that share most columns with a first line, and what keeps each from being it."""
    columns = set(line or ())
    lacks: dict[str, tuple[int, str]] = {}
    for name, reader in _with_header(modules):
        known = _known(reader)
        missing = [column for column in _required(reader) if column not in columns]
        strange = [] if getattr(reader, "OPEN", False) else [column for column in line or () if column not in known]
        words = [f"lacks {', '.join(missing)}"] * bool(missing)
        words += [f"has no column {', '.join(strange[:COLUMNS_EACH])}"] * bool(strange and not missing)
        if columns & known and words:
            lacks[name] = -len(columns & known), f"{name} {words[0]}"
    tried = [text for _, text in sorted(lacks.values())[:TRIED]]
    return f"; nearest: {'; '.join(tried)}" if tried else "; none of them has one of these columns" * bool(columns)


def read_first_line(path: Path) -> list[str] | None:
    """Return the comma-separated cells of a file's first line (one cell if it has tabs), or a Parquet file's columns.

    None for a file that cannot be read so.
    """
    try:
        if path.suffix == ".parquet":
            return _parquet_columns(path)
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if packed else path.open("rb") as file:
            line = file.readline(MOST_HEADER).decode("utf-8-sig")
            if line.strip() == "{":  # JSON with a name on each line
                line = "{" + file.readline(MOST_HEADER).decode()
        return [line.rstrip("\r\n")] if "\t" in line else next(csv.reader([line]), None)
    except (OSError, EOFError, zlib.error, ValueError, csv.Error):
        return None


def _parquet_columns(path: Path) -> list[str] | None:
    """Return the names of a Parquet file's columns; None for a file that is none."""
    import pyarrow as pa  # 36 MiB, which processes that read no table do without
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except pa.ArrowException:
        return None
