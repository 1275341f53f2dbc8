"""The true state of one job in the detailed simulation: its steps, its limits and its rate."""

from __future__ import annotations

import math

from eunomia.backends.simulated.loss_accounting import TOLERANCE, LeaseSpan, LossAccount
from eunomia.model.events import JobCancelled, JobFailed, JobFinished
from eunomia.model.job import Job

_SAME = 1e-12  # relative: steps that differ by rounding alone


class Gang:
    """One job. It makes progress from `since` on at `rate`, until its steps are done or it fails."""

    __slots__ = (
        "alone",
        "beside",
        "chance_at",
        "done",
        "ends",
        "epoch",
        "fails_at",
        "failures",
        "goal",
        "job",
        "killed",
        "lease",
        "limit",
        "mark",
        "partner",
        "pending_report",
        "ran",
        "rate",
        "row",
        "safe",
        "saved",
        "seats",
        "since",
        "start_cause",
        "trial",
        "trial_s",
        "type",
        "watched",
        "watched_at",
    )

    def __init__(self, row: int, job: Job, share: float, enough: float = 1.0):
        self.row, self.job = row, job
        self.killed = share < 1  # its user kills it after that share of its steps
        self.goal = job.total_steps * share * enough  # steps; of the two parts one is 1
        self.epoch, self.failures, self.trial = 0, 0, 0
        self.ran, self.saved = False, True  # was started before; wrote a checkpoint at its last stop
        self.trial_s = math.nan  # seconds of work until this trial fails; inf = it will not, nan = not drawn yet
        self.done = self.safe = 0.0  # steps up to `since`; those that a loss cannot take
        self.limit = math.inf  # steps that its lease lets it do from `since` on
        self.rate = self.alone = self.beside = 0.0  # steps/s: now, alone in the best place, beside its partner there
        self.since = self.mark = 0.0  # its work is known up to the one, its seats are accounted for up to the other
        self.chance_at = math.inf  # when this lease fails by chance
        self.ends = self.fails_at = math.inf  # when its work ends, and when it fails if it has not ended before
        self.watched = self.watched_at = math.inf  # steps to report to its user, and when they are done
        self.pending_report: JobFinished | JobFailed | JobCancelled | None = None  # its end, reported or not
        self.partner: Gang | None = None
        self.seats: tuple[int, ...] = ()
        self.type = 0
        self.start_cause = "start"  # loss that the time before `since` is booked on
        self.lease = LeaseSpan(0, 0.0)

    @property
    def group(self) -> tuple[int, ...]:
        """Rows of the jobs on its seats, its own first."""
        return (self.row,) if self.partner is None else (self.row, self.partner.row)

    @property
    def left(self) -> float:
        """Steps still to do."""
        return max(self.goal - self.done, 0.0)

    def predict_end(self) -> float:
        """Return when its work ends at this rate, in success or not; inf = its lease ends before."""
        finish = self.since + self.left / self.rate if self.left <= self.limit * (1 + _SAME) else math.inf
        self.fails_at = self.chance_at
        if self.trial_s < math.inf:  # a trial that is to fail does so at its last step at the latest
            work = min(self.trial_s * self.rate, self.left)
            if work <= self.limit:
                self.fails_at = min(self.chance_at, self.since + work / self.rate)
        self.ends = min(finish, self.fails_at)
        return self.ends

    def advance(self, at: float, account: LossAccount) -> None:
        """Do the steps up to `at`, and account for the seats since the last call."""
        if self.rate == 0 or at <= self.mark:
            return
        begin = min(max(self.since, self.mark), at)
        account.waste(self.start_cause, (begin - self.mark) * self.lease.seats)
        stop = min(at, self.fails_at)
        worked = self._work(stop) if stop > self.since else 0.0
        account.work(self.row, self.lease, worked)
        idle = at - begin - worked
        if idle > TOLERANCE * at:
            account.waste("standing" if self.pending_report is None else "unheard", idle * self.lease.seats)
        self.trial_s -= worked
        self.mark, self.since = at, max(self.since, at)

    def _work(self, at: float) -> float:
        """Do steps up to `at`; return the seconds that they took."""
        most = min(self.limit, self.left)
        if at >= self.since + most / self.rate:
            seconds, steps = most / self.rate, most
        else:
            seconds = at - self.since
            steps = seconds * self.rate
        self.done, self.limit = self.done + steps, self.limit - steps
        return seconds

    def fall_back(self, to: float, account: LossAccount) -> None:
        """Lose the steps done since the last checkpoint."""
        account.undo(self.row, "rolled_back", (self.done - to) * self.lease.size / self.alone)
        self.done = self.safe = to
