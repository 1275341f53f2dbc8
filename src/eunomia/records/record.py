"""Moments and decisions as JSON lines, written during a run and read for replay and explanations.

Line 1 is a header with the inputs of the scheduler; then one line a moment and one a decision. The view of an ask is
not written, but its answer is, so replay needs neither policy nor solver.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model import answers, decisions
from eunomia.model.arrays import Array
from eunomia.model.certificate import Certificate
from eunomia.model.decisions import Ask, Decision, GiveUp, Starts, Stop
from eunomia.model.events import EVENTS, Moment, Progressed, TimerFired
from eunomia.model.job import Job
from eunomia.model.job_ids import JobIdList
from eunomia.model.wait_reason import Reason, WaitReasons

FORMAT = 1
RECORD = "record.jsonl.gz"  # in the folder of a run
JOURNAL = Path("run", "record.jsonl")  # in the folder of an unfinished real run: the same lines, uncompressed
JOURNAL_ONLY = frozenset({"world", "reply"})  # kinds of lines that only a journal has, for resuming
_PLAIN = {int, str, bool}
_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}  # class → fields and defaults; defaults are not written
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# Names in files of classes that were renamed since.
_NAMES: dict[type, str] = {decisions.SetShares: "Flow", decisions.SetTimer: "WakeAt", TimerFired: "Woken"}
_CLASSES: dict[str, type] = {
    _NAMES.get(cls, cls.__name__): cls
    for cls in (
        Job,
        answers.Rows,
        answers.Shares,
        answers.Order,
        answers.Grants,
        Certificate,
        Reason,
        WaitReasons,
        *EVENTS,
        decisions.Start,
        decisions.Renew,
        decisions.Stop,
        decisions.SetShares,
        decisions.Refuse,
        decisions.SetTimer,
    )
}


_WHOLE = frozenset(_CLASSES.values()) - {Stop, Progressed}  # classes whose fields are written as they are


def to_json(value: Any) -> Any:
    """Return a value of `model` as JSON: an object with its class name; numbers keep every bit."""
    if type(value) in _WHOLE:
        return _fields_json(value)
    match value:
        case None | str() | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else {"number": str(value)}
        case np.ndarray():
            return _array(value)
        case JobIdList():
            return list(value)
        case tuple() | list():
            plain = set(map(type, value)) <= _PLAIN
            return list(value) if plain else [to_json(part) for part in value]
        case Mapping():
            return {"map": [[to_json(key), to_json(part)] for key, part in value.items()]}
        case Ask():
            return {"is": "Ask", "asked": value.asked}
        case Stop():
            value = replace(value, epochs=np.asarray(value.epochs).tolist())
        case Progressed():
            value = replace(value, steps=np.asarray(value.steps).tolist())
    return _fields_json(value)


def _fields_json(value: Any) -> dict[str, Any]:
    """Return the fields of an object that do not have their default."""
    kind = type(value)
    written = {"is": _NAMES.get(kind, kind.__name__)}
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple((field.name, field.default) for field in fields(value))
    for name, default in _FIELDS[kind]:
        part = getattr(value, name)
        if part is default:
            continue
        if type(part) in _PLAIN:
            if type(default) is not type(part) or part != default:
                written[name] = part
        elif isinstance(part, np.ndarray) or not _same(part, default):
            written[name] = to_json(part)
    return written


def _same(part: Any, default: Any) -> bool:
    return type(part) is type(default) and bool(part == default)


def _array(value: Array) -> dict[str, Any]:
    """Return an array as JSON; an arithmetic progression, such as most orders, takes three numbers."""
    written: dict[str, Any] = {"array": str(value.dtype), "shape": list(value.shape)}
    if value.ndim == 1 and len(value) > 3 and value.dtype == np.int64:
        step = int(value[1]) - int(value[0])
        if (value[1:] - value[:-1] == step).all():
            return {**written, "from": int(value[0]), "step": step}
    flat = value.ravel().tolist()
    if value.dtype.kind in "iub" or (value.dtype.kind == "f" and np.isfinite(value).all()):
        return {**written, "of": flat}
    return {**written, "of": to_json(flat)}


def from_json(value: Any) -> Any:
    """Invert `to_json`, with tuples for lists. Raises ValueError for anything that it does not write."""
    if isinstance(value, list):
        return tuple(from_json(part) for part in value)
    if not isinstance(value, dict):
        return value
    match value:
        case {"number": text}:
            return _NOT_FINITE[text]
        case {"array": dtype, "shape": shape, "of": flat}:
            return np.array(from_json(flat), dtype=dtype).reshape(shape)
        case {"array": dtype, "shape": [length], "from": int(first), "step": int(step)}:
            return first + step * np.arange(length, dtype=dtype)
        case {"map": pairs}:
            return {from_json(key): from_json(part) for key, part in pairs}
        case {"is": name, **parts} if name in _CLASSES:
            made = _CLASSES[name](**{key: from_json(part) for key, part in parts.items()})
            if isinstance(made, Reason):
                str(made)  # raises for one that no reader could be shown
            return made
    raise ValueError(f"nothing is written as {sorted(value)!r}")


class Recorder:
    """An observer that writes a record. A context manager; the file is complete after exit."""

    def __init__(self, path: Path, header: Mapping[str, Any]):
        self._raw = path.open("wb")
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0, compresslevel=6)
        self._file = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        self._file.write(header_line(header))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        finally:  # also if the disk is full
            self._raw.close()

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Write one moment and its decisions."""
        self._file.writelines(step_lines(moment, decisions))


