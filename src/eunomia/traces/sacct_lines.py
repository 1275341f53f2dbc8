"""The lines of `sacct --parsable2` as columns of text, those of steps left out; lines that are damaged are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from eunomia.inputs.file_contents import contents
from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.model.arrays import Floats, Ints
from eunomia.traces.import_findings import ImportFinding, ImportFindings, RowSource
from eunomia.traces.slurm_fields import read_numbers

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


@dataclass(kw_only=True, eq=False)
class SacctLines(RowSource):
    """The lines of jobs in one or several files, (line,) each."""

    files: tuple[str, ...]
    raw: tuple[bytes, ...]
    file: Ints  # of each line
    line: Ints  # 1-based, in its file
    columns: dict[str, pa.Array]
    unread: tuple[str, ...]
    findings: tuple[ImportFinding, ...] = ()
    _ends: dict[int, Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line)

    @property
    def name(self) -> str:
        """The first file and how many others, for messages."""
        more = len(self.files) - 1
        return self.files[0] + (f" and {more} more" if more else "")

    def has(self, name: str) -> bool:
        """Whether a file has the field."""
        return name in self.columns

    def text(self, name: str) -> pa.Array:
        """Return a field as written; empty text where the files lack it."""
        return self.columns[name] if name in self.columns else pa.array([""] * len(self), pa.string())

    def first_of(self, *names: str) -> pa.Array:
        """Return the first of these fields that is not empty, line by line."""
        found = self.text(names[0])
        for name in names[1:]:
            if name in self.columns:
                found = pc.if_else(pc.equal(found, ""), self.columns[name], found)
        return found

    def numbers(self, name: str) -> Floats:
        """Return a field of whole numbers; nan where there is none."""
        return read_numbers(self.text(name))

    def row(self, m: int) -> tuple[str, int | None, str]:
        """Return file, line and text of a line."""
        place, line = int(self.file[m]), int(self.line[m])
        if place not in self._ends:
            self._ends[place] = np.flatnonzero(np.frombuffer(self.raw[place], dtype=np.uint8) == ord("\n"))
        ends = self._ends[place]
        begin = 0 if line == 1 else int(ends[line - 2]) + 1
        end = int(ends[line - 1]) if line <= len(ends) else len(self.raw[place])
        return self.files[place], line, self.raw[place][begin:end].decode(errors="replace").rstrip("\r")


@dataclass(frozen=True, kw_only=True, eq=False)
class _File:
    """One file: its columns of FIELDS, and the line of each row."""

    name: str
    raw: bytes
    columns: dict[str, pa.Array]
    unread: tuple[str, ...]
    line: Ints
    found: tuple[tuple[str, str, int, int | None, str], ...]  # kind, what, count, line and text of an example


def read_lines(paths: Sequence[Path]) -> SacctLines:
    """Return the lines of jobs. Raises InvalidInput for a file that is not of sacct or that lacks fields."""
    files = [_read_file(path) for path in paths]
    names = list(dict.fromkeys(name for one in files for name in one.columns))
    columns = {name: pa.concat_arrays([_column(one, name) for one in files]) for name in names}
    lines = SacctLines(
        files=tuple(one.name for one in files),
        raw=tuple(one.raw for one in files),
        file=np.concatenate([np.full(len(one.line), k) for k, one in enumerate(files)]),
        line=np.concatenate([one.line for one in files]),
        columns=columns,
        unread=tuple(dict.fromkeys(name for one in files for name in one.unread)),
    )
    findings = ImportFindings(source=lines)
    for one in files:
        for kind, what, count, line, text in one.found:
            findings.add_line(kind, what, count, one.name, line, text)  # type: ignore[arg-type]
    _leave_out_waiting(lines, findings)
    lines.findings = tuple(findings.kept)
    return lines


def _column(one: _File, name: str) -> pa.Array:
    """Return a field of a file; empty text where it lacks the field."""
    return one.columns[name] if name in one.columns else pa.array([""] * len(one.line), pa.string())


def _leave_out_waiting(lines: SacctLines, findings: ImportFindings) -> None:
    """Leave out array tasks that wait as one line."""
    job_id = lines.first_of("JobID", "JobIDRaw")
    waits = _mask(pc.match_substring(job_id, "["))
    components = _mask(pc.match_substring(job_id, "+"))
    findings.add("left out", "lines of array tasks that never started (123_[4-9])", waits)
    findings.add(
        "assumed", "components of heterogeneous jobs (123+0) are read as jobs of their own", components & ~waits
    )
    if waits.any():
        keep = pa.array(~waits)
        lines.columns = {name: column.filter(keep) for name, column in lines.columns.items()}
        lines.file, lines.line = lines.file[~waits], lines.line[~waits]
    if not len(lines):
        fix = f"ask for the jobs themselves: {COMMAND}"
        raise refused(lines.name, "JobID", None, "there is no line of a job", fix)


def _mask(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _read_file(path: Path) -> _File:
    """Return one file of sacct. Raises InvalidInput for another file."""
    raw, name = contents(path), str(path)
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
        what = f"lines do not have the {len(fields)} fields of the header: cut short, or a {separator} in a value"
        number, text = damaged[0]
        found.append(("left out", what, len(damaged), number + first - 1, text))
    key = pc.utf8_trim_whitespace(table.column(str(places.get("JobID", places.get("JobIDRaw")))))
    heads = _mask(pc.is_in(pc.utf8_lower(key), pa.array(["jobid", "jobidraw"])))
    if heads.any():
        number = int(line[heads][0])
        _check_repeated_header(name, raw, number, fields, separator)
        found.append(("left out", "lines repeat the header", int(heads.sum()), number, separator.join(fields)))
    is_step = _mask(pc.match_substring(key, "."))
    if is_step.any():
        number = int(line[is_step][0])
        what = "lines of steps (.batch, .extern, .0 …): their job has a line of its own"
        found.append(("left out", what, int(is_step.sum()), number, _line_of(raw, number)))
    keep = ~heads & ~is_step & ~_mask(pc.equal(key, ""))
    kept = table.filter(pa.array(keep))
    unread = tuple(has for has in fields if has and has.casefold() not in {wanted.casefold() for wanted in FIELDS})
    return _File(
        name=name,
        raw=raw,
        columns={name: pc.utf8_trim_whitespace(kept.column(str(k)).combine_chunks()) for name, k in places.items()},
        unread=unread,
        line=line[keep],
        found=tuple(found),
    )


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
    elif line.startswith("{"):
        rule = "this is JSON, as of sacct --json; the import reads sacct --parsable2"
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
