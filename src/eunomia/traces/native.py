"""Eunomia's own trace format: a header, then one job a line, as CSV (gzip or not) or Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DEADLINE, DEMAND, DURATION, RETRIES, SCALE_FACTOR, SUBMITTED, TOTAL_STEPS, WEIGHT
from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Floats
from eunomia.traces.table import Trace, trace_of

REQUIRED = ("job_id", "submitted_s", "scale_factor", "job_type")
OPTIONAL = (
    "total_steps",
    "duration_s",
    "tenant",
    "app",
    "weight",
    "deadline_s",
    "cpus",
    "memory_gib",
    "status",
    "retries",
    "command",
    "checkpoint_dir",
)
STATUSES = {word: word for word in ("", "finished", "failed", "cancelled")}


def read(path: Path) -> Trace:
    """Return the trace in a native file. Raises InvalidInput with everything that is wrong with it."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    trace = _trace(sheet)
    sheet.raise_if_any()
    return trace


def _trace(sheet: InputTable) -> Trace:
    submitted_s = sheet.ordered("submitted_s", SUBMITTED)
    total_steps, duration_s = _work(sheet)
    return trace_of(
        sheet.file,
        sheet.unique("job_id"),
        submitted_s,
        sheet.whole("scale_factor", SCALE_FACTOR),
        job_type=_job_types(sheet),
        total_steps=total_steps,
        duration_s=duration_s,
        tenant=sheet.text("tenant"),
        app=sheet.text("app"),
        weight=sheet.number("weight", WEIGHT),
        deadline_s=_deadlines(sheet, submitted_s),
        cpus=sheet.number("cpus", DEMAND),
        memory_gib=sheet.number("memory_gib", DEMAND),
        status=sheet.renamed("status", STATUSES),
        retries=sheet.whole("retries", RETRIES),
        command=_commands(sheet),
        checkpoint_dir=sheet.text("checkpoint_dir"),
        row=sheet.line,
    )


def _work(sheet: InputTable) -> tuple[Floats, Floats]:
    """Return total steps and duration, of which each job has exactly one."""
    if "total_steps" not in sheet.columns and "duration_s" not in sheet.columns and sheet.columns:
        sheet.note(
            sheet.header_line,
            "total_steps",
            None,
            "this column is missing, and so is duration_s",
            "add one of the two to the header",
        )
        return np.full(len(sheet), np.nan), np.full(len(sheet), np.nan)
    no_steps, no_duration = sheet.empty("total_steps"), sheet.empty("duration_s")
    sheet.refuse(
        "total_steps",
        no_steps & no_duration,
        "may not be empty where duration_s is empty too",
        "give the job total_steps or duration_s",
    )
    sheet.refuse(
        "duration_s",
        ~no_steps & ~no_duration,
        "may not be given together with total_steps",
        "leave one of the two empty",
    )
    return sheet.number("total_steps", TOTAL_STEPS, ~no_steps), sheet.number("duration_s", DURATION, ~no_duration)


def _job_types(sheet: InputTable) -> tuple[str, ...] | None:
    """Return the job types, or None where the whole column is empty: the trace names none."""
    return sheet.filled("job_type") if any(sheet.text("job_type")) else None


def _deadlines(sheet: InputTable, submitted_s: Floats) -> Floats:
    deadline_s = sheet.number("deadline_s", DEADLINE)
    sheet.refuse(
        "deadline_s",
        deadline_s < submitted_s,
        "may not be before the job's submission",
        "count the deadline from the start of the trace, like submitted_s",
    )
    return deadline_s


def _commands(sheet: InputTable) -> tuple[tuple[str, ...], ...]:
    """Return each job's argv, read from a JSON list of strings."""
    texts = sheet.text("command")
    by_text = {text: _argv(text) for text in set(texts)}
    if None in by_text.values():
        wrong = np.array([by_text[text] is None for text in texts])
        sheet.refuse(
            "command",
            wrong,
            "must be a JSON list of strings, the program first",
            """write it like ["python3", "train.py"], or leave it empty""",
        )
    return tuple(by_text[text] or () for text in texts)


def _argv(text: str) -> tuple[str, ...] | None:
    """Return the words of a command, or None if no process could be started with them."""
    if not text:
        return ()
    try:
        words = json.loads(text)
        if not isinstance(words, list) or not words or not words[0]:
            return None
        fit = all(isinstance(word, str) and "\0" not in word and word.encode() is not None for word in words)
        return tuple(words) if fit else None
    except (ValueError, RecursionError):  # not JSON, or half of a surrogate pair
        return None
