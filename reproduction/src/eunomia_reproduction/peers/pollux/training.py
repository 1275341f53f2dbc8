"""The truth about one job of Pollux' simulator: progress by epochs, at a speed that its placement and batch decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eunomia_reproduction.peers.pollux.profile import Batch, Placement, Profile, seconds_per_step, split

RESTART_S = 30.0


@dataclass(slots=True, kw_only=True)
class PolluxJob:
    """One job. `batch` is the global batch size that its user set; `accelerators` the gang asked for."""

    name: str
    profile: Profile
    submitted: float
    accelerators: int
    batch: int
    completed: float | None = None  # seconds
    epoch: int = 0
    _at: float = field(default=0.0)
    _restart: float = 0.0  # seconds left of it
    _placement: Placement = ()
    _split: Batch = field(default_factory=lambda: Batch(0, 0))
    _progress: float = 0.0  # steps of the smallest batch size

    def place(self, placement: Sequence[int]) -> None:
        """Start anew on so many accelerators of each machine; on none, stop."""
        self._placement = tuple(placement)
        if placement:
            n = sum(placement)
            alone = n == 1 and self.batch > self.profile.least_batch
            self._split = split(self.profile, self.batch, n, at_least=int(alone))
            self._restart = RESTART_S

    def step(self, seconds: float) -> None:
        """Let that much time pass."""
        end = self._at + seconds
        if self._placement:
            self._wait_for_restart(seconds)
            while self._at < end and self.completed is None:
                self._train(end)
        self._at = end

    def _wait_for_restart(self, seconds: float) -> None:
        waited = min(self._restart, seconds)
        self._restart -= waited
        self._at += waited

    def _train(self, end: float) -> None:
        """Train until the end of the epoch, rounded to a second, or until `end`."""
        samples = self._split.total(sum(self._placement))
        step = seconds_per_step(self.profile, self._placement, self._split)
        goodput = self.profile.gain(samples, self.epoch) / step
        goal = self.profile.end_of_epoch(self.epoch)
        if self._progress + goodput * (end - self._at) < goal:
            self._progress += goodput * (end - self._at)
            self._at = end
            return
        self._at += round((goal - self._progress) / goodput)
        self._progress = goal
        if self.epoch == self.profile.last_epoch:
            self.completed = self._at
        self.epoch += 1

    def remaining_steps(self) -> float:
        """Return the steps left by the end of the last epoch, as the Optimus of the artifact reads them: at least 1."""
        last = self.profile.last_epoch
        if self.epoch >= last:
            return 1.0
        return self.profile.iterations(self.batch, last) - self.profile.iterations(self.batch, self.epoch)

    def believed_step_time(self, accelerators: int) -> float:
        """Return the seconds of a step on so many accelerators of machines of four, filled one after the other."""
        whole, rest = divmod(accelerators, 4)
        placement = (4,) * whole + (rest,) * (rest > 0)
        return seconds_per_step(
            self.profile, placement, split(self.profile, self.batch, accelerators, at_least=int(accelerators == 1))
        )
