"""A signature: one way in which a line of a log tells of a failure, and how far that is from the root of the matter."""

from __future__ import annotations

import re
from typing import NamedTuple

CAUSE = 0  # names what went wrong
PROCESS = 1  # a process died or lost its peers: a cause of its own, or what a cause led to
AFTERMATH = 2  # launchers and schedulers that clean up
IMPLICIT = 3  # something crashed: an exception that says nothing of its reason
BARE = 4  # a traceback without its last line, or an exit code


class Signature(NamedTuple):
    """One way in which one line of a log tells of a failure."""

    name: str
    reason: str  # a name of `table7.REASONS`
    tier: int
    pattern: re.Pattern[str]
    at_any_level: bool = False  # counts on lines that are logged as a warning or less
    generic: bool = False  # an exception that is often thrown and handled on the way to another one


def signatures(
    reason: str, tier: int, *rows: tuple[str, ...], at_any_level: bool = False, generic: bool = False
) -> list[Signature]:
    """Return signatures of one reason from (name, alternatives …); case does not count."""
    return [
        Signature(name, reason, tier, re.compile("|".join(alternatives), re.IGNORECASE), at_any_level, generic)
        for name, *alternatives in rows
    ]
