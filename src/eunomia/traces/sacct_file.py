"""One file of `sacct --parsable2`: its header, and the fields that are read as columns of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.model.arrays import Ints
from eunomia.traces.sacct_separators import NAMED, LineCutter, cut_lines

COMMAND = (
    "sacct --allusers --allocations --duplicates --parsable2 --starttime 2024-01-01 --endtime now "
    "--format JobID,Submit,Eligible,Start,End,ElapsedRaw,State,Account,User,Partition,NNodes,NodeList,AllocTRES,"
    "ReqTRES,Suspended"
)
FIELDS = (
    "JobID", "JobIDRaw", "Cluster", "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "State",
    "Account", "User", "Partition", "QOS", "NNodes", "AllocNodes", "NodeList", "AllocTRES", "ReqTRES", "AllocGRES",
    "ReqGRES", "Restarts",
)  # fmt: skip
NEEDED = (  # one of each is needed
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("State",),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"),
)
SEPARATORS = ("|", "\t", ";")  # of --delimiter; a comma occurs in values
HEAD_LINES = 20  # in which the header is searched: warnings may precede it
BLOCK_BYTES = 1 << 24


def is_header(line: str) -> bool:
    """Say whether a line is a header of sacct in its parsable form."""
    separator = _separator(line)
    return separator is not None and {"submit", "state"} <= {name.casefold() for name in line.split(separator)}


def _separator(line: str) -> str | None:
    """Return what separates the fields of a header; None if it is none."""
    found = [mark for mark in SEPARATORS if {"jobid", "jobidraw"} & {w.casefold() for w in line.strip().split(mark)}]
    return found[0] if len(found) == 1 and found[0] in line else None


@dataclass(frozen=True, kw_only=True, eq=False)
class SacctFile:
    """One file: its columns of FIELDS, and the line of each row."""

    name: str
    raw: bytes  # b"" of a file without lines
    columns: dict[str, pa.Array]
    unread: tuple[str, ...]
    line: Ints
    found: tuple[tuple[str, str, int, int | None, str], ...]  # kind, what, count, line and text of an example


def read_file(raw: bytes, name: str) -> SacctFile:
    """Return one file of sacct. Raises InvalidInput for another file."""
    found: list[tuple[str, str, int, int | None, str]] = []
    skipped, begin, fields, separator = _find_header(raw, name)
    if skipped:
        text = raw.split(b"\n", 1)[0].decode(errors="replace")
        found.append(("left out", "lines before the header", skipped, 1, text))
    places = {wanted: k for wanted in FIELDS for k, has in enumerate(fields) if has.casefold() == wanted.casefold()}
    _check_fields(name, skipped + 1, fields, places)
    wanted = sorted(places.values())
    try:
        table, damaged = _parse(pa.py_buffer(raw).slice(begin), len(fields), separator, wanted)
    except pa.ArrowInvalid:  # bytes that are no UTF-8
        body = raw[begin:].decode(errors="replace").encode()
        table, damaged = _parse(pa.py_buffer(body), len(fields), separator, wanted)
        what = "lines were read with bytes that are not UTF-8 replaced by a mark"
        found.append(("repaired", what, body.count(b"\n"), None, ""))
    first = skipped + 2  # line of the first row
    line = _line_numbers(table.num_rows, [number for number, _ in damaged]) + first - 1
    if damaged:
        cutter = LineCutter(fields=fields, separator=separator, place=places, known=_known_values(table, places))
        table, line, damaged = _cut_damaged(table, line, damaged, cutter, first - 1, found)
    if damaged:
        what = f"lines do not have the {len(fields)} fields of the header: cut short, or a {separator} in a value"
        number, text = damaged[0]
        found.append(("left out", f"{what}; what they held is not known", len(damaged), number + first - 1, text))
    key = pc.utf8_trim_whitespace(table.column(str(places.get("JobID", places.get("JobIDRaw")))))
    heads = as_mask(pc.is_in(pc.utf8_lower(key), pa.array(["jobid", "jobidraw"])))
    if heads.any():
        number = int(line[heads][0])
        _check_repeated_header(name, raw, number, fields, separator)
        found.append(("left out", "lines repeat the header", int(heads.sum()), number, separator.join(fields)))
    is_step = as_mask(pc.match_substring(key, "."))
    if is_step.any():
        number = int(line[is_step][0])
        what = "lines of steps (.batch, .extern, .0 …): their job has a line of its own"
        found.append(("left out", what, int(is_step.sum()), number, _line_of(raw, number)))
    keep = ~heads & ~is_step & ~as_mask(pc.equal(key, ""))
    kept = table.filter(pa.array(keep))
    unread = tuple(has for has in fields if has and has.casefold() not in {wanted.casefold() for wanted in FIELDS})
    return SacctFile(
        name=name,
        raw=raw,
        columns={name: pc.utf8_trim_whitespace(kept.column(str(k)).combine_chunks()) for name, k in places.items()},
        unread=unread,
        line=line[keep],
        found=tuple(found),
    )


def _known_values(table: pa.Table, places: dict[str, int]) -> dict[str, frozenset[str]]:
    """Return the values that whole lines have of accounts, users and the like."""
    return {
        name: frozenset(text.strip() for text in pc.unique(table.column(str(places[name]))).to_pylist())
        for name in NAMED
        if name in places
    }


def _cut_damaged(
    table: pa.Table,
    line: Ints,
    damaged: list[tuple[int, str]],
    cutter: LineCutter,
    before: int,
    found: list[tuple[str, str, int, int | None, str]],
) -> tuple[pa.Table, Ints, list[tuple[int, str]]]:
    """Return rows, their lines, and damaged lines, with those that could be cut among the rows; these are noted.

    `before` is the number of lines before that which `damaged` counts as the first.
    """
    cells, used = cut_lines(cutter, damaged)
    if not cells:
        return table, line, damaged
    names = table.column_names
    rows = pa.table({name: pa.array([each[int(name)] for each in cells.values()], pa.string()) for name in names})
    lines = np.concatenate([line, np.array(list(cells), dtype=np.int64) + before])
    order = np.argsort(lines, kind="stable")
    free = ", ".join(cutter.fields[k] for k in cutter.free())
    what = (
        f"lines have a {cutter.separator} or a line break in a field that is not read ({free}); the others are certain"
    )
    number = next(iter(cells))
    text = next(text for m, text in damaged if m == number)
    found.append(("repaired", what, len(cells), number + before, text))
    left = [(number, text) for number, text in damaged if number not in used]
    return pa.concat_tables([table, rows]).take(pa.array(order)), lines[order], left


def _line_of(raw: bytes, number: int) -> str:
    """Return the text of a line, counted from 1."""
    return raw.split(b"\n", number)[number - 1].decode(errors="replace").rstrip("\r")


def _find_header(raw: bytes, name: str) -> tuple[int, int, list[str], str]:
    """Return how many lines precede the header, where the body begins, the fields and their separator."""
    begin = 3 if raw.startswith(b"\xef\xbb\xbf") else 0
    for skipped in range(HEAD_LINES):
        end = raw.find(b"\n", begin)
        text = raw[begin : end if end >= 0 else len(raw)].decode(errors="replace").rstrip("\r")
        separator = _separator(text)
        if separator is not None:
            fields = [word.strip() for word in text.split(separator)]
            return skipped, end + 1 if end >= 0 else len(raw), fields, separator
        if end < 0:
            break
        begin = end + 1
    raise _no_header(raw, name)


def _no_header(raw: bytes, name: str) -> InvalidInput:
    """Return the error for a file without a header of sacct, with its likely cause."""
    line = raw.split(b"\n", 1)[0].decode(errors="replace").strip()
    rule, fix = "the first lines are no header of sacct --parsable2", f"write the file with: {COMMAND}"
    if not raw.strip():
        rule = "the file is empty"
    elif line.casefold().split()[:1] in (["jobid"], ["jobidraw"]):
        rule = "this is sacct's output for reading, in which long values are cut short"
    elif "|" in line:
        rule, fix = (
            "the first line is no header",
            "leave out --noheader, or put the names of the fields above the lines",
        )
    return refused(name, None, line[:80] or None, rule, fix, row=1)


def _check_fields(name: str, row: int, fields: Sequence[str], places: dict[str, int]) -> None:
    """Raise InvalidInput for each need that no field meets."""
    problems = [
        Problem(
            file=name,
            row=row,
            column=needs[0],
            rule="this field is missing" if len(needs) == 1 else f"none of the fields {', '.join(needs)} is here",
            fix=f"the fields here are {', '.join(fields)}; ask for more: {COMMAND}",
        )
        for needs in NEEDED
        if not set(needs) & places.keys()
    ]
    if problems:
        raise InvalidInput(problems)


def _check_repeated_header(name: str, raw: bytes, number: int, fields: Sequence[str], separator: str) -> None:
    """Raise InvalidInput if a second header names other fields: the lines below it would be misread."""
    text = _line_of(raw, number)
    if [word.strip() for word in text.split(separator)] != list(fields):
        rule, fix = "a second header has other fields than the first", "split the file there, and import both"
        raise refused(name, None, text[:80], rule, fix, row=number)


def _parse(
    body: pa.Buffer, width: int, separator: str, wanted: Sequence[int]
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Return the wanted columns, named by their number, and number and text of each line with another width."""
    damaged: list[tuple[int, str]] = []

    def skip(row: pa_csv.InvalidRow) -> str:
        damaged.append((int(row.number), str(row.text)))
        return "skip"

    names = [str(k) for k in range(width)]
    table = pa_csv.read_csv(
        pa.BufferReader(body if body.size else separator.encode() * (width - 1)),
        read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(
            delimiter=separator, quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        convert_options=pa_csv.ConvertOptions(
            include_columns=[str(k) for k in wanted],
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
        ),
    )
    return table, damaged


def _line_numbers(rows: int, skipped: Sequence[int]) -> Ints:
    """Return (row,) 1-based numbers of the lines that were kept; `skipped` are numbers of the others."""
    numbers = np.arange(1, rows + len(skipped) + 1)
    keep = np.ones(len(numbers), dtype=np.bool_)
    keep[[number - 1 for number in skipped if number <= len(numbers)]] = False
    return numbers[keep][:rows]


def as_mask(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
