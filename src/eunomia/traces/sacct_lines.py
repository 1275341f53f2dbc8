"""The lines of `sacct --parsable2`, or the jobs of `sacct --json`, as columns of text.

Those of steps are left out; lines that are damaged are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.file_contents import contents
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Floats, Ints
from eunomia.traces.import_findings import ImportFinding, ImportFindings, RowSource
from eunomia.traces.sacct_file import COMMAND, SacctFile, as_mask, read_file
from eunomia.traces.sacct_json import is_json, read_json_file
from eunomia.traces.slurm_fields import read_numbers


@dataclass(kw_only=True, eq=False)
class SacctLines(RowSource):
    """The lines of jobs in one or several files, (line,) each."""

    files: tuple[str, ...]
    raw: tuple[bytes, ...]  # b"" of JSON
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
        if not self.raw[place]:
            cells = ((name, column[m].as_py()) for name, column in self.columns.items())
            return self.files[place], line, "|".join(f"{name}={cell}" for name, cell in cells if cell)
        if place not in self._ends:
            self._ends[place] = np.flatnonzero(np.frombuffer(self.raw[place], dtype=np.uint8) == ord("\n"))
        ends = self._ends[place]
        begin = 0 if line == 1 else int(ends[line - 2]) + 1
        end = int(ends[line - 1]) if line <= len(ends) else len(self.raw[place])
        return self.files[place], line, self.raw[place][begin:end].decode(errors="replace").rstrip("\r")


def read_lines(paths: Sequence[Path]) -> SacctLines:
    """Return the lines of jobs. Raises InvalidInput for a file that is not of sacct or that lacks fields."""
    files = [_read(contents(path), str(path)) for path in paths]
    if len({not one.raw for one in files}) > 1:
        rule = "some of the files are of sacct --json, and others of --parsable2, whose times are local"
        raise refused(str(paths[0]), None, None, rule, "give files of one form")
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


def _read(raw: bytes, name: str) -> SacctFile:
    return read_json_file(raw, name) if is_json(raw) else read_file(raw, name)


def _column(one: SacctFile, name: str) -> pa.Array:
    """Return a field of a file; empty text where it lacks the field."""
    return one.columns[name] if name in one.columns else pa.array([""] * len(one.line), pa.string())


def _leave_out_waiting(lines: SacctLines, findings: ImportFindings) -> None:
    """Leave out array tasks that wait as one line."""
    job_id = lines.first_of("JobID", "JobIDRaw")
    waits = as_mask(pc.match_substring(job_id, "["))
    components = as_mask(pc.match_substring(job_id, "+"))
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
