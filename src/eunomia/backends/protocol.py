"""The one door of every world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from eunomia.model.decisions import Decision
from eunomia.model.events import Event, Moment


class Backend(Protocol):
    """A world. The loop takes its moments one by one and hands it every decision before it takes the next."""

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, in order of time, until nothing more can happen."""
        ...

    def carry_out(self, decision: Decision) -> None:
        """Do as decided. An order whose epoch is past is ignored; `Ask` never comes here."""
        ...


class TunableBackend(Backend, Protocol):
    """A world in which users can live: they are told what they watch, and what they wish becomes true in it."""

    def watch(self, job_id: str, steps: float) -> None:
        """Have it said (`Measured`, without a loss) when the job has done so many steps; once, the last wish counts."""
        ...

    def accept(self, wish: Event) -> bool:
        """Let a user's wish come true now; False when it came too late."""
        ...
