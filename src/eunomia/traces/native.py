"""Eunomia's own trace format: a header, then one job a line, as CSV (gzip or not) or Parquet."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from shlex import quote

import numpy as np

from eunomia.inputs.field_rules import (
    DEADLINE,
    DEMAND,
    DURATION,
    ELIGIBLE,
    ENDED,
    RETRIES,
    SCALE_FACTOR,
    STARTED,
    SUBMITTED,
    TOTAL_STEPS,
    WEIGHT,
)
from eunomia.inputs.json_text import parse_json
from eunomia.inputs.open_table import read_metadata, read_table
from eunomia.inputs.problems import refused
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("job_id", "submitted_s", "scale_factor")
OPTIONAL = (
    "job_type", "total_steps", "duration_s", "tenant", "app", "weight", "deadline_s", "cpus", "memory_gib", "status",
    "retries", "command", "checkpoint_dir", "interruptible", "ran_on", "started_s", "ended_s", "pauses", "eligible_s",
)  # fmt: skip
BEGAN = "eunomia.began"  # metadata of a Parquet file: the local date and time at 0 s
OF_ANOTHER = 2  # columns with names of other systems
INTERRUPTIBLE = {
    "": "true",
    **dict.fromkeys(("true", "True", "yes", "1"), "true"),
    **dict.fromkeys(("false", "False", "no", "0"), "false"),
}
OURS = ("", "finished", "failed", "cancelled")
STATUSES = {
    **{word: word for word in OURS},
    **dict.fromkeys(("completed", "complete", "pass", "passed", "success", "succeeded", "done", "ok"), "finished"),
    **dict.fromkeys(("fail", "error", "timeout", "node_fail", "out_of_memory"), "failed"),
    **dict.fromkeys(("canceled", "killed", "revoked"), "cancelled"),
}


def read(path: Path, *, began: str = "") -> Trace:
    """Return the trace in a native file; `began` is the local date and time at 0 s, "" for the one in a Parquet file.

    Raises InvalidInput with everything that is wrong with the file.
    """
    date = _read_date(path, began)
    sheet = read_table(path)
    if date is None and path.suffix == ".parquet":
        date = _read_date(path, read_metadata(path, BEGAN))
    sheet.expect(REQUIRED, OPTIONAL)
    if len(sheet.renamings((*REQUIRED, *OPTIONAL))) >= OF_ANOTHER:
        fix = f"read it as it is with: eunomia import csv {quote(str(path))} --out ours"
        sheet.note(None, None, None, "this is a table with the columns of another system", fix)
    submitted_s = sheet.ordered("submitted_s", SUBMITTED)
    total_steps, duration_s = _read_work(sheet)
    started_s = _read_starts(sheet, submitted_s)
    ended_s = _read_ends(sheet, started_s)
    return build_trace(
        sheet,
        sheet.unique("job_id"),
        submitted_s,
        sheet.whole("scale_factor", SCALE_FACTOR),
        job_type=sheet.filled("job_type") if any(sheet.text("job_type")) else None,
        total_steps=total_steps,
        duration_s=duration_s,
        tenant=sheet.text("tenant"),
        app=sheet.text("app"),
        weight=sheet.number("weight", WEIGHT),
        deadline_s=sheet.deadline("deadline_s", DEADLINE, submitted_s),
        cpus=sheet.number("cpus", DEMAND),
        memory_gib=sheet.number("memory_gib", DEMAND),
        status=sheet.renamed("status", {word: STATUSES[word.lower()] for word in _known_words(sheet)}, OURS),
        retries=sheet.whole("retries", RETRIES),
        command=_read_commands(sheet),
        checkpoint_dir=sheet.text("checkpoint_dir"),
        interruptible=_read_interruptible(sheet),
        ran_on=sheet.text("ran_on"),
        started_s=started_s,
        ended_s=ended_s,
        pauses=_read_pauses(sheet, started_s, ended_s),
        eligible_s=_read_eligibility(sheet, submitted_s, started_s),
        notes=_note_on_words(sheet),
        began=date,
    )


def _read_interruptible(sheet: InputTable) -> Bools:
    """Return whether each job can be preempted, (row,); where the cell is empty it can."""
    said = sheet.renamed("interruptible", INTERRUPTIBLE, ("true", "false"))
    return np.array([word != "false" for word in said], dtype=np.bool_) if "false" in said else np.ones(len(said), bool)


def _read_date(path: Path, began: object) -> datetime | None:
    """Return the date of 0 s without its zone. Raises InvalidInput for what is none."""
    if began == "":
        return None
    try:
        return datetime.fromisoformat(str(began)).replace(tzinfo=None)
    except ValueError as error:
        rule = "must be a date and time"
        raise refused(str(path), "began", str(began), rule, 'write it like "2024-01-31 10:00:00"') from error


def _known_words(sheet: InputTable) -> list[str]:
    """Return the words of the status column that have a meaning here, whatever their case."""
    return [word for word in dict.fromkeys(("", *sheet.text("status"))) if word.lower() in STATUSES]


def _note_on_words(sheet: InputTable) -> tuple[str, ...]:
    """Return a note on the status words of other systems, with their counts."""
    count = Counter(word for word in sheet.text("status") if word not in OURS and word.lower() in STATUSES)
    read = ", ".join(f"{word} as {STATUSES[word.lower()]} ({jobs:,} jobs)" for word, jobs in count.items())
    return (f"Of the column status, {read} was read.",) if read else ()


def _read_starts(sheet: InputTable, submitted_s: Floats) -> Floats:
    """Return the starts in the schedule as it was, (row,); nan where the cell is empty."""
    known = ~sheet.empty("started_s")
    started_s = np.where(known, sheet.number("started_s", STARTED, known), np.nan)
    early = known & (started_s < submitted_s)
    sheet.refuse("started_s", early, "is before submitted_s", "correct one of the two, or leave it empty")
    return started_s


def _read_ends(sheet: InputTable, started_s: Floats) -> Floats:
    """Return the ends in the schedule as it was, (row,); nan where the cell is empty."""
    known = ~sheet.empty("ended_s")
    ended_s = np.where(known, sheet.number("ended_s", ENDED, known), np.nan)
    fix = "give both, the end after the start, or leave it empty"
    sheet.refuse("ended_s", known & ~(ended_s > started_s), "is not after started_s", fix)
    return ended_s


def _read_pauses(sheet: InputTable, started_s: Floats, ended_s: Floats) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the times in which jobs held nothing between start and end, (row,), read from JSON lists of pairs."""
    texts = sheet.text("pauses")
    if not any(texts):
        return ((),) * len(sheet)
    pauses = [_parse_spans(text) for text in texts]
    lasted_s = (ended_s - started_s).tolist()
    wrong = [
        spans is None or (bool(spans) and not spans[-1][1] < lasted)
        for spans, lasted in zip(pauses, lasted_s, strict=True)
    ]
    rule = "must be a JSON list of pairs of seconds from the start, in order, before the end in ended_s"
    sheet.refuse("pauses", np.array(wrong, dtype=np.bool_), rule, "write it like [[1800, 3600]], or leave it empty")
    return tuple(spans or () for spans in pauses)


