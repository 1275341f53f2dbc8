"""Why a job waits, as a value: a code, and the jobs and numbers that it is about; and the words of every code.

Whatever finds a reason makes a `Reason`: a policy, a mechanism, the diagnosis of a state. Only what shows a reason
makes words of it: those of `TEXTS`, the one place to change what users read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints

# The kinds of reasons, with the words for each in the summary of `explain`.
KINDS = {
    "no_capacity": "nothing large enough was free",
    "fragmentation": "what was free was split",
    "behind": "behind earlier jobs",
    "quota": "the quota of its tenant was used up",
    "share_used": "it had received its share",
    "held": "held by its user",
    "after": "after other jobs",
    "types_absent": "no type in service can run it",
    "policy": "the policy held it back",
    "world_unknown": "its processes could not be reached",
    "backoff": "until it was tried again",
    "preempted": "after it was preempted, as nothing large enough was free",
    "type_drawn": "it may use one type only",
    "next_round": "until a round began",
    "not_chosen": "not chosen in a round",
    "next_question": "until the policy was asked",
    "no_share": "without a share of time",
    "quarantined": "set aside",
    "limit": "above a limit of its user or tenant",
}
# By services; the others, which simulations know, are `policy` there.
PUBLISHED = (*tuple(KINDS)[:12], "quarantined", "limit")
# How a text begins that a policy states, and the code that this stands for.
_STATED_CAUSES = {"fair share": "stated_quota", "quota:": "stated_quota", "fragmentation": "stated_fragmentation"}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one job waits.

    code: a key of `TEXTS`, which says what the other fields hold.
    jobs: ids that the words name; for a reader who may not see a job, its id is left out or replaced here.
    numbers: what the words count, in accelerators or seconds.
    names: types of accelerators and policies.
    text: what a policy, a user or a system said in its own words.

    Raises ValueError for an unknown code.
    """

    code: str
    jobs: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    text: str = ""

    def __post_init__(self) -> None:
        if self.code not in TEXTS:
            raise ValueError(f"{self.code!r} is no reason for waiting; those that there are stand in model.wait_reason")

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return TEXTS[self.code][0]

    def __str__(self) -> str:
        """Return the words."""
        text = TEXTS[self.code][1]
        return text(self) if callable(text) else text.format(*self.numbers, *self.names, text=self.text)

    @classmethod
    def of(cls, said: Reason | str) -> Reason:
        """Return a reason of an answer, in which a policy may also state a text that begins with its cause."""
        if isinstance(said, Reason):
            return said
        causes = (code for prefix, code in _STATED_CAUSES.items() if said.startswith(prefix))
        return cls(next(causes, "stated"), text=said)


