"""Why a job does not run, as codes and words: the same for `explain`, of a record, and for `why`, of a service."""

from __future__ import annotations

from collections.abc import Sequence

# The codes that the service publishes, with what each means.
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
# Those that only simulations know, and what a service would call them.
OF_SIMULATIONS = {
    "type_drawn": "it may use one type only",
    "next_round": "accelerators are assigned when a round begins",
    "not_chosen": "the last answer, or the round, gives it none of the free ones",
    "next_question": "it came after the last ask, so that the policy has not ranked it yet",
    "no_share": "the last answer gives it none",
}
REASONS = (*PUBLISHED, *OF_SIMULATIONS)
_BY_PREFIX = {"fair share": "quota", "quota": "quota", "fragmentation": "fragmentation"}


def free_words(count: int) -> str:
    """Return `1 is free` or `4 are free`."""
    return f"{count:,} {'is' if count == 1 else 'are'} free"


def listed(names: Sequence[str], count: int, noun: str = "") -> str:
    """Return some of so many things in words: their names, and how many others there are."""
    more = count - len(names)
    kind = f" {noun}{'s' * (more != 1)}" if noun and not names else ""
    return " and ".join(part for part in (", ".join(names), f"{more:,}{kind or ' more'}" if more else "") if part)


def describe_ahead(count: int, accelerators: int, names: Sequence[str]) -> str:
    """Return the words for so many waiting jobs ahead, all of which need so many accelerators."""
    named = f" ({listed(names, count)})" if names else ""
    if count == 1:
        return f"behind 1 waiting job that needs {accelerators:,}{named}"
    return f"behind {count:,} waiting jobs that need {accelerators:,} in all{named}"


def describe_takers(names: Sequence[str], count: int, policy: str = "") -> str:
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
    others = ["another tenant's job" if hidden == 1 else f"{hidden} jobs of other tenants"] if hidden else []
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


def published(code: str) -> str:
    """Return the code that a service shows."""
    return code if code in PUBLISHED else "policy"


def code_of(text: str) -> str:
    """Return the code of a policy's own words, which may begin with their cause and a colon; see `metrics.waits`."""
    cause, colon, _ = text.partition(":")
    return _BY_PREFIX.get(cause, "policy") if colon else "policy"


def describe_hold(code: str, detail: str = "") -> str:
    """Return the words for a job that asks for nothing: held, after (`detail`: the jobs) or backoff (its failure)."""
    match code:
        case "after":
            return f"it waits for {detail or 'the jobs that it follows'} to succeed"
        case "backoff":
            return f"it failed, and waits before it is tried again{f': {detail}' if detail else ''}"
    return "its user holds it, and it asks for nothing until it is released"


def describe_unknown(reason: str) -> str:
    """Return the words for a job that has accelerators, but whose processes cannot be reached."""
    return f"it has accelerators, but its processes cannot be reached{f': {reason}' if reason else ''}"
