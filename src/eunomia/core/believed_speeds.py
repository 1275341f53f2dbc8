"""What a scheduler believes of throughputs, as a source of them: for worlds that play on as it expects."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia.core.belief import Belief
from eunomia.model.arrays import Floats
from eunomia.model.speeds import Speeds, by_level, spread_throughput


@dataclass(frozen=True, slots=True)
class BelievedSpeeds:
    """The throughputs of a belief, learnt ones included."""

    belief: Belief

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        return self.belief.speeds.types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return believed steps/s of the gang on each type, (type,)."""
        return self.belief.solo_throughput(job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return believed steps/s of the first gang beside the second, (type,)."""
        rates = self.belief.speeds.packed_throughput(job_type, partner, scale_factor)
        return self.belief.in_proportion((job_type, scale_factor), rates)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return believed steps/s of a gang spread over machines, (type,), alone or beside a partner."""
        rates = spread_throughput(self.belief.speeds, job_type, scale_factor, partner)
        return self.belief.in_proportion((job_type, scale_factor), rates)

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the slowdown at each level, (LEVELS,)."""
        return by_level(self.belief.speeds, job_type, scale_factor)


def believed_speeds(belief: Belief) -> Speeds:
    """Return the source of what is believed: the belief's own while nothing was learnt."""
    return BelievedSpeeds(belief) if belief.learnt else belief.speeds
