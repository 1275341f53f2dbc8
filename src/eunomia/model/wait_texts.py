"""The words of every reason for waiting, by code: the one place to change what users read of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eunomia.model.wait_reason import Reason

# The kinds of reasons that the service publishes, with what each means.
PUBLISHED = {
    "no_capacity": "what is free is too small for it",
    "fragmentation": "enough is free, but on several types or not close enough together",
    "behind": "it would fit, but other jobs are ahead of it",
    "quota": "its tenant's quota is used up",
    "share_used": "it has received its share of time for now",
    "held": "its user holds it",
    "after": "it follows jobs that have not succeeded yet",
    "types_absent": "no type in service that it can run on is large enough",
    "policy": "the policy gives another reason, has not ranked it yet, or chose otherwise",
    "world_unknown": "processes cannot be reached",
    "backoff": "it failed, and waits before it is tried again",
    "preempted": "it ran until the policy gave its accelerators to other jobs, and what is free is too small for it",
}
# Those that only simulations know; a service publishes them as `policy`.
OF_SIMULATIONS = {
    "type_drawn": "it may use one type only",
    "next_round": "accelerators are assigned when a round begins",
    "not_chosen": "the last answer, or the round, gives it none of the free ones",
    "next_question": "it came after the last ask, so that the policy has not ranked it yet",
    "no_share": "the last answer gives it none",
}
KINDS = (*PUBLISHED, *OF_SIMULATIONS)


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
        said = text.format(size=size, free=free_words(free), types=", ".join(reason.names[1:]), policy=reason.names[0])
        return f"{said}, {queue}" if queue else said

    return say


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
        size, most, end = reason.numbers
        free = f"{most} {'is' if most == 1 else 'are'} free and it needs {size}, but " if most >= size else ""
        return f"{free}{text}; the next begins at {end:,.0f} s"

    return say


def _then(text: str) -> Callable[[Reason], str]:
    """Return words after which comes what somebody said of it, if anything."""
    return lambda reason: f"{text}: {reason.text}" if reason.text else text


# ---- the texts -------------------------------------------------------------------------------------------------------

_LATE = "its deadline cannot be met together with the others'"
_QUOTA_USED = "fair share: its virtual cluster has used up its quota"
# By code: the kind, and the words: with places for numbers, then names, and `text`; or a function.
TEXTS: dict[str, tuple[str, str | Callable[[Reason], str]]] = {
    # In a policy's own words.
    "stated": ("policy", "{text}"),
    "stated_quota": ("quota", "{text}"),
    "stated_fragmentation": ("fragmentation", "{text}"),
    # Of policies.
    "tenant_quota": ("quota", "quota: its tenant's is used up, and it may not borrow"),
    "queue_quota": ("quota", "quota: neither its queue's own nor what it may borrow has room for it"),
    "cluster_quota": ("quota", _QUOTA_USED),
    "scattered": ("quota", f"{_QUOTA_USED}, and what it could borrow is not as close together as it asks"),
    "not_close": (
        "fragmentation",
        "fragmentation: it is within its quota, but no place holds it as close together as it asks",
    ),
    "prerun": ("policy", "pre-run: it first runs on one accelerator of the pool, and those are in use"),
    "all_leased": ("policy", "all seats are leased to others"),
    "auction_due": ("policy", "the next auction is about to be held"),
    "auction_lost": ("policy", "its app was among the {0} worst-off, bid, and won no seats for it"),
    "auction_behind": ("policy", _auction_behind),  # so many apps bid
    "seats_kept": ("policy", "seats are kept for it until they are enough"),
    "host_capacity": ("policy", "it asks for more CPUs or memory than there are"),
    "deadline_passed": ("policy", "late: its deadline, {0:,.0f} s, has passed"),
    "deadline_out_of_reach": (
        "policy",
        "late: it cannot be done by its deadline, {0:,.0f} s, even if it runs from now on",
    ),
    "deadline_dropped": ("policy", f"late: {_LATE}"),
    "deadline_dropped_unproven": ("policy", f"late, in the smallest set found: {_LATE}"),
    "floor_dropped": ("policy", "its equal part cannot be kept beside the deadlines"),
    "share_kept": ("policy", "keeps {0:.1%} of its proportionally fair share"),
    # Of mechanisms.
    "round_full": ("not_chosen", _round("the round that begins now gives it none")),  # its size, free, end
    "next_round": ("next_round", _round("seats are given when a round begins")),
    "next_question": ("next_question", "it came after the last question; the next one is asked at {0:,.0f} s"),
    "no_share": ("no_share", "the last answer gives it no share of time"),
    # Of a state: numbers are its size, what is free, and the place in the order; names the policy, then types.
    "types_absent": ("types_absent", "no type in service that it can run on has {0} accelerators"),
    "several_types": ("fragmentation", _in_queue("it needs {size} of one type; {free}, spread over {types}")),
    "share_used": ("share_used", _shares),  # parts of types
    "prices": ("share_used", "{text}"),  # after it
    "no_capacity": ("no_capacity", _in_queue("it needs {size}; {free} on {types}")),
    "seats_held": ("no_capacity", lambda it: f"the others are held by {listed(it.jobs, it.numbers[0], 'job')}"),
    "type_drawn": ("type_drawn", _in_queue("it may only use {types}, where fewer than {size} are free")),
    "not_ranked": (
        "next_question",
        lambda it: f"{free_words(it.numbers[1])} and it needs {it.numbers[0]}; {_queue(it)}",
    ),
    "behind": (
        "behind",
        lambda it: f"{free_words(it.numbers[1])} and it needs {it.numbers[0]}, but it is {_queue(it)}",
    ),
    "first_misfit": ("behind", "the first of them does not fit yet"),  # after it
    "not_chosen": (
        "not_chosen",
        lambda it: (
            f"{free_words(it.numbers[1])} and it needs {it.numbers[0]}, "
            f"but the last answer of {it.names[0]} gives it none of them"
        ),
    ),
    "preempted": (  # by so many jobs; names: the policy, if it ranks all of them before it
        "preempted",
        lambda it: f"it was preempted{describe_takers(it.jobs, it.numbers[0], it.names[0])}",
    ),
    # Of users and worlds.
    "held": ("held", "its user holds it, and it asks for nothing until it is released"),
    "after": ("after", lambda it: f"it waits for {', '.join(it.jobs) or 'the jobs that it follows'} to succeed"),
    "backoff": ("backoff", _then("it failed, and waits before it is tried again")),
    "world_unknown": ("world_unknown", _then("it has accelerators, but its processes cannot be reached")),
    "holders_unknown": (
        "world_unknown",
        lambda it: (
            f"accelerators that it could use are held by jobs that cannot be reached: {listed(it.jobs, it.numbers[0])}"
        ),
    ),
    "taken": ("no_capacity", "accelerator {0} ({1}) is used by {text}"),
}


def published(kind: str) -> str:
    """Return the kind of reason that a service shows."""
    return kind if kind in PUBLISHED else "policy"
