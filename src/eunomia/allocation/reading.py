"""Reads the fields of a problem from a JSON or NPZ file; `parse_problem` and `auctions.reading` check them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any, NoReturn

import numpy as np

from eunomia.allocation.auctions.problem import FIELDS as OF_AUCTIONS
from eunomia.allocation.parse_problem import FIELDS as OF_SHARES
from eunomia.allocation.parse_problem import problem_of
from eunomia.allocation.problem import AllocationProblem
from eunomia.inputs.file_contents import decoded
from eunomia.inputs.json_text import read_json
from eunomia.inputs.problems import Problems, refused

FIELDS = frozenset({*OF_SHARES, *OF_AUCTIONS})
_DIGITS = 18  # of a whole number that is read as one
# What numpy and zipfile raise for a damaged file, an unknown compression, or more numbers than there is memory for.
_UNREADABLE = (
    ValueError, EOFError, SyntaxError, TokenError, RuntimeError, MemoryError, OverflowError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def read_problem(path: Path | str) -> AllocationProblem:
    """Read a problem from a .json or .npz file. Raises InvalidInput with every problem in it."""
    path = Path(path)
    return problem_of(read_fields(path), str(path))


def read_fields(path: Path) -> Mapping[str, object]:
    """Return the fields of a file by name: lists of a JSON object, or arrays of an NPZ. Raises InvalidInput."""
    readers = {".json": _read_json, ".npz": _read_npz}
    if path.suffix not in readers:
        _refuse(path, "a problem is a .json or .npz file", "give such a file; docs/solve.md lists its fields")
    try:
        return readers[path.suffix](path)
    except OSError as error:
        _refuse(path, f"it cannot be read ({error.strerror or error})", "give the path of a problem file")


def _read_json(path: Path) -> Mapping[str, object]:
    text = decoded(str(path), path.read_bytes())
    fields = read_json(str(path), text, "write one JSON object", integer=_integer)
    if not isinstance(fields, dict):
        _refuse(path, "a problem is one JSON object", 'write it as in {"types": ["v100"], "capacity": [4], …}')
    return fields


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS else float(text)


def _read_npz(path: Path) -> Mapping[str, object]:
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
        except _UNREADABLE as error:
            detail = "" if "allow_pickle" in str(error) else f" ({error})"  # numpy takes text for pickled objects
            fix = "write it with numpy.savez, or call a text .json if it is JSON"
            _refuse(path, f"it is no NPZ, the arrays that numpy.savez writes{detail}", fix)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            fix = "write it with numpy.savez, each field by name"
            _refuse(path, "it holds one array, but a problem has several", fix)
        problems = Problems(str(path))
        fields = {name: _array(archive, name, problems) if name in FIELDS else None for name in archive.files}
        problems.raise_if_any()
        return fields


def _array(archive: Any, name: str, problems: Problems) -> object:
    """Return an array of the archive; None after noting that it cannot be read."""
    try:
        return archive[name]
    except _UNREADABLE as error:
        pickled = "allow_pickle" in str(error)
        rule = "holds Python objects, which are never loaded" if pickled else f"cannot be read ({error})"
        problems.add(rule, "save numbers as float64 and names as texts", column=name)
        return None


def _refuse(path: Path, rule: str, fix: str) -> NoReturn:
    raise refused(str(path), None, None, rule, fix)
