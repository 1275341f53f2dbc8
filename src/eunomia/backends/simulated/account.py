"""The world's account: what the accelerator-seconds that gangs held were good for."""

from __future__ import annotations

from dataclasses import dataclass, field

from eunomia.model.losses import HELD_FOR, Losses


@dataclass(slots=True)
class Lease:
    """What a gang's time on its seats is worth while nothing around it changes.

    A stretch of work of dt seconds is shared out, s the seats that count as its own (half of them beside a partner):

        useful      z · dt · k / (P N)          what its steps take alone, well placed
        sharing     dt · (s − z k)              z accelerators of the gang, k speed kept beside a partner
        placement   z · dt · k (1 − 1/P)        P slowdown by place
        neighbours  z · dt · k / P · (1 − 1/N)  N slowdown by neighbours
    """

    size: int
    seats: float
    kept: float = 1.0
    place: float = 1.0
    near: float = 1.0


@dataclass(slots=True)
class Account:
    """Sums of accelerator-seconds by what they went to, and each job's own part of what is useful so far."""

    worth: list[float]  # (job,)
    lost: dict[str, float] = field(default_factory=lambda: dict.fromkeys(HELD_FOR, 0.0))

    def work(self, job: int, lease: Lease, seconds: float) -> None:
        """Share out a stretch of work."""
        whole = lease.size * seconds
        kept = whole * lease.kept
        placed = kept / lease.place
        useful = placed / lease.near
        self.lost["sharing"] += lease.seats * seconds - kept
        self.lost["placement"] += kept - placed
        self.lost["neighbours"] += placed - useful
        self.worth[job] += useful

    def waste(self, what: str, accelerator_s: float) -> None:
        """Note what was held without work."""
        self.lost[what] += accelerator_s

    def undo(self, job: int, what: str, accelerator_s: float) -> None:
        """Take what was useful for lost."""
        self.worth[job] -= accelerator_s
        self.lost[what] += accelerator_s

    def give_up(self, job: int, what: str) -> None:
        """All that the job did was for nothing."""
        self.undo(job, what, self.worth[job])

    def losses(self) -> Losses:
        """Return the sums so far."""
        return Losses(sum(self.worth), dict(self.lost))