def header_line(header: Mapping[str, Any]) -> str:
    """Return the first line of a record."""
    return _encode({"eunomia": FORMAT, **header}) + "\n"


def step_lines(moment: Moment, decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield the lines of one moment and its decisions."""
    yield moment_line(moment)
    yield from decision_lines(moment.at, decisions)


def decision_lines(at: float, decisions: Iterable[Decision]) -> Iterator[str]:
    """Yield the lines of the decisions of a moment."""
    for decision in decisions:
        if isinstance(decision, GiveUp):
            continue
        if isinstance(decision, Starts):
            yield from _lines(at, decision)
        else:
            yield _encode({"at": at, "kind": "decision", "decision": to_json(decision)}) + "\n"


def moment_line(moment: Moment, kind: str = "moment") -> str:
    """Return the line of one moment."""
    return events_line(moment.at, [to_json(event) for event in moment.events], kind)


def events_line(at: float, events: Sequence[Any], kind: str = "moment") -> str:
    """Return the line of a moment whose events are JSON values."""
    return _encode({"at": at, "kind": kind, "events": events}) + "\n"


def _lines(at: float, starts: Starts) -> Iterator[str]:
    """Yield a line a gang, as if each had its own `Start`."""
    has_options = (starts.partners.rows >= 0).any() or starts.shape.any() or starts.max_steps is not None
    if has_options:
        for start in starts.each():
            yield _encode({"at": at, "kind": "decision", "decision": to_json(start)}) + "\n"
        return
    # A round may have hundreds of starts: encode their common parts once.
    head = f'{{"at":{_encode(at)},"kind":"decision","decision":{{"is":"Start","job_id":'
    tail = {until: f'"until":{_encode(to_json(until))}}}}}\n' for until in set(starts.until.tolist())}
    seats, first = list(map(str, starts.seats.tolist())), starts.first.tolist()
    columns = zip(starts.jobs, starts.epochs.tolist(), starts.until.tolist(), strict=True)
    for g, (name, epoch, until) in enumerate(columns):
        held = ",".join(seats[first[g] : first[g + 1]])
        yield f'{head}{_encode(name)},"epoch":{epoch},"seats":[{held}],{tail[until]}'


def _in_folder(folder: Path) -> Path:
    """Return the record in the folder of a run, or the journal if the run has not ended."""
    whole, journal = folder / RECORD, folder / JOURNAL
    return journal if journal.exists() and not whole.exists() else whole


class Record:
    """A record in a file."""

    def __init__(self, path: Path):
        """Read the header; a folder means the record of its run. Raises InvalidInput for anything else."""
        self.path = _in_folder(path) if path.is_dir() else path
        first = next(self._lines(), None)
        if first is None or first[1].get("eunomia") != FORMAT:
            raise self._refusal(1, "the first line is not the header of a record of this version")
        self.header = first[1]

    def steps(self) -> Iterator[tuple[int, Moment, list[Any]]]:
        """Yield the line number of each moment, the moment, and its decisions as JSON values."""
        pending: tuple[int, Moment, list[Any]] | None = None
        for row, line in self.lines():
            if line.get("kind") in JOURNAL_ONLY:
                continue
            if line.get("kind") == "moment":
                if pending is not None:
                    yield pending
                pending = (row, self.moment(row, line), [])
            elif line.get("kind") == "decision" and pending is not None:
                pending[2].append(line.get("decision"))
            else:
                raise self._refusal(row, "a line is neither a moment nor a decision after one")
        if pending is None:
            raise self._refusal(2, "the record ends after its header")
        yield pending

    def moment(self, row: int, line: Mapping[str, Any]) -> Moment:
        """Return the moment in a line. Raises InvalidInput for a line without one."""
        try:
            events = from_json(line["events"])
            if not isinstance(events, tuple) or not all(isinstance(event, EVENTS) for event in events):
                raise ValueError("it holds something else than events")
            return Moment(float(line["at"]), events)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise self._refusal(row, f"the moment cannot be read ({error})") from error

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield number and content of every line after the header."""
        lines = self._lines()
        next(lines)
        yield from lines

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        row = 0
        try:
            packed = self.path.suffix != JOURNAL.suffix
            with (gzip.open if packed else open)(self.path, "rt", encoding="utf-8") as file:
                for row, text in enumerate(file, start=1):
                    if not packed and not text.endswith("\n"):
                        return  # partially written
                    yield row, self._line(row, text)
        except InvalidInput:
            raise
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise self._refusal(row + 1, f"the record cannot be read ({error})") from error

    def _line(self, row: int, text: str) -> dict[str, Any]:
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise self._refusal(row, f"this is not JSON ({error.msg}, character {error.pos + 1})") from None
        except (ValueError, RecursionError) as error:  # too many digits or brackets
            raise self._refusal(row, f"the record cannot be read ({error})") from error
        if not isinstance(line, dict):
            raise self._refusal(row, "a line is not an object")
        return line

    def _refusal(self, row: int, rule: str) -> InvalidInput:
        fix = "give a record.jsonl.gz that --record wrote, whole"
        return InvalidInput([Problem(file=str(self.path), row=row, rule=rule, fix=fix)])
