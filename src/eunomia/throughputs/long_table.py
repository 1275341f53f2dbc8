"""Reads the long table: one row a measurement, as CSV (gzip or not) or Parquet.

Columns `type, job_type, scale_factor, steps_per_s`; optional `partner_job_type, partner_steps_per_s, placement`. A row
with a partner is the rate beside it. `placement` is empty, "consolidated" or "unconsolidated"; the last is kept as an
accelerator type of its own, "<type>_unconsolidated", as Gavel's table does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eunomia.inputs.problems import Problems
from eunomia.model.nearest import nearest
from eunomia.throughputs.files import read_bytes, text_of
from eunomia.throughputs.measured import Measurements, Pairs, Rates
from eunomia.throughputs.numbers import rate_of, size_of

NEEDED = ("type", "job_type", "scale_factor", "steps_per_s")
OPTIONAL = ("partner_job_type", "partner_steps_per_s", "placement")
SUFFIX_BY_PLACEMENT = {"": "", "consolidated": "", "unconsolidated": "_unconsolidated"}
Row = Mapping[str, object]


def read(path: Path, name: str) -> Measurements:
    """Return the measurements of a file. Raises InvalidInput with everything that is wrong with it."""
    problems = Problems(name)
    contents = read_bytes(path, problems)
    problems.raise_if_any()
    assert contents is not None
    rows = _parquet_rows if path.suffix == ".parquet" else _csv_rows
    found = _Found(problems)
    for line, row in rows(contents, problems):
        found.take(line, row)
    if not found.alone and not problems.count:
        problems.add("the table holds no throughput of a job alone", f"give rows of {', '.join(NEEDED)}")
    problems.raise_if_any()
    return Measurements(name, found.alone, {**found.reverse, **found.pairs})


def _csv_rows(contents: bytes, problems: Problems) -> Iterator[tuple[int, Row]]:
    text = text_of(contents, problems)
    problems.raise_if_any()
    reader = csv.reader(io.StringIO(text or "", newline=""), strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        _check_header(header, problems)
        for values in reader:
            if not values:
                continue
            if len(values) != len(header):
                problems.add(
                    f"a row has as many values as the header, {len(header)}",
                    "quote values that hold a comma",
                    row=reader.line_num,
                    value=",".join(values)[:80],
                )
                continue
            yield reader.line_num, dict(zip(header, map(str.strip, values), strict=True))
    except csv.Error as error:
        problems.add(f"the row is not CSV ({error})", "mend its quotes", row=reader.line_num)


def _parquet_rows(contents: bytes, problems: Problems) -> Iterator[tuple[int, Row]]:
    import pyarrow as pa  # slow to import, seldom needed
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(contents))
    except (pa.ArrowException, OSError) as error:
        problems.add(f"the file is not Parquet ({error})", "give a Parquet file or a CSV")
        problems.raise_if_any()
        return
    _check_header(table.column_names, problems)
    yield from enumerate(table.to_pylist(), start=2)  # as if under a header, like the CSV


def _check_header(header: list[str], problems: Problems) -> None:
    known = (*NEEDED, *OPTIONAL)
    for column in header:
        if column not in known:
            problems.add("this column is not known", nearest(column, known), row=1, column=column)
        elif header.count(column) > 1 and column not in [problem.column for problem in problems.kept]:
            problems.add("a column stands once in the header", "remove one", row=1, column=column)
    for column in NEEDED:
        if column not in header:
            problems.add("this column is missing", f"give the columns {', '.join(NEEDED)}", row=1, column=column)
    problems.raise_if_any()


@dataclass(slots=True)
class _Found:
    """What was found so far, and what was wrong with it."""

    problems: Problems
    alone: Rates = field(default_factory=dict)
    pairs: Pairs = field(default_factory=dict)
    reverse: Pairs = field(default_factory=dict)  # partners' rates; a row of their own goes before

    def take(self, line: int, row: Row) -> None:
        before = self.problems.count
        type_name = self._name(line, row, "type") + self._suffix(line, row)
        job_type = self._name(line, row, "job_type")
        size = size_of(row["scale_factor"], self.problems, column="scale_factor", row=line)
        rate = rate_of(row["steps_per_s"], self.problems, column="steps_per_s", row=line)
        partner, partner_rate = self._partner(line, row)
        if self.problems.count > before or size is None or rate is None:
            return
        alone, beside = (type_name, job_type, size), (type_name, job_type, partner, size)
        if (beside in self.pairs) if partner else (alone in self.alone):
            rule = "this measurement stands in an earlier row"
            self.problems.add(rule, "keep one of the two", row=line, column="job_type", value=job_type)
        elif not partner:
            self.alone[alone] = rate
        else:
            self.pairs[beside] = rate
            if partner_rate is not None:
                self.reverse[type_name, partner, job_type, size] = partner_rate

    def _partner(self, line: int, row: Row) -> tuple[str, float | None]:
        partner, value = str(row.get("partner_job_type") or ""), row.get("partner_steps_per_s")
        if value in (None, ""):
            return partner, None
        column = "partner_steps_per_s"
        if not partner:
            rule = "a partner's rate needs its job type"
            self.problems.add(rule, "give partner_job_type too", row=line, column=column, value=value)
        return partner, rate_of(value, self.problems, column=column, row=line)

    def _name(self, line: int, row: Row, column: str) -> str:
        value = row[column]
        if isinstance(value, str) and value:
            return value
        self.problems.add("a name is needed here", "give one", row=line, column=column, value=repr(value))
        return ""

    def _suffix(self, line: int, row: Row) -> str:
        placement = str(row.get("placement") or "")
        if placement not in SUFFIX_BY_PLACEMENT:
            mend = nearest(placement, filter(None, SUFFIX_BY_PLACEMENT))
            self.problems.add("this placement is not known", mend, row=line, column="placement", value=placement)
        return SUFFIX_BY_PLACEMENT.get(placement, "")