@dataclass(frozen=True, slots=True, eq=False)
class WaitReasons(Mapping[int, Reason]):
    """Maps rows to reasons by a byte or two a row, for answers in which thousands of jobs have few reasons.

    code: (row,) unsigned integers, 0 = it has none, k = `reasons[k - 1]`.
    numbers: (row,) the number of its reason, where each row has another; nan = those of the reason; None: all nan.

    Raises ValueError for other codes, for a reason that is none, and for more or fewer numbers.
    """

    code: Array  # (row,)
    reasons: tuple[Reason, ...]
    numbers: Floats | None = None  # (row,)

    def __post_init__(self) -> None:
        code, reasons = self.code, self.reasons
        if code.ndim != 1 or code.dtype.kind != "u" or code.max(initial=0) > len(reasons):
            raise ValueError(f"codes of {code.dtype} up to {code.max(initial=0)} do not name {len(reasons)} reasons")
        if not all(isinstance(reason, Reason) for reason in reasons):
            raise ValueError(f"{reasons!r} are not all reasons")
        if self.numbers is not None and self.numbers.shape != code.shape:
            raise ValueError(f"{self.numbers.shape} numbers are not one for each of {code.shape} rows")

    @classmethod
    def of(
        cls, jobs: int, rows: Ints | Bools, reason: Reason, numbers: Floats | None = None
    ) -> WaitReasons | dict[int, Reason]:
        """Return the one reason of these rows, of so many; nothing where there are none."""
        code = np.zeros(jobs, dtype=np.uint8)
        code[rows] = 1
        numbers = None if numbers is None else np.where(code > 0, numbers, 0.0)
        return cls(code, (reason,), numbers) if code.any() else {}

    @classmethod
    def at(cls, jobs: int, *parts: Mapping[int, Reason | str] | tuple[Ints, Mapping[int, Reason | str]]) -> WaitReasons:
        """Return reasons of so many rows by codes; of two for a row, the later one.

        parts: reasons by row, or by place in some rows, which are given with them.
        """
        code, numbers, known = np.zeros(jobs, dtype=np.uint32), np.full(jobs, np.nan), _Codes()
        for part in parts:
            rows, why = part if isinstance(part, tuple) else (np.arange(jobs), part)
            if isinstance(why, cls):
                if len(parts) == 1 and part is why and len(why.code) == jobs:
                    return why
                places = np.flatnonzero(why.code)
                codes = np.array([known.code(reason) for reason in why.reasons], dtype=np.uint32)
                code[rows[places]] = codes[why.code[places] - 1]
                numbers[rows[places]] = np.nan if why.numbers is None else why.numbers[places]
            else:
                places = np.fromiter(why, np.int64, len(why))
                code[rows[places]] = [known.code(Reason.of(said)) for said in why.values()]
                numbers[rows[places]] = np.nan
        least, own = np.min_scalar_type(len(known.reasons)), not np.isnan(numbers).all()
        return cls(code.astype(least), tuple(known.reasons), np.where(code > 0, numbers, 0.0) if own else None)

    def without(self, rows: Ints) -> WaitReasons:
        """Return those of all rows but these."""
        code = self.code.copy()
        code[rows] = 0
        return replace(self, code=code)

    def __getitem__(self, row: int) -> Reason:
        if not 0 <= row < len(self.code) or self.code[row] == 0:
            raise KeyError(row)
        reason = self.reasons[int(self.code[row]) - 1]
        if self.numbers is None or np.isnan(self.numbers[row]):
            return reason
        return replace(reason, numbers=(float(self.numbers[row]),))

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.code).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.code))


