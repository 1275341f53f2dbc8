"""The columns of a file as text, the line of each row, and everything found wrong with them.

A reader asks for its columns under a rule, gets values where they are good, and calls `raise_if_any` before it
uses them: so one run shows all problems of a file, in the order of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import isfinite

import numpy as np

from eunomia.inputs.columns import Cells, blanks, numbers, spelled
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.problems import SHOWN, Problem, Problems
from eunomia.inputs.timestamps import date_at
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.spelling_suggestions import nearest

MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?", re.ASCII)
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and half of a surrogate pair
_CONTROL = re.compile("[\x01-\x1f\x7f-\x9f]")
LONGEST = 80  # characters of a wrong value that a message repeats

USUAL_NAMES = {  # columns of other systems, in lower case → ours
    **dict.fromkeys(("jobid", "job", "id", "job_name", "jobname", "id_job"), "job_id"),
    **dict.fromkeys(
        ("num_gpus", "gpus", "gpu_num", "num_gpu", "n_gpus", "ngpus", "gpu", "gpu_count", "accelerators",
         "num_accelerators", "total_gpus", "gpus_requested", "req_gpus", "alloc_gpus"),
        "scale_factor",
    ),
    **dict.fromkeys(
        ("submit_time", "submitted", "submission_time", "arrival_time", "arrival", "submit", "submit_s", "submitted_at",
         "time_submit", "created_at", "creation_time", "create_time", "queued_at"),
        "submitted_s",
    ),
    **dict.fromkeys(
        ("runtime", "run_time", "duration", "elapsed", "duration_seconds", "elapsed_raw", "run_time_s", "runtime_s",
         "elapsed_s", "service_s"),
        "duration_s",
    ),
    **dict.fromkeys(
        ("user", "group", "account", "vc", "project", "team", "queue", "partition", "user_id", "id_user", "user_name",
         "username", "userid", "owner", "organization", "organisation", "org", "department", "namespace",
         "virtual_cluster"),
        "tenant",
    ),
    **dict.fromkeys(("model", "workload", "model_name"), "job_type"),
    **dict.fromkeys(("start_time", "started", "start", "started_at", "time_start", "begin_time"), "started_s"),
    **dict.fromkeys(
        ("end_time", "ended", "end", "finished", "finish_time", "finished_at", "ended_at", "time_end",
         "completion_time", "completed_at", "stop_time"),
        "ended_s",
    ),
    **dict.fromkeys(("gpu_type", "gpu_model", "device_type", "accelerator", "accelerator_type", "gpu_name"), "ran_on"),
    **dict.fromkeys(("state", "exit_status", "job_state", "job_status"), "status"),
    **dict.fromkeys(("deadline",), "deadline_s"),
    **dict.fromkeys(("priority",), "weight"),
    **dict.fromkeys(("steps", "iterations", "num_steps"), "total_steps"),
}  # fmt: skip


def squeezed(name: str) -> str:
    """Return a name without what spellings differ in: `Num GPUs`, `num_gpus` and `NumGPUs` are one."""
    return re.sub(r"[\s_-]", "", name.lower())


_USUAL = {
    **{squeezed(name): name for name in {*USUAL_NAMES.values(), "app", "retries", "command"}},
    **{squeezed(name): ours for name, ours in USUAL_NAMES.items()},
}


def usual_name(name: str) -> str:
    """Return our name of a column that other systems name so, however it is spelled; "" for none."""
    return _USUAL.get(squeezed(name), "")


@dataclass(kw_only=True)
class InputTable:
    """A table of text. Every column has one entry per row."""

    file: str
    header_line: int
    line: Ints  # line of the file at which each row starts
    columns: dict[str, Cells]
    found: list[Problem] = field(default_factory=list)  # at most SHOWN per check
    count: int = 0
    asked: set[str] = field(default_factory=set)  # columns that a reader has looked at
    searched: set[str] = field(default_factory=set)  # columns whose text was searched for what no text may have

    def __len__(self) -> int:
        return len(self.line)

    @cached_property
    def _nothing(self) -> tuple[str, ...]:
        """A column of empty cells, which all columns that the file lacks share."""
        return ("",) * len(self)

    def expect(
        self, required: Sequence[str], optional: Sequence[str] | None, rule: str = "a trace must hold at least one job"
    ) -> None:
        """Note each column that is missing, and each that no reader would look at (None: a reader would look at any).

        `rule` is what a file without rows breaks.
        """
        if not self.columns or not (len(self) or self.count):
            self.note(None, None, None, rule, "add the rows, or name another file")
        if not self.columns:
            return
        known = [*required, *(optional or ())]
        strange = [] if optional is None else [name for name in self.columns if name not in known]
        ours = self.renamings(known)
        for name in strange[:SHOWN]:
            fix = f"rename it to {ours[name]}" if name in ours else nearest(name[:LONGEST], known)
            self.note(self.header_line, name, None, "this column is not known", fix)
        self.count += max(0, len(strange) - SHOWN)
        for name in required:
            if name not in self.columns and name not in ours.values():
                self.note(
                    self.header_line,
                    name,
                    None,
                    "this column is missing",
                    f"add it to the header; the columns here are {', '.join(map(_shown, self.columns))}",
                )

    def renamings(self, known: Sequence[str]) -> dict[str, str]:
        """Return the columns that other systems name so, with the names that they would have here; each name once."""
        ours: dict[str, str] = {}
        for name in self.columns:
            usual = "" if name in known else usual_name(name)
            if usual in known and usual not in self.columns and usual not in ours.values():
                ours[name] = usual
        return ours

    def stripped(self) -> InputTable:
        """Return the table without white space around names of columns and cells."""
        columns = {name.strip(): tuple(cell.strip() for cell in spelled(cells)) for name, cells in self.columns.items()}
        return replace(self, columns=columns)

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as written; empty text where the file lacks the column."""
        self.asked.add(name)
        if name not in self.searched:
            self.searched.add(name)
            self._refuse_signs(name, _UNUSABLE, "has a NUL character, or half of a surrogate pair")
        return self._spelled(name)

    def _spelled(self, name: str) -> tuple[str, ...]:
        if name not in self.columns:
            return self._nothing
        self.columns[name] = found = spelled(self.columns[name])
        return found

    def _refuse_signs(self, name: str, signs: re.Pattern[str], rule: str) -> None:
        values = self._spelled(name)
        if signs.search("".join(values)):
            self.refuse(name, np.array([bool(signs.search(value)) for value in values]), rule, "leave it out")

    def unread(self, *only_seen: str, instead: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Return the columns that no reader has looked at so far, and those of `only_seen`: checked, counted, no more.

        `instead` says, by column, which option would make something of it.
        """
        names = [name for name in self.columns if name not in self.asked or name in only_seen]
        hints = instead or {}
        return tuple(f"{name} (with --option {hints[name]})" if name in hints else name for name in names)

    def filled(self, name: str, fix: str = "give every job one") -> tuple[str, ...]:
        """Return a column of text in which no cell may be empty."""
        values = self.text(name)
        if name in self.columns and not all(values):
            self.refuse(name, self.empty(name), "may not be empty", fix)
        return values

    def unique(self, name: str, fix: str = "give each job its own") -> tuple[str, ...]:
        """Return a column of ids: none may be empty, repeat an earlier one, or have a control character."""
        self.filled(name)
        self._refuse_signs(name, _CONTROL, "is no id: it has a control character")
        return self.distinct(name, fix)

    def distinct(self, name: str, fix: str = "give each job its own") -> tuple[str, ...]:
        """Return a column of text in which no cell may repeat an earlier one, unless empty."""
        values = self.text(name)
        if name in self.columns and len(set(values)) < len(values):
            first = {value: m for m, value in reversed(list(enumerate(values)))}
            again = np.array([bool(v) and first[v] != m for m, v in enumerate(values)])
            self.refuse(
                name,
                again,
                lambda m: f"must be unique, but row {self.line[first[values[m]]]} has it too",
                fix,
            )
        return values

    def empty(self, name: str) -> Bools:
        """Return (row,): True where the cell holds nothing, or the file lacks the column."""
        self.asked.add(name)
        return blanks(self.columns[name]) if name in self.columns else np.ones(len(self), dtype=np.bool_)

    def number(self, name: str, rule: Rule, where: Bools | None = None) -> Floats:
        """Return a column of numbers under `rule`, which is asked of the rows in `where` (default: all).

        An empty cell has the value that the rule gives it. Where the rule is broken the value is nan, so that no
        later check speaks of the same cell again.
        """
        if name not in self.columns:
            return np.full(len(self), np.nan if rule.empty is None else rule.empty)
        blank, values = self.empty(name), numbers(self.columns[name])
        asked = ~blank if rule.empty is not None else np.ones(len(self), dtype=np.bool_)
        asked &= True if where is None else where
        broken = rule.broken_by(values)
        self.refuse(name, asked & broken, f"must be {rule.what}", rule.fix)
        values[broken] = np.nan
        values[blank] = np.nan if rule.empty is None else rule.empty
        return values + 0.0  # turns -0 into 0

    def deadline(self, name: str, rule: Rule, submitted_s: Floats) -> Floats:
        """Return a column of deadlines under `rule`, none of them before its job's submission."""
        deadline_s = self.number(name, rule)
        self.refuse(
            name,
            deadline_s < submitted_s,
            "may not be before the job's submission",
            "count the deadline from the start of the trace, like the submission",
        )
        return deadline_s

    def moment(self, name: str) -> Floats:
        """Return a column of local dates and times as seconds since 1970, all as if in one zone; nan where wrong."""
        values = self.text(name)
        fits = np.array([bool(MOMENT.fullmatch(value)) for value in values], dtype=np.bool_)
        at = np.full(len(values), np.nan)
        try:
            at[fits] = np.array([values[m] for m in np.flatnonzero(fits).tolist()], "datetime64[s]").astype(np.float64)
        except ValueError:  # a month 13, or an hour 25: look at each
            fits = np.array([fit and _is_moment(value) for fit, value in zip(fits, values, strict=True)])
            at[fits] = np.array([values[m] for m in np.flatnonzero(fits).tolist()], "datetime64[s]").astype(np.float64)
        if name in self.columns:
            self.refuse(name, ~fits, "must be a date and time", "write it like 2017-10-03 00:00:00")
        return at

    def beginning(self, moments: str, seconds: str) -> datetime | None:
        """Return the date at which the column `seconds` is 0, where the first row says both; dates are not checked."""
        try:
            said, elapsed = datetime.fromisoformat(self.text(moments)[0]), float(self.text(seconds)[0])
        except (IndexError, ValueError):
            return None
        return date_at(-elapsed, said.replace(tzinfo=None)) if isfinite(elapsed) else None

    def whole(self, name: str, rule: Rule) -> Ints:
        """Return a column of whole numbers under `rule`, which must bound them; 0 where it is broken."""
        values = self.number(name, rule)
        return np.nan_to_num(values).astype(np.int64)

    def ordered(self, name: str, rule: Rule) -> Floats:
        """Return a column of times under `rule`, which may repeat but not go back."""
        times = self.number(name, rule)
        back = np.zeros(len(self), dtype=np.bool_)
        back[1:] = times[1:] < times[:-1]
        self.refuse(
            name, back, lambda m: f"may not be before the row above ({times[m - 1]:.15g})", f"sort the rows by {name}"
        )
        return times

    def renamed(
        self, name: str, ours_by_theirs: Mapping[str, str], listed: Sequence[str] | None = None
    ) -> tuple[str, ...]:
        """Return a column of words in our spelling; each word that is not a key is noted once, and read as empty.

        `listed` are the words that a message names, without it all keys.
        """
        words = self.text(name)
        if name in self.columns and not set(words) <= ours_by_theirs.keys():
            first: dict[str, int] = {}
            for m, word in enumerate(words):
                if word not in ours_by_theirs:
                    first.setdefault(word, m)
            rule = f"must be one of {', '.join(filter(None, listed or ours_by_theirs))}"
            fix = "leave it empty if it is not known" if "" in ours_by_theirs else "correct it or drop the row"
            for word, m in list(first.items())[:SHOWN]:
                rows = words.count(word)
                self.note(int(self.line[m]), name, word, f"{rule} ({rows:,} rows have this)" if rows > 1 else rule, fix)
            self.count += max(0, len(first) - SHOWN)
        ours = {word: ours_by_theirs.get(word, "") for word in set(words)}
        return tuple(map(ours.__getitem__, words))

    def refuse(self, name: str, wrong: Bools, rule: str | Callable[[int], str], fix: str) -> None:
        """Note a problem with column `name` in each row where `wrong`; `rule` may depend on the row."""
        rows = np.flatnonzero(wrong)
        values = self._spelled(name) if len(rows) else ()
        for m in rows[:SHOWN].tolist():
            self.note(int(self.line[m]), name, values[m], rule if isinstance(rule, str) else rule(m), fix)
        self.count += max(0, len(rows) - SHOWN)

    def note(self, row: int | None, column: str | None, value: str | None, rule: str, fix: str) -> None:
        """Note one problem at one place."""
        self.count += 1
        self.found.append(
            Problem(
                file=self.file,
                row=row,
                column=None if column is None else _shown(column),
                value=None if value is None else _shown(value),
                rule=rule,
                fix=fix,
            )
        )

    def raise_if_any(self) -> None:
        """Raise InvalidInput with all that was found, the first rows first."""
        first = sorted(self.found, key=lambda problem: problem.row or 0)
        Problems(self.file, self.count, first[:SHOWN]).raise_if_any()


def _is_moment(text: str) -> bool:
    try:
        np.datetime64(text, "s")
    except ValueError:
        return False
    return True


def _shown(value: str) -> str:
    return value if len(value) <= LONGEST else value[:LONGEST] + "…"