def _parse_spans(text: str) -> tuple[tuple[float, float], ...] | None:
    """Return the pairs of seconds in a JSON list; None if they are no spans in order, or begin at 0."""
    if not text:
        return ()
    try:
        spans = tuple((float(begin), float(end)) for begin, end in parse_json(text))
    except (TypeError, ValueError):
        return None
    bounds = [0.0, *(bound for span in spans for bound in span)]
    return spans if all(a < b < np.inf for a, b in pairwise(bounds)) else None


def _read_eligibility(sheet: InputTable, submitted_s: Floats, started_s: Floats) -> Floats:
    """Return when jobs could start at the earliest, (row,); nan where the cell is empty."""
    known = ~sheet.empty("eligible_s")
    eligible_s = np.where(known, sheet.number("eligible_s", ELIGIBLE, known), np.nan)
    fix = "correct one of the two, or leave it empty"
    sheet.refuse("eligible_s", eligible_s < submitted_s, "is before submitted_s", fix)
    sheet.refuse("eligible_s", eligible_s > started_s, "is after started_s", fix)
    return eligible_s


def _read_work(sheet: InputTable) -> tuple[Floats, Floats]:
    """Return total steps and durations, (row,) each; every job has exactly one of them, the other is nan."""
    works = {"total_steps", "duration_s"}
    if not works & {*sheet.columns, *sheet.renamings(tuple(works)).values()} and sheet.columns:
        rule, fix = "this column is missing, and so is duration_s", "add one of the two to the header"
        sheet.note(sheet.header_line, "total_steps", None, rule, fix)
    if not works & sheet.columns.keys():
        return np.full(len(sheet), np.nan), np.full(len(sheet), np.nan)
    no_steps, no_duration = sheet.empty("total_steps"), sheet.empty("duration_s")
    rule, fix = "may not be empty where duration_s is empty too", "give the job total_steps or duration_s"
    sheet.refuse("total_steps", no_steps & no_duration, rule, fix)
    rule, fix = "may not be given together with total_steps", "leave one of the two empty"
    sheet.refuse("duration_s", ~no_steps & ~no_duration, rule, fix)
    return sheet.number("total_steps", TOTAL_STEPS, ~no_steps), sheet.number("duration_s", DURATION, ~no_duration)


def _read_commands(sheet: InputTable) -> tuple[tuple[str, ...], ...]:
    """Return each job's argv, read from a JSON list of strings."""
    texts = sheet.text("command")
    argv_by_text = {text: _parse_argv(text) for text in set(texts)}
    if None in argv_by_text.values():
        wrong = np.array([argv_by_text[text] is None for text in texts])
        fix = """write it like ["python3", "train.py"], or leave it empty"""
        sheet.refuse("command", wrong, "must be a JSON list of strings, the program first", fix)
    argv = {text: words or () for text, words in argv_by_text.items()}
    return tuple(map(argv.__getitem__, texts))


def _parse_argv(text: str) -> tuple[str, ...] | None:
    """Return the arguments of a command, or None if no process could be started with them."""
    if not text:
        return ()
    try:
        words = parse_json(text)
        if not isinstance(words, list) or not words or not words[0]:
            return None
        fit = all(isinstance(word, str) and "\0" not in word and word.encode() is not None for word in words)
        return tuple(words) if fit else None
    except ValueError:  # not JSON, or half of a surrogate pair
        return None
