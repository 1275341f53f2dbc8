"""Rungs on which trials wait for each other, as in successive halving of its paper.

A trial that comes to a rung rests there, with its progress kept, until all others that stand on the rung have come to
it or have ended. Then the best ⌊n η^{−i−1}⌋ of rung i go on together and the others are given up; a trial that ended
before its time is none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.model.job import Job
from eunomia.tuners.brackets import Bracket, RungDecision


class SynchronousRungs(Bracket):
    """Trials that compete with each other and wait for each other on every rung."""

    def __init__(self, trials: Sequence[Job], rungs: int, eta: int):
        super().__init__(trials, rungs, eta)
        self._standing = [set(self._jobs), *(set[str]() for _ in range(rungs))]  # on each rung, come to it or not yet

    def report(self, job_id: str, loss: float) -> RungDecision:
        """Note a trial's loss at its next rung; it rests there unless it is the last to come."""
        rung = self._rung[job_id]
        if rung == self._rungs or job_id in self._board[rung]:
            return RungDecision()
        self._board[rung][job_id] = loss
        return self._decided(rung) or RungDecision(rest=[job_id])

    def leave(self, job_id: str) -> RungDecision:
        """Note that a trial has ended, so that nobody waits for it."""
        rung = self._rung[job_id]
        self._standing[rung].discard(job_id)
        if rung == self._rungs:
            return RungDecision()
        self._board[rung].pop(job_id, None)
        return self._decided(rung) or RungDecision()

    def _decided(self, rung: int) -> RungDecision | None:
        """Return who goes on from a rung and who does not; None while somebody has yet to come."""
        standing, board = self._standing[rung], self._board[rung]
        if not standing or len(board) < len(standing):
            return None
        ranked = sorted(standing, key=lambda name: (board[name], name))
        keep = max(len(self._jobs) // self._eta ** (rung + 1), 1)
        for name in ranked[:keep]:
            self._rung[name] += 1
        self._standing[rung + 1].update(ranked[:keep])
        standing.clear()
        return RungDecision(out=ranked[keep:], go=ranked[:keep])