class _Codes:
    """Numbers reasons from 1 on, each once."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []
        self._known: dict[Any, int] = {}

    def code(self, reason: Reason) -> int:
        key = (reason, repr(reason.numbers)) if reason.numbers else reason  # 1 and 1.0 read differently
        if key not in self._known:
            self.reasons.append(reason)
            self._known[key] = len(self.reasons)
        return self._known[key]


# ---- words that several reasons share --------------------------------------------------------------------------------


def free_words(count: float) -> str:
    """Return `1 is free` or `4 are free`."""
    return f"{count:,} {'is' if count == 1 else 'are'} free"


def listed(names: Sequence[str], count: float, noun: str = "") -> str:
    """Return some of so many things in words: their names, and how many others there are."""
    more = count - len(names)
    kind = f" {noun}{'s' * (more != 1)}" if noun and not names else ""
    return " and ".join(part for part in (", ".join(names), f"{more:,}{kind or ' more'}" if more else "") if part)


def describe_takers(names: Sequence[str], count: float, policy: str = "") -> str:
    """Return the words for the jobs that got the accelerators of a preempted one, after "it was preempted".

    There are so many of them, some of which may be named; `policy` is one that ranks all of them before it.
    """
    if not count:
        return ", and no other job started on its accelerators then"
    rank = f", which {policy} ranks before it" if policy else ""
    return f" by {listed(names, count, 'job')}{rank}"


def describe_condition(
    kind: str, jobs: Sequence[str], hidden: int, accelerators: float, node: str, tenant: str, starts: str | None
) -> str:
    """Return the words for what would let a job start, after "it would run if"; `hidden` counts jobs without a name.

    `starts` is when, if not at once.
    """
    others = [HIDDEN if hidden == 1 else f"{hidden} jobs of other tenants"] if hidden else []
    named = ", ".join((*jobs, *others))
    text = {
        "ended": f"{named} ended",
        "all_ended": f"all of these ended: {named}",
        "cancelled": f"{named}, ahead of it, were cancelled",
        "fewer": f"it were submitted again for {accelerators:g} accelerator{'s' * (accelerators != 1)}",
        "node": f"node {node} were back in service",
        "quota": f"the quota of tenant {tenant} were {accelerators:g}",
    }[kind]
    return text if starts is None else f"{text}, when leases end at {starts}"


_UNKNOWN = "accelerators that it could use are held by jobs that cannot be reached"
NOT_RANKED = (-1, 0, False)  # the place of a job that the policy has not ranked yet
HIDDEN = "another tenant's job"


def _queue(reason: Reason) -> str:
    """Return the place in the order; "" = first. Its numbers end with jobs ahead, what they need, and if it is old."""
    ahead, needs, is_old = reason.numbers[-3:]
    if (ahead, needs, is_old) == NOT_RANKED:
        return f"{reason.names[0]} has not ranked it yet"
    if not ahead:
        return ""
    named = f" ({listed(reason.jobs, ahead)})" if reason.jobs else ""
    jobs = "1 waiting job that needs" if ahead == 1 else f"{ahead:,} waiting jobs that need"
    return f"behind {jobs} {needs:,}{' in all' * (ahead != 1)}{named}{' by the last order' * bool(is_old)}"


def _in_queue(text: str) -> Callable[[Reason], str]:
    """Return words of size, free accelerators and types (without the policy), and then the place in the order."""

    def say(reason: Reason) -> str:
        size, free = reason.numbers[:2]
        queue = _queue(reason)
        said = text.format(size=size, free=free_words(free), types=", ".join(reason.names[1:]))
        return f"{said}, {queue}" if queue else said

    return say


def _room(reason: Reason) -> str:
    return f"{free_words(reason.numbers[1])} and it needs {reason.numbers[0]}"


def _shares(reason: Reason) -> str:
    share = ", ".join(f"{x:.0%} of {type}" for x, type in zip(reason.numbers, reason.names, strict=True))
    return f"it has had its share for now ({share}), and no seat is spare"


def _auction_behind(reason: Reason) -> str:
    (n,) = reason.numbers
    apps = "1 app is worse off and bids" if n == 1 else f"{n} apps are worse off and bid"
    first = f"{apps} first" if n else "apps that had held nothing for longer were served first"
    return f"{first}; nothing that it could use was left"


def _round(text: str) -> Callable[[Reason], str]:
    def say(reason: Reason) -> str:
        size, free, end = reason.numbers
        room = f"{free} {'is' if free == 1 else 'are'} free and it needs {size}, but " if free >= size else ""
        return f"{room}{text}; the next begins at {end:,.0f} s"

    return say


def _then(text: str) -> Callable[[Reason], str]:
    """Return words after which comes the text that is stated with it, if any."""
    return lambda reason: f"{text}: {reason.text}" if reason.text else text


# ---- the texts -------------------------------------------------------------------------------------------------------

_LATE = "its deadline cannot be met together with the others'"
_CLUSTER_QUOTA = "fair share: its virtual cluster has used up its quota"
# By kind and code: words with places for numbers, then names, and `text`; or a function. Reasons of a state have as
# numbers its size, what is free and the place in the order, and as names the policy and types.
_BY_KIND: dict[str, dict[str, str | Callable[[Reason], str]]] = {
    "no_capacity": {
        "no_capacity": _in_queue("it needs {size}; {free} on {types}"),
        "seats_held": lambda it: f"the others are held by {listed(it.jobs, it.numbers[0], 'job')}",  # added to it
        "taken": "accelerator {0} ({1}) is used by {text}",
        "drained": "{0} is {1}: {text}",
        "maintenance": "{0} starts no job that may run into its maintenance from {1} on: {text}",
    },
    "fragmentation": {
        "several_types": _in_queue("it needs {size} of one type; {free}, spread over {types}"),
        "not_close": "fragmentation: it is within its quota, but no place holds it as close together as it asks",
        "stated_fragmentation": "{text}",
    },
    "behind": {
        "behind": lambda it: f"{_room(it)}, but it is {_queue(it)}",
        "own_priority": "{text}",
        "first_misfit": "the first of them does not fit yet",  # added to it
    },
    "quota": {
        "tenant_quota": "quota: its tenant's is used up, and it may not borrow",
        "queue_quota": "quota: neither its queue's own nor what it may borrow has room for it",
        "cluster_quota": _CLUSTER_QUOTA,
        "scattered": f"{_CLUSTER_QUOTA}, and what it could borrow is not as close together as it asks",
        "stated_quota": "{text}",
    },
    "share_used": {"share_used": _shares, "prices": "{text}"},
    "held": {"held": "its user holds it, and it asks for nothing until it is released"},
    "after": {
        "after": lambda it: f"it waits for {', '.join(it.jobs) or 'the jobs that it follows'} to {it.text or 'succeed'}"
    },
    "limit": {"limit": "limit: {text}"},
    "types_absent": {"types_absent": "no type in service that it can run on has {0} accelerators"},
    "policy": {
        "stated": "{text}",  # in its own words
        "prerun": "pre-run: it first runs on one accelerator of the pool, and those are in use",
        "all_leased": "all seats are leased to others",
        "auction_due": "the next auction is about to be held",
        "auction_lost": "its app was among the {0} worst-off, bid, and won no seats for it",
        "auction_behind": _auction_behind,  # so many apps bid
        "seats_kept": "seats are kept for it until they are enough",
        "host_capacity": "it asks for more CPUs or memory than there are",
        "deadline_passed": "late: its deadline, {0:,.0f} s, has passed",
        "deadline_out_of_reach": "late: it cannot be done by its deadline, {0:,.0f} s, even if it runs from now on",
        "deadline_dropped": f"late: {_LATE}",
        "deadline_dropped_unproven": f"late, in the smallest set found: {_LATE}",
        "floor_dropped": "its equal part cannot be kept beside the deadlines",
        "share_kept": "keeps {0:.1%} of its proportionally fair share",
    },
    "world_unknown": {
        "world_unknown": _then("it has accelerators, but its processes cannot be reached"),
        "holders_unknown": lambda it: f"{_UNKNOWN}: {listed(it.jobs, it.numbers[0])}",
    },
    "backoff": {
        "backoff": _then("it failed, and waits before it is tried again"),
        "launch_delayed": _then("it has accelerators, but cannot be started yet"),
    },
    "preempted": {"preempted": lambda it: f"it was preempted{describe_takers(it.jobs, it.numbers[0], it.names[0])}"},
    "type_drawn": {"type_drawn": _in_queue("it may only use {types}, where fewer than {size} are free")},
    "next_round": {"next_round": _round("seats are given when a round begins")},  # its size, free, end
    "not_chosen": {
        "round_full": _round("the round that begins now gives it none"),
        "not_chosen": lambda it: f"{_room(it)}, but the last answer of {it.names[0]} gives it none of them",
    },
    "next_question": {
        "not_ranked": lambda it: f"{_room(it)}; {_queue(it)}",
        "next_question": "it came after the last question; the next one is asked at {0:,.0f} s",
    },
    "no_share": {"no_share": "the last answer gives it no share of time"},
    "quarantined": {"quarantined": _then("it was set aside and does not start again")},
}
TEXTS = {code: (kind, text) for kind, texts in _BY_KIND.items() for code, text in texts.items()}


def published(kind: str) -> str:
    """Return the kind of reason that a service shows."""
    return kind if kind in PUBLISHED else "policy"
