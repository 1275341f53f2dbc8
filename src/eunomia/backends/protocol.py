"""The protocol of every backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from eunomia.model.decisions import Decision
from eunomia.model.events import Event, Moment


class Backend(Protocol):
    """What the loop drives: it takes moments one by one, and hands over every decision before it takes the next."""

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, in order of time, until nothing more can happen."""
        ...

    def carry_out(self, decision: Decision) -> None:
        """Apply a decision. An order whose epoch is past is ignored; `Ask` is never handed over."""
        ...


@runtime_checkable
class TunableBackend(Backend, Protocol):
    """A backend whose jobs can be watched and stopped by their users, such as a hyperparameter search."""

    def watch(self, job_id: str, steps: float) -> None:
        """Report (`Measured`, without a loss) once when the job has done so many steps; a later request replaces it."""
        ...

    def accept(self, wish: Event) -> bool:
        """Apply a user's request now; False when it came too late."""
        ...
