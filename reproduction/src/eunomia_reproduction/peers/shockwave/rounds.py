"""Shockwave's fork of Gavel's simulator: its rounds to the letter, on one type of accelerators.

What it changed: rounds of 120 s, at least 1,000 s between two questions to the policy, 20 s lost in a round by jobs
that did not run in the round before (unless the round is its short last one), batch sizes that change, and no job is
dropped. As in Gavel a round lasts until the last of its jobs has done its steps, a new job waits for the next question
with its accelerators idle, and narrow jobs overtake wide ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.peers.shockwave.training import BatchScalingJob

ROUND_S = 120.0
SOLVE_GAP_S = 1000.0
RESUME_S = 20.0
SHORT_S = 5.0  # a last round so much shorter than others is not charged
MOST_FAILURES = 5  # after which a job that has nothing left to do is taken as done

Allocate = Callable[[Sequence[BatchScalingJob], float], Floats]  # jobs, now → x (job,)


@dataclass(slots=True)
class _Account:
    """What the mechanism knows of one job."""

    training: BatchScalingJob
    x: float = 0.0
    known: bool = False  # the last answer speaks of it
    received: float = ROUND_S / 2  # seconds since the last question, and half a round
    deficit: float = 0.0
    planned: int = 0  # steps of the present round
    failures: int = 0  # in a row
    finish: float = 0.0
    ran_before: bool = False  # in the round before the present one


@dataclass(slots=True)
class ShockwaveRounds:
    """One run. `completed` are the times at which jobs were done, by name."""

    capacity: int
    allocate: Allocate
    completed: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    _active: list[_Account] = field(default_factory=list)
    _running: list[_Account] = field(default_factory=list)
    _all_received: float = 0.0
    _last_reset: float = 0.0
    _stale: bool = True

    def run(self, trainings: Sequence[BatchScalingJob]) -> float:
        """Run jobs, in order of submission, until all are done or no job is left; return the time then."""
        coming, now, began, first = list(trainings), 0.0, 0.0, True
        ended: float | None = None
        while coming or self._active:
            if self._running:
                began, now = began if ended is None else ended, max(account.finish for account in self._running)
                ended = now
                self._close(began, first)
                first = False
            elif coming:
                now = coming[0].submitted
            else:
                break
            for account in self._active:
                account.training.look()
            while coming and coming[0].submitted <= now:
                self._active.append(_Account(coming.pop(0)))
                self._stale = True
            if self._active:
                self._open(now)
        return now

    def _close(self, began: float, first: bool) -> None:
        """Book what the round was worth, the latest first."""
        for account in sorted(self._running, key=lambda account: -account.finish):
            seconds = account.finish - began
            if account.planned <= 0 and seconds <= 0:
                self._fail(account)
            else:
                self._book(account, seconds, resumed=not first and not account.ran_before)
            account.training.change()
        for account in self._active:
            account.ran_before = account.finish > 0.0
        if any(account.training.name in self.completed for account in self._running):
            self._stale = True
            self._active = [account for account in self._active if account.training.name not in self.completed]
        self._running = []

    def _book(self, account: _Account, seconds: float, *, resumed: bool) -> None:
        training, steps = account.training, account.planned
        if resumed and seconds > ROUND_S - SHORT_S:
            steps = int(steps * ((seconds - RESUME_S) / seconds))
            seconds -= RESUME_S
        account.failures = 0
        training.done += steps
        training.ran += seconds
        account.received += seconds
        self._all_received += seconds
        if training.over:
            self.completed[training.name] = account.finish

    def _fail(self, account: _Account) -> None:
        """Count a round in which a job had nothing left to do: a larger batch had made it look further than its end."""
        account.failures += 1
        self._stale = True
        if account.failures == MOST_FAILURES:
            self.completed[account.training.name] = account.finish

    def _open(self, now: float) -> None:
        """Choose the jobs that run next, and plan how far each of them gets."""
        if self._stale and (self._last_reset == 0.0 or now - self._last_reset >= SOLVE_GAP_S):
            self._ask(now)
        left = self.capacity
        for account in sorted(self._active, key=self._rank):
            training = account.training
            account.finish = 0.0
            if training.rate > 0 and training.accelerators <= left:
                left -= training.accelerators
                if account.known:
                    account.planned = min(int(training.rate * ROUND_S), training.total - training.done)
                    account.finish = now + max(account.planned / training.rate, 0.0)
        self._running = [account for account in self._active if account.finish > 0.0]

    def _rank(self, account: _Account) -> tuple[float, float, float]:
        """Return what jobs are sorted by: share over part of the time received, then what is owed, then the share."""
        if not account.known or account.training.rate == 0:
            return 0.0, -account.deficit, -account.x
        part = account.received / self._all_received if self._all_received else 0.0
        return -(account.x / part if part > 0 else account.x * 1e9), -account.deficit, -account.x

    def _ask(self, now: float) -> None:
        """Carry over what is owed, and take a new allocation."""
        for account in self._active:
            account.deficit += account.x * (now - self._last_reset) - (account.received - ROUND_S / 2)
            account.received = ROUND_S / 2
        self._all_received = ROUND_S / 2 * len(self._active)
        shares = np.clip(self.allocate([account.training for account in self._active], now), 0.0, 1.0)
        for account, x in zip(self._active, shares.tolist(), strict=True):
            account.x, account.known = x, True
        self._last_reset, self._stale, self.asked = now, False, self.asked + 1
