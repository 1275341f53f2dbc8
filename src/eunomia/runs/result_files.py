"""Writes JSON objects and CSV tables of results, and says in sentences which jobs of a run did not finish."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.model.arrays import Array
from eunomia.model.decisions import Decision, Refuse
from eunomia.model.events import Moment
from eunomia.model.moment_batch import MomentBatch
from eunomia.verdict.completion_text import other_outcomes

_CHUNK_ROWS = 50_000  # in memory as text at a time
_SPECIAL = re.compile(r'[",\r\n]')
SHOWN_REASONS = 3
HINT = "simulate --record, then eunomia explain JOB, says why one waits"


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write one object; an absent value is null, never NaN."""
    path.write_text(json.dumps(dict(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a table; nan is an empty field, numbers have the shortest form that reads back exactly."""
    import pyarrow.compute as pc  # 34 MiB, which a run does without until it is over

    rows = len(next(iter(columns.values()), ()))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)
        for begin in range(0, rows, _CHUNK_ROWS):
            texts = [_texts(column[begin : begin + _CHUNK_ROWS]) for column in columns.values()]
            file.write("\n".join(pc.binary_join_element_wise(*texts, ",").to_pylist()) + "\n")


def _texts(column: Array) -> Any:
    """Return the fields of a column as text, an array of Arrow."""
    import pyarrow as pa

    if column.dtype.kind == "f":
        from eunomia.inputs.number_texts import number_texts

        return number_texts(column)
    values = column.tolist()
    field_by_text = {value: _quoted(value) for value in dict.fromkeys(values)}
    return pa.array([field_by_text[value] for value in values], pa.string())


def _quoted(value: object) -> str:
    """Return a value as a field, quoted if needed."""
    text = repr(value) if isinstance(value, float) else str(value)
    if not _SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


class Refusals:
    """An observer that keeps the reasons of refused jobs."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}  # by job id

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note the reason of every refused job."""
        for decision in decisions:
            if isinstance(decision, Refuse):
                self.why.setdefault(decision.job_id, decision.why)

    def observe_batch(self, batch: MomentBatch) -> None:
        """No job of a batch is refused."""


def completion_sentences(
    summary: Mapping[str, float | int | None], jobs: Mapping[str, Array], why: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the sentences; none when every job finished. `jobs` are the columns of jobs.csv, `why` is by job id."""
    others = other_outcomes(summary.get)
    if not others:
        return ()
    counts = f"{summary['jobs_finished']:,} of {summary['jobs_submitted']:,} jobs finished; {others}"
    return (counts, *_rejected(jobs, why), *_unfinished(jobs))


def _rejected(jobs: Mapping[str, Array], why: Mapping[str, str]) -> Iterator[str]:
    """Yield the commonest reasons of rejected jobs."""
    rejected = jobs["job_id"][jobs["status"] == "rejected"]
    reasons = Counter(why.get(name, "no reason was given") for name in rejected.tolist())
    for reason, times in reasons.most_common(SHOWN_REASONS):
        yield f"rejected: {reason} ({times:,})"
    if len(reasons) > SHOWN_REASONS:
        yield f"rejected: for {len(reasons) - SHOWN_REASONS:,} reasons more"


def _unfinished(jobs: Mapping[str, Array]) -> Iterator[str]:
    """Yield how many unfinished jobs never started, and how many ran for a while."""
    first = jobs["first_started_s"][jobs["status"] == "unfinished"]
    never, begun = int(np.isnan(first).sum()), int((~np.isnan(first)).sum())
    if never or begun:
        yield f"unfinished when the run ended: {never:,} never started, {begun:,} had run for a while; {HINT}"
