"""The row of a job: its document, its state in the words that users know, and what the controller must remember."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from eunomia.backends.orders import Launch
from eunomia.inputs.json_text import refuse_constant, unusable_texts

# The states of a job, in the order in which lists count them.
STATES = {
    "pending": "it waits for accelerators",
    "held": "its user holds it: it asks for nothing until it is released",
    "starting": "it has accelerators, and its processes are being started",
    "running": "its processes run",
    "stopping": "it has been called back: it saves and stops",
    "preempted": "it waits for accelerators, and goes on from a checkpoint",
    "unknown": "it has accelerators, but its processes cannot be reached",
    "succeeded": "it ended by itself with exit code 0",
    "failed": "it ended otherwise, and is not tried again",
    "cancelled": "its user cancelled it",
    "rejected": "the policy refused it before it ran",
    "quarantined": "it was set aside, as what it reported or what is stored of it cannot be used",
}
QUARANTINED = "quarantined"
MOST_COUNT = 2**62
MOST_STORED = 1e24  # of a number in a row: sums of what is accepted stay below
FIRST_S, LAST_S = -62_135_596_800.0, 253_402_300_799.9995  # the years 1 to 9999
TERMINAL = frozenset({"succeeded", "failed", "cancelled", "rejected", QUARANTINED})
WAITING = frozenset({"pending", "held", "preempted"})
CHECKSUM = "crc32"  # last key of a stored body: of the text before it
SEATED = frozenset({"starting", "running", "unknown"})


@dataclass(slots=True, kw_only=True)
class JobRow:
    """One job. Times are seconds of the service's time; nan = not yet."""

    id: str
    number: int  # of all jobs ever submitted: the order of submission
    tenant: str
    owner: str
    name: str
    spec: dict[str, Any]
    submitted: float
    state: str = "pending"
    since: float = 0.0  # when it came into this state
    epoch: int = 0  # number of the last start
    ended_epoch: int = 0  # the last epoch whose processes are known to have ended
    launched_epoch: int = 0  # the last epoch whose processes are known to have begun
    seats: tuple[int, ...] = ()  # devices, while the scheduler gives it some
    shared: bool = False  # a partner has the same ones
    left_seats: tuple[int, ...] = ()  # of a gang that was stopped, until that is known to have ended
    left_epoch: int = 0  # the start of that gang
    memory_gib: float = math.nan  # believed to be needed on each accelerator
    used_memory_gib: float = 0.0  # the most that was seen on one
    total_steps: float = 1.0  # declared or estimated
    estimated: bool = False
    # of an estimated run time in seconds: median, ends of the 80 % interval, number of like jobs
    estimate: tuple[float, ...] = ()
    other_shapes: tuple[int, ...] = ()  # further gang sizes at which it may run
    steps: float = 0.0  # in a checkpoint
    reason: str = ""
    failures: int = 0
    losses: int = 0  # starts in a row whose supervisor died, without progress between them
    lost_at: float = -1.0  # steps in its checkpoint at the last of them
    saves: bool = False  # it has opened a lease, or has reported steps in a checkpoint
    saved_at: float = -1.0  # when it last did
    restart_within_s: float = 0.0  # see `Job`
    start_steps: float = 0.0  # in its checkpoint when it was started last
    idle_starts: int = 0  # starts in a row that ended without further steps in a checkpoint
    lost_s: float = 0.0  # on its seats, whose work no checkpoint had when it was stopped
    first_started: float = math.nan
    started: float = math.nan  # of the last start
    ended: float = math.nan
    preempted: float = math.nan  # when the policy stopped it, until it starts again
    preempted_by: tuple[str, ...] = ()  # the jobs that started then on its accelerators
    preempted_by_rank: bool = False  # the policy ranked all of these before it
    run_s: float = 0.0  # with processes running, over all starts
    held: tuple[float, ...] = ()  # since when it has its accelerators, and how many; () = it has none
    held_type: str = ""  # of the last ones that it had
    # of the time for which it was active, that is waited or ran, and not held: seconds, and ∫ active jobs dt up to the
    # last hold; () = not known, as an earlier version did not count it
    active: tuple[float, ...] = ()
    active_since: tuple[float, ...] = ()  # the same two sums of `TenantFairness.active_time` then; () = it is held
    array_index: int | None = None
    array_group: str = ""  # names its array where only some of that may run at once
    holds: list[str] = field(default_factory=list)  # why it asks for nothing: user, after, backoff, limit, priority
    backoff_until: float = math.nan
    finished_early: bool = False  # its processes finished while they were being stopped

    @property
    def is_over(self) -> bool:
        """Whether its state is final."""
        return self.state in TERMINAL

    @property
    def saved_steps(self) -> float:
        """Steps in its checkpoint."""
        return self.steps

    @property
    def can_save(self) -> bool:
        """Whether it goes on from where it was, as its document says or as it has shown; what is not known is False."""
        said = self.spec.get("interruptible")
        return bool(said) if said is not None else self.saves or self.steps > 0 or "checkpoint" in self.spec

    @property
    def is_live(self) -> bool:
        """Whether the controller still has to do with it: it is not over, or its processes may still run."""
        return not self.is_over or self.ended_epoch < self.epoch

    def launch(self, number: int, adopt_only: bool) -> Launch:
        """Return the order that starts its last gang."""
        return Launch(
            number, self.id, self.epoch, self.seats, self.spec, 0.0 if self.estimated else self.total_steps,
            self.array_index, self.shared, adopt_only, self.owner,
        )  # fmt: skip

    def body(self) -> str:
        """Return all fields as JSON, without those that have their default, and a checksum at the end."""
        text = _encode({
            name: value for (name, default), value in zip(_DEFAULTS, _values(self), strict=True)
            if value is not default and value != default and (type(value) is not float or not math.isnan(value))
        })  # fmt: skip
        return f"{text[:-1]}{_checksum(text)}"

    @classmethod
    def of(cls, body: str) -> JobRow:
        """Return the row of a body. Raises ValueError or TypeError for one that cannot be used.

        One that an earlier version wrote has no checksum.
        """
        data = _decode(body)
        if type(data) is not dict:
            raise ValueError("it is no object")
        has_sum = data.pop(CHECKSUM, None) is not None
        if "\\u" in body:
            for place, wrong in unusable_texts(data):
                raise ValueError(f"{place} has {wrong}")
        for name, value in data.items():
            if type(value) is float:
                is_right = name in _FLOATS and -MOST_STORED <= value <= MOST_STORED
            else:
                is_right = type(value) is _KINDS.get(name) or (name in _CHECKS and _CHECKS[name](value))
            if not is_right:
                raise ValueError(f"{name} is {repr(value)[:80]}")
        if has_sum:
            content, _, _ = body.rpartition(f',"{CHECKSUM}":')
            if body != content + _checksum(content + "}"):
                raise ValueError("its checksum is not that of its content")
        for name in _TUPLES:
            if name in data:
                data[name] = tuple(data[name])
        return cls(**data)

    def shown(self, origin: float, types: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return what users see of it; `origin` is the wall-clock time of second 0, `types` that of each device."""

        def when(at: float) -> str | None:
            return None if math.isnan(at) else iso(origin + at)

        return {
            "id": self.id,
            "name": self.name,
            "tenant": self.tenant,
            "owner": self.owner,
            "state": self.state,
            "since": when(self.since),
            "reason": self.reason or None,
            "submitted_at": when(self.submitted),
            "started_at": when(self.first_started),
            "ended_at": when(self.ended),
            "epoch": self.epoch,
            "accelerators": self.spec.get("accelerators", 1),
            "seats": list(self.seats),
            "type": types[self.seats[0]] if self.seats and types else None,
            "steps": self.steps,
            "total_steps": None if self.estimated else self.total_steps,
            "estimated_total_steps": self.total_steps if self.estimated else None,
            "accelerator_memory_gib": None if math.isnan(self.memory_gib) else self.memory_gib,
            "used_memory_gib": self.used_memory_gib or None,
            "failures": self.failures,
            "interruptible": self.can_save,
            "lost_s": self.lost_s,
            "starts_without_progress": self.idle_starts,
            "array_index": self.array_index,
            "labels": self.spec.get("labels", {}),
            "spec": {key: value for key, value in self.spec.items() if key != "env"}
            | ({"env": dict.fromkeys(self.spec["env"], "***")} if self.spec.get("env") else {}),
        }


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: type(values) is list and all(map(check, values))


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_COUNT


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -MOST_STORED <= value <= MOST_STORED


def _are_numbers(values: Any) -> bool:
    return type(values) is list and (not values or (min(values) >= -MOST_STORED and max(values) <= MOST_STORED))


_BY_TYPE: dict[str, Callable[[Any], bool]] = {
    "str": _is_text, "int": _is_count, "int | None": _is_count, "float": _is_number,
    "bool": lambda value: type(value) is bool, "dict[str, Any]": lambda value: type(value) is dict,
    "list[str]": _all(_is_text), "tuple[str, ...]": _all(_is_text), "tuple[int, ...]": _all(_is_count),
    "tuple[float, ...]": _are_numbers,
}  # fmt: skip
_CHECKS = {one.name: _BY_TYPE[str(one.type)] for one in fields(JobRow)} | {"state": STATES.__contains__}
# Of these fields every value of the type will do; they are most of a row.
_KINDS: dict[str, type] = {
    one.name: {"str": str, "bool": bool, "dict[str, Any]": dict}[str(one.type)]
    for one in fields(JobRow)
    if str(one.type) in ("str", "bool", "dict[str, Any]") and one.name != "state"
}
_FLOATS = frozenset(one.name for one in fields(JobRow) if str(one.type) == "float")
_TUPLES = tuple(one.name for one in fields(JobRow) if str(one.type).startswith("tuple"))
_DEFAULTS = tuple((one.name, [] if one.name == "holds" else one.default) for one in fields(JobRow))
_values = attrgetter(*(name for name, _ in _DEFAULTS))


def _checksum(text: str) -> str:
    """Return what follows the content of a body, the JSON object `text`, in place of its last brace."""
    return f',"{CHECKSUM}":{zlib.crc32(text.encode())}}}'


_decode = json.JSONDecoder(parse_constant=refuse_constant).decode
_encode = json.JSONEncoder(separators=(",", ":")).encode


def ended_as(state: str, *, already: bool = False) -> str:
    """Return what became of a job that is over, after its name."""
    return f"has {'already ' * already}{'been ' * (state == QUARANTINED)}{state}"


def iso(wall: float) -> str:
    """Return a wall-clock time in UTC as text; one beyond the year 9999 is shown as its end."""
    return (
        datetime.fromtimestamp(wall if FIRST_S <= wall <= LAST_S else LAST_S, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
