"""What a job waits for before it asks for accelerators: the words of its key `after`, and whether they have come true.

ID, afterok:ID    the job has succeeded
afterany:ID       the job has ended
afternotok:ID     the job has ended otherwise than by success
singleton         no earlier job of the same user with the same name is left
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from eunomia.service.job_row import TERMINAL

SINGLETON = "singleton"
PATTERN = r"^(?:singleton|(?:after(?:ok|any|notok):)?[0-9]{1,19}-[A-Za-z0-9]{1,60})$"
VERBS = {"afterok": "succeed", "afterany": "end", "afternotok": "fail or be cancelled", SINGLETON: "end"}


class Dependency(NamedTuple):
    """A job that is waited for, and how it has to end."""

    kind: str
    job_id: str

    def is_met(self, state: str | None) -> bool | None:
        """Say whether it has come true with the other job in a state; None: not yet. False: it never will.

        None as a state is that of a job that ended long ago and was removed: it would have decided by then.
        """
        if state is None:
            return True
        if state not in TERMINAL:
            return None
        if self.kind in ("afterany", SINGLETON):
            return True
        return (state == "succeeded") == (self.kind == "afterok")

    @property
    def verb(self) -> str:
        """What the other job is to do."""
        return VERBS[self.kind]


def dependencies_of(after: Iterable[str], earlier: Iterable[str] = ()) -> list[Dependency]:
    """Return what a key `after` says; `earlier` are the jobs that a singleton waits for."""
    found = list[Dependency]()
    for word in after:
        if word == SINGLETON:
            found += [Dependency(SINGLETON, job_id) for job_id in earlier]
        else:
            kind, colon, job_id = word.partition(":")
            found.append(Dependency(kind, job_id) if colon else Dependency("afterok", word))
    return found
