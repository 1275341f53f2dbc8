"""Drivers of worlds for the contract suite: what the suite asks of a world, and how it is got."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from eunomia.model.topology import Topology


class NotApplicable(Exception):
    """The world cannot have this point of the contract; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a gang of the suite does: so many saved steps of so many seconds each."""

    steps: int = 3
    step_s: float = 0.1
    exit_code: int = 0
    ignores_term: bool = False
    has_child: bool = False  # a process that ignores SIGTERM
    grace_s: float = 10.0
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()  # in place of the recording program


class WorldDriver:
    """One world under test. A world overrides what it has; the rest raises NotApplicable.

    Its cluster has at least three nodes with two accelerators each, nodes 0 and 1 being of one type.
    """

    topology: Topology
    without_processes = ""  # why there are no processes to look at; "" = there are

    # ---- orders and time -----------------------------------------------------------------------------------------

    def launch(self, job_id: str, epoch: int, seats: tuple[int, ...]) -> None:
        """Order the start of a gang."""
        raise NotImplementedError

    def stop(self, job_id: str, epoch: int) -> None:
        """Order the stop of a gang, with a checkpoint."""
        raise NotImplementedError

    def until(self, holds: Callable[[], bool], within_s: float) -> None:
        """Let time pass until it holds. Raises AssertionError if it does not within that time."""
        raise NotImplementedError

    def let_pass(self, seconds: float) -> None:
        """Let time pass."""
        raise NotImplementedError

    def close(self) -> None:
        """End the world and all of its gangs."""

    # ---- what the world says ---------------------------------------------------------------------------------------

    def status(self, job_id: str, epoch: int) -> str:
        """Return waiting, running, unknown, finished, failed, stopped or lost."""
        raise NotImplementedError

    def reason(self, job_id: str, epoch: int) -> str:
        """Return why the gang ended."""
        raise NotImplementedError

    def saved_steps(self, job_id: str) -> float:
        """Return the last reported steps in a checkpoint; 0 = none."""
        raise NotImplementedError

    def in_service(self, node: int) -> bool:
        """Whether the world reports the node as in service."""
        raise NotApplicable("this world has no nodes that come and go")

    def taken(self, node: int) -> int:
        """Return how many accelerators of a node others hold."""
        raise NotApplicable("nothing else can use the accelerators of this world")

    def orphans(self) -> list[tuple[str, int]]:
        """Return jobs and epochs that run and that no order is about."""
        raise NotApplicable("this world keeps no marks")

    def need_processes(self) -> None:
        """Raise NotApplicable if gangs are not processes."""
        if self.without_processes:
            raise NotApplicable(self.without_processes)

    # ---- what really happened ----------------------------------------------------------------------------------------

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        """Return how many accelerators of each node a running gang has."""
        raise NotImplementedError

    def records(self, job_id: str, what: str = "") -> list[dict[str, Any]]:
        """Return what gangs of a job wrote, in order."""
        raise NotApplicable(self.without_processes)

    def starts(self, job_id: str) -> list[int]:
        """Return the epochs of a job in which a gang began, in order."""
        return [int(line["epoch"]) for line in self.records(job_id, "start")]

    def overlaps(self, *job_ids: str) -> list[tuple[str, str]]:
        """Return pairs of these jobs whose gangs ran at the same time."""
        spans = [(min(at), max(at), job_id) for job_id in job_ids if (at := [r["at"] for r in self.records(job_id)])]
        spans.sort()
        return [(a[2], b[2]) for a, b in pairwise(spans) if b[0] < a[1]]

    def processes(self, job_id: str) -> int:
        """Return how many processes of a job run on this machine."""
        raise NotApplicable(self.without_processes)

    # ---- what goes wrong ---------------------------------------------------------------------------------------------

    def restart(self, *, away_s: float = 0.0, forgets: tuple[str, ...] = ()) -> None:
        """End our process as a kill does, and start another that knows all jobs but these."""
        raise NotApplicable("this world ends with its process")

    def away(self, how: str) -> AbstractContextManager[None]:
        """The engine does not answer (timeout), answers with errors (error) or without any job (empty)."""
        raise NotApplicable("there is no engine between us and the gangs")

    def lost_answers(self) -> AbstractContextManager[None]:
        """Orders take effect, but their answers do not arrive."""
        raise NotApplicable("there is no engine between us and the gangs")

    def remove(self, job_id: str, epoch: int) -> None:
        """Remove a gang from the engine as a person does, with the engine's own commands."""
        raise NotApplicable("there is no engine between us and the gangs")

    def reused(self, job_id: str, epoch: int) -> AbstractContextManager[Callable[[], bool]]:
        """End a gang and give its id in the world to what another user runs; the function says whether that still runs.

        It is the id by which the world signals and ends the gang: a number, a name, a process id.
        """
        raise NotApplicable("gangs of this world have no ids but their job and epoch")

    def drain(self, node: int) -> None:
        """Take a node out of service in the engine."""
        raise NotApplicable("nodes of this world are drained by the service")

    def resume(self, node: int) -> None:
        """Bring a node back."""
        raise NotApplicable("nodes of this world are drained by the service")

    def lose(self, node: int) -> None:
        """Make a node fail."""
        raise NotApplicable("this world is one machine")

    def shrunk(self, node: int) -> AbstractContextManager[None]:
        """A node has fewer accelerators than declared."""
        raise NotApplicable("this world is one machine")

    def stranger(self, node: int) -> AbstractContextManager[Callable[[], bool]]:
        """Another user holds accelerators of a node; the function says whether that still runs."""
        raise NotApplicable("this world does not look for strangers")
