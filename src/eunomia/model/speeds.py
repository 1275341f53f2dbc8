"""How fast a gang of a job type goes on each accelerator type: what truth and belief both answer."""

from __future__ import annotations

from typing import Protocol

from eunomia.model.arrays import Floats


class Speeds(Protocol):
    """A source of throughputs. A world and a belief each hold one of their own."""

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        ...

    def alone(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang on each type, shape (type,); 0 = cannot run there."""
        ...

    def beside(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,)."""
        ...
