"""Turns decisions about gangs into orders of a world, and its reports of ends into what they mean for the jobs.

`eunomia run` and the service have one each. It reads no clock, and its orders have no effect until handed over.
"""

from __future__ import annotations

import math
from typing import Protocol

from eunomia.backends.orders import DrainNode, Extend, Halt, Launch, Order
from eunomia.backends.reports import GangEnded


class Started(Protocol):
    """A job and its last start, as a run or a service keeps it."""

    @property
    def saved_steps(self) -> float:
        """Steps in its checkpoint."""
        ...

    epoch: int
    seats: tuple[int, ...]  # () = its stop was ordered
    shared: bool  # a partner has the same seats
    ended_epoch: int  # the last epoch whose gang has ended
    losses: int  # starts in a row that ended through no fault of the job, without progress between them
    lost_at: float  # steps in its checkpoint at the last of them; -1 = there was none
    finished_early: bool  # it finished while it was being stopped

    def launch(self, number: int, adopt_only: bool) -> Launch:
        """Return the order that starts its gang."""
        ...


class Driver:
    """Numbers orders, and knows what an end means.

    A job that was lost more than `most_losses` times in a row, and whose checkpoints did not advance meanwhile, failed.
    """

    def __init__(self, next_order: int = 1, most_losses: float = math.inf) -> None:
        self.next_order, self.most_losses = next_order, most_losses
        self.orders: list[Order] = []  # not handed over yet

    def take_orders(self) -> list[Order]:
        """Return the orders since the last call."""
        orders, self.orders = self.orders, []
        return orders

    def start(
        self, job: Started, epoch: int, seats: tuple[int, ...], *, shared: bool, adopt_only: bool = False
    ) -> bool:
        """Order a start; False if there is nothing to start, as the job finished while it was being stopped."""
        job.epoch, job.seats, job.shared = epoch, seats, shared
        if job.finished_early:
            job.ended_epoch = epoch
            return False
        self.launch(job, adopt_only)
        return True

    def launch(self, job: Started, adopt_only: bool = False) -> None:
        """Order the start of a gang; with `adopt_only` it was running, so it is only looked for."""
        self.orders.append(job.launch(self._number(), adopt_only))

    def stop(self, job_id: str, epoch: int, *, save: bool) -> None:
        """Order the end of a gang; without `save` it gets no time for a checkpoint."""
        self.orders.append(Halt(self._number(), job_id, epoch, save))

    def extend(self, job_id: str, epoch: int, end_s: float) -> None:
        """Order that a gang runs on until another time."""
        self.orders.append(Extend(self._number(), job_id, epoch, end_s))

    def set_node(self, node: int, reason: str) -> None:
        """Tell an engine that a node has left service, or that it has come back (reason "")."""
        self.orders.append(DrainNode(self._number(), node, reason))

    def resend(self, job_id: str, job: Started, *, was_launched: bool) -> None:
        """Order what a world that knows nothing needs for the last gang of a job, if that has not ended."""
        if job.ended_epoch < job.epoch:
            self.launch(job, adopt_only=was_launched)
            if not job.seats:
                self.stop(job_id, job.epoch, save=True)

    def end(self, job: Started, report: GangEnded) -> str:
        """Take in that the gang of a job has ended; return what that means.

        The job is "finished", has "failed", or waits: it was "stopped" by an order, or "lost" through no fault of its
        own. Where it finished while it was being stopped, its next start is its end.
        """
        job.ended_epoch = job.epoch
        if not job.seats:
            job.finished_early = report.outcome == "finished"
            return "stopped"
        if report.outcome == "finished":
            return "finished"
        if report.outcome == "lost" and not report.by_restart:
            advanced = job.saved_steps > job.lost_at
            job.losses, job.lost_at = 1 if advanced else job.losses + 1, job.saved_steps
        return "failed" if report.outcome == "failed" or job.losses > self.most_losses else "lost"

    def _number(self) -> int:
        self.next_order += 1
        return self.next_order - 1
