"""What a world asks of an engine that starts and stops gangs, such as Slurm.

Every gang bears a mark: which Eunomia started it, for which job and in which epoch. What runs is found again by its
mark, never by the engine's own number alone, which may be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

from eunomia.inputs.problems import InvalidInput

QUEUED, RUNS, OVER = "queued", "runs", "over"  # phases of an engine's gang


class EngineAway(Exception):
    """The engine did not answer, or not in a way to rely on: what it was asked to do may have happened or not."""


class EngineRefused(Exception):
    """The engine answered that it will not do it."""


class SubmissionMissing(EngineRefused):
    """A job that a user submitted to the engine is over or not there any more, so it can never be placed."""


NOT_DONE = (EngineAway, EngineRefused, InvalidInput)  # what an engine could not be asked or did not do, for now


@dataclass(frozen=True, slots=True)
class Mark:
    """Who started a gang."""

    cluster: str  # id of the folder of jobs, which is that of one service or run
    job_id: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.cluster}:{quote(self.job_id, safe='')}:{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> Mark | None:
        """Return the mark in a text; None if it is none."""
        cluster, _, rest = text.partition(":")
        job_id, _, epoch = rest.partition(":")
        number = whole(epoch)
        return None if not cluster or not job_id or number is None else cls(cluster, unquote(job_id), number)


def whole(text: str) -> int | None:
    """Return a whole number of at most 9 digits; None for any other text, as others may have written it."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """A gang to start, whole, with so many accelerators on each of these nodes."""

    mark: Mark
    name: str  # safe in any file system and command line
    parts: tuple[tuple[str, str, int], ...]  # engine's node, accelerator type, accelerators
    argv: tuple[str, ...]  # what to run, once
    stdin: Path  # its standard input
    log: Path
    grace_s: float
    cpus: float = 0.0  # for each accelerator; 0 = the engine's default
    memory_gib: float = 0.0  # for each accelerator; 0 = the engine's default
    longest_s: float | None = None
    submission: str = ""  # number of the held submission of a user that this is to release


@dataclass(frozen=True, slots=True)
class EngineGang:
    """One gang as its engine lists it."""

    number: str
    mark: Mark | None  # None = not one of Eunomia's
    phase: str  # QUEUED, RUNS, OVER
    state: str  # in the engine's words
    reason: str = ""
    user: str = ""
    is_held: bool = False  # a user's job that waits until it is placed


@dataclass(frozen=True, slots=True)
class HeldSubmission:
    """A job that a user submitted to the engine itself, and that waits to be placed."""

    number: str
    key: str  # of this submission, for ever
    tenant: str
    user: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EngineNode:
    """One node as its engine reports it."""

    name: str
    accelerators: Mapping[str, int]  # by type
    used: Mapping[str, int] = field(default_factory=dict)  # by type, by gangs of whomever
    away: str = ""  # why it is out of service; "" = it is in service
    cpus: float = 0.0
    memory_gib: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """How a gang ended, from the engine's accounting."""

    state: str
    code: int | None = None


class Engine(Protocol):
    """The engine. Every method raises EngineAway when there is no answer to rely on."""

    name: str
    node_lost: frozenset[str]  # states of gangs that ended through no fault of theirs
    adopts: bool  # whether it takes over jobs that users submitted to the engine
    cluster: str  # id of the folder of jobs that it acts for; set by the world

    def submit(self, request: GangRequest) -> str:
        """Start a gang when its accelerators are free; return its number. Raises EngineRefused."""
        ...

    def gangs(self) -> Sequence[EngineGang]:
        """Return all gangs of all users that the engine knows."""
        ...

    def nodes(self) -> Sequence[EngineNode]:
        """Return all nodes."""
        ...

    def submissions(self, cluster: str, new_key: Callable[[], str]) -> Sequence[HeldSubmission]:
        """Return jobs that users submitted and that wait; a new one gets a key that stays with it."""
        ...

    def call_back(self, request: GangRequest, number: str) -> None:
        """Send SIGTERM to the main process of a gang that runs."""
        ...

    def cancel(self, request: GangRequest, number: str, *, only_waiting: bool = False) -> None:
        """End a gang: one that waits never starts; one that runs is killed, unless `only_waiting`."""
        ...

    def ended(self, request: GangRequest, number: str) -> EngineEnd | None:
        """Return how a gang ended that is not listed any more; None without evidence."""
        ...

    def set_node(self, name: str, reason: str) -> None:
        """Take a node out of service, with a reason, or bring it back (reason "")."""
        ...

    def explain(self, number: str, why: str) -> None:
        """Show a user why a submission waits, where the engine has a place for that; it never raises."""
        ...

    def close(self) -> None:
        """End what was opened to speak to it; its gangs go on."""
        ...
