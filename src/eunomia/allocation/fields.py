"""Fields of numbers and of names: what each may hold, and how a list or an array becomes one that is checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.problems import SHOWN, Problems
from eunomia.model.arrays import Array, Bools, Floats

Place: TypeAlias = tuple[int, ...]
MOST = 2**31  # of accelerators in a gang
RATES = ("throughput", "throughput_apart")
UNKNOWN_FIX = (
    "give steps/s of the whole gang: 0 if it cannot run there, an estimate (`eunomia calibrate --help`) if it was not "
    "measured"
)


@dataclass(frozen=True, slots=True)
class AxisNames:
    """What the places of an axis are called in a message: a job by its row, a type by its name."""

    jobs: int
    types: tuple[str, ...]

    def size(self, axis: str) -> int:
        """Return how many places an axis has."""
        return self.jobs if axis == "job" else len(self.types)

    def place(self, field: str, axes: Sequence[str], at: Place) -> tuple[int | None, str]:
        """Return the row, counted from 1, and the column of a place."""
        row = at[0] + 1 if axes[0] == "job" and at else None
        if len(at) == len(axes) and axes[-1] == "type":
            return row, f"{field}.{self.types[at[-1]]}"
        return row, field


AXES: dict[str, tuple[str, ...]] = {
    "capacity": ("type",),
    "throughput": ("job", "type"),
    "scale_factor": ("job",),
    "weight": ("job",),
    "steps_remaining": ("job",),
    "elapsed_s": ("job",),
    "isolated_throughput": ("job",),
    "isolated_time_s": ("job",),
    "attained_service": ("job",),
    "submitted_s": ("job",),
    "deadline_s": ("job",),
    "price": ("type",),
    "throughput_apart": ("job", "type"),
    "throughput_estimated": ("job", "type"),
    "accelerators_per_node": ("type",),
}
_AT_LEAST_0 = Rule(what="a finite number, at least 0", least=0.0, fix="")
_ABOVE_0 = Rule(what="a finite number above 0", above=0.0, fix="")
_SECONDS = Rule(what="a number of seconds, at least 0 and at most 1e12", least=0.0, most=MOST_S, fix="")
_GANG = Rule(what="a whole number, at least 1", least=1, most=MOST, whole=True, fix="")
RULES: dict[str, Rule] = {
    "capacity": Rule(
        what=f"a number, at least 0 and at most {MOST:,}",
        least=0.0,
        most=MOST,
        fix="give the accelerators of this type",
    ),
    "throughput": replace(_AT_LEAST_0, fix="give steps/s of the whole gang; 0 = it cannot run there", empty=math.nan),
    "scale_factor": replace(_GANG, fix="give the accelerators that the gang holds"),
    "weight": replace(_ABOVE_0, fix="give 1 to a job like any other"),
    "steps_remaining": replace(_AT_LEAST_0, fix="give the steps still to do"),
    "elapsed_s": replace(_SECONDS, fix="give the seconds since the job was submitted"),
    "isolated_throughput": replace(_ABOVE_0, fix="give steps/s on an equal part, or leave the field out"),
    "isolated_time_s": replace(_SECONDS, fix="give the seconds that isolation would have taken so far"),
    "attained_service": replace(_AT_LEAST_0, fix="give the accelerator-seconds received so far"),
    "submitted_s": Rule(
        what="a number of seconds from -1e12 to 1e12",
        least=-MOST_S,
        most=MOST_S,
        fix="give seconds on a clock of your own",
    ),
    "deadline_s": Rule(
        what="a number of seconds from now, above 0 and at most 1e12",
        above=0.0,
        most=MOST_S,
        endless=True,
        empty=math.inf,
        fix="give null to a job without a deadline",
    ),
    "price": replace(_AT_LEAST_0, fix="give US$ per accelerator-hour"),
    "throughput_apart": replace(_AT_LEAST_0, fix="give steps/s when spread over machines; 0 = cannot", empty=math.nan),
    "throughput_estimated": Rule(what="0 or 1", least=0, most=1, whole=True, fix="give 1 where it is an estimate"),
    "accelerators_per_node": replace(_GANG, fix="give the accelerators of one machine"),
}


def read_numbers(field: str, raw: object, names: AxisNames, problems: Problems) -> Floats | None:
    """Return the field as an array over its axes; None after noting what is wrong with it."""
    axes, rule, before, kept = AXES[field], RULES[field], problems.count, len(problems.kept)
    found = _as_array(field, raw, axes, names, problems, rule)
    if found is None:
        return None
    broken, unknown = rule.broken_by(found), np.isnan(found) & (field in RATES)
    if not broken.any():
        return found if problems.count == before else None
    for at in first_of(np.argwhere(broken & ~unknown), problems):
        row, column = names.place(field, axes, tuple(at))
        problems.add(f"must be {rule.what}", rule.fix, row=row, column=column, value=found[tuple(at)])
    if unknown.any():
        _note_unknown(field, unknown, names, problems)
    problems.kept[kept:] = sorted(problems.kept[kept:], key=lambda each: (each.row or 0, each.column or ""))
    return None


def _note_unknown(field: str, unknown: Bools, names: AxisNames, problems: Problems) -> None:
    """Note the throughputs that are not known, (job, type), one problem for each type."""
    for j in np.flatnonzero(unknown.any(axis=0)).tolist():
        rows = np.flatnonzero(unknown[:, j]).tolist()
        listed = ", ".join(str(m + 1) for m in rows[:SHOWN]) + (" …" if len(rows) > SHOWN else "")
        which = f"for {len(rows):,} of {len(unknown):,} jobs (rows {listed})" if len(rows) > 1 else "here"
        row, column = names.place(field, AXES[field], (rows[0], j))
        problems.add(f"is not known {which}, and not known is not 0", UNKNOWN_FIX, row=row, column=column, value="null")


def first_of(bad: Array, problems: Problems) -> list[Any]:
    """Return the first of these places, to be noted one by one; the others are counted here."""
    problems.count += max(len(bad) - SHOWN, 0)
    listed: list[Any] = bad[:SHOWN].tolist()
    return listed


def _as_array(
    field: str, raw: object, axes: Sequence[str], names: AxisNames, problems: Problems, rule: Rule
) -> Floats | None:
    """Return numbers of the right shape, whatever their values; None after noting what is wrong with the shape.

    What is no number is noted too, and stands as a 1 in the array.
    """
    before = problems.count
    shape = tuple(names.size(axis) for axis in axes)
    if isinstance(raw, np.ndarray):
        _check_array(field, raw, axes, shape, problems)
        return np.asarray(raw, dtype=np.float64) if problems.count == before else None
    _check_lists(field, raw, axes, names, (), problems)
    if problems.count > before:
        return None
    cells = _numbers_only(field, raw, axes, names, (), problems, rule)
    try:
        return np.array(cells, dtype=np.float64).reshape(shape)
    except OverflowError:
        return np.array(_rounded(cells), dtype=np.float64).reshape(shape)


def _check_array(field: str, raw: Array, axes: Sequence[str], shape: Place, problems: Problems) -> None:
    if raw.dtype.kind not in "iuf":
        problems.add(f"must hold numbers, not {raw.dtype}", "save it as float64", column=field)
    elif raw.shape != shape:
        rule = f"has the shape {raw.shape}, but must be ({' × '.join(axes)}) = {shape}"
        problems.add(rule, "give one number for each", column=field)


def _check_lists(field: str, raw: object, axes: Sequence[str], names: AxisNames, at: Place, problems: Problems) -> None:
    """Note where nested lists have another shape."""
    depth = len(at)
    row, column = names.place(field, axes, at)
    if not isinstance(raw, list | tuple):
        said = "a list" if depth == len(axes) - 1 else "a list of lists"
        rule = f"must be {said} of numbers, one for each {axes[depth]}"
        problems.add(rule, "see docs/solve.md", row=row, column=column, value=short(raw))
    elif len(raw) != names.size(axes[depth]):
        rule = f"has {len(raw)} entries, but there are {names.size(axes[depth])} {axes[depth]}s"
        problems.add(rule, f"give one number for each {axes[depth]}", row=row, column=column)
    elif depth < len(axes) - 1:
        for i, part in enumerate(raw):
            _check_lists(field, part, axes, names, (*at, i), problems)


def _numbers_only(
    field: str, raw: Any, axes: Sequence[str], names: AxisNames, at: Place, problems: Problems, rule: Rule
) -> Any:
    """Return nested lists with what a null stands for, and 1 in place of what is no number, which is noted."""
    if len(at) < len(axes) - 1:
        return [_numbers_only(field, part, axes, names, (*at, i), problems, rule) for i, part in enumerate(raw)]
    if all(is_number(kind) for kind in set(map(type, raw))):
        return raw
    cells = [rule.empty if value is None else value for value in raw]
    for i, value in enumerate(cells):
        if not is_number(type(value)):
            row, column = names.place(field, axes, (*at, i))
            problems.add(f"must be {rule.what}", rule.fix, row=row, column=column, value=short(value))
            cells[i] = 1.0
    return cells


def is_number(kind: type) -> bool:
    return issubclass(kind, int | float | np.integer | np.floating) and kind is not bool


def _rounded(raw: Any) -> Any:
    """Return nested lists of numbers with inf for a whole number that no float can hold."""
    if isinstance(raw, list | tuple):
        return [_rounded(part) for part in raw]
    if isinstance(raw, int) and raw.bit_length() > 1023:
        return math.inf if raw > 0 else -math.inf
    return raw


def short(value: object) -> str:
    """Return a value as it stands in a message."""
    text = "null" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def read_texts(field: str, raw: object, size: int | None, problems: Problems, *, unique: bool = False) -> Array | None:
    """Return names as an array of texts, (size,); None after noting what is wrong. A size of None is any above 0."""
    before = problems.count
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind != "U" or raw.ndim != 1:
            problems.add(f"must be a list of texts, not {raw.dtype} of shape {raw.shape}", "save texts", column=field)
            return None
        cells = raw.tolist()
    elif isinstance(raw, list | tuple):
        cells = list(raw)
    else:
        problems.add("must be a list of texts", "write each name in quotes", column=field, value=short(raw))
        return None
    if len(cells) != size if size is not None else not cells:
        wanted = "at least one is needed" if size is None else f"there are {size}"
        problems.add(f"has {len(cells)} names, but {wanted}", "give one name for each", column=field)
    if set(map(type, cells)) - {str} or "" in cells:
        for i, cell in enumerate(cells):
            if not isinstance(cell, str) or not cell:
                problems.add("must be a text", "write a name in quotes", row=i + 1, column=field, value=short(cell))
    elif unique and len(set(cells)) < len(cells):
        _note_repeats(field, cells, problems)
    return np.array(cells) if problems.count == before else None


def _note_repeats(field: str, cells: list[str], problems: Problems) -> None:
    repeated = {name for name, n in Counter(cells).items() if n > 1}
    seen: set[str] = set()
    for i, cell in enumerate(cells):
        if cell in repeated and cell in seen:
            problems.add("a name stands once", "give it another name", row=i + 1, column=field, value=cell)
        seen.add(cell)
