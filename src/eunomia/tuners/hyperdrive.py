"""HyperDrive's POP: trials are promising, opportunistic or poor.

    p_j = P(trial j reaches the target before its steps are done) = Φ( (ln y* − ln l_j) / (σ (1 − progress)) )

l_j is the final loss predicted by the curve through the last three reports. Poor trials, p_j < 0.05, are cancelled; of
the others those with p_j ≥ p*, which maximises min(#{j: p_j ≥ p}, S p) over p for S slots, are promising and get a
higher weight. S is the number of accelerators of the search. The app is finished when a trial reaches the target y*.

J. Rasley et al., "HyperDrive: Exploring Hyperparameters with POP Scheduling", Middleware 2017; the curve through three
points replaces its ensemble of curve models, and σ their spread. Not as published: p_j is the chance within the trial's
steps, as there is no deadline T_max; no trial is poor because its loss is beyond a threshold of the domain (the kill
threshold); and promising trials have no slots of their own, but a weight by which the policy orders jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.model import elementary
from eunomia.model.events import JobUpdated
from eunomia.model.job import Job
from eunomia.model.rounding import rounded
from eunomia.tuners.tuner import NOTHING, Trials, TunerRequests, Wish

POOR = 0.05
PROMISING_WEIGHT = 4.0
REPORTS = 10  # of a trial
TOLERANCE = 1e-9  # of steps, relative
SPREAD = 0.5  # σ of the logarithm of a loss predicted at progress 0


def threshold(chances: Sequence[float], slots: int) -> tuple[float, int]:
    """Return p*, the largest if several are optimal, and the number of slots for promising trials."""
    effective = {p: min(sum(other >= p for other in chances), slots * p) for p in chances}
    best = max(effective.values(), default=0.0)
    at = max((p for p, value in effective.items() if value >= best), default=1.0)
    return at, math.floor(best)


def predict_loss(reports: Sequence[tuple[float, float]]) -> float:
    """Return the final loss of the curve floor + c / (1 + rate p) through the last three reports (progress, loss).

    If the points are on no falling curve, the prediction is the last loss.
    """
    (p0, l0), (p1, l1), (p2, l2) = reports[-3:]
    first, second = (l0 - l1) / (p1 - p0), (l1 - l2) / (p2 - p1)
    if not first > second > 0:
        return l2
    # (l0 − l1) / (l1 − l2) = (p1 − p0)(1 + rate p2) / ((p2 − p1)(1 + rate p0))
    ratio = first / second
    rate = (ratio - 1) / (p2 - ratio * p0) if p2 > ratio * p0 else math.inf
    if math.isinf(rate):
        return l2
    drop = (l1 - l2) * (1 + rate * p1) * (1 + rate * p2) / (rate * (p2 - p1))
    floor = l2 - drop / (1 + rate * p2)
    return max(floor + drop / (1 + rate), 0.0)


class HyperDrive(Trials):
    """Cancels poor trials, and raises the weight of promising ones.

    `slots` is S, the accelerators of the search; without it the trials alive, at most `parallel` and `accelerators`,
    those of the cluster.
    """

    def __init__(
        self,
        target: float,
        *,
        slots: int | None = None,
        accelerators: int | None = None,
        parallel: int | None = None,
        most: int | None = None,
    ):
        super().__init__(parallel=parallel, most=most)
        self._target, self._given_slots = target, slots
        self._bounds = [bound for bound in (parallel, accelerators) if bound is not None]
        self._reports: dict[str, list[tuple[float, float]]] = {}
        self._chance: dict[str, float] = {}
        self._weight: dict[str, float] = {}

    @property
    def slots(self) -> int:
        """S: the number of accelerators of the search."""
        return self._given_slots or min([len(self.alive), *self._bounds])

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Watch all trials."""
        super().begin(app, trials)
        self._reports = {name: [] for name in self.jobs}
        return TunerRequests({name: job.total_steps / REPORTS for name, job in self.jobs.items()})

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Classify the trials; reports before the next due one are ignored."""
        total = self.jobs[job_id].total_steps if job_id in self.jobs else math.inf
        due = total * (len(self._reports.get(job_id, ())) + 1) / REPORTS
        if job_id not in self.alive or steps < due * (1 - TOLERANCE):
            return NOTHING
        if loss <= self._target:
            return self._reach_target(job_id, loss)
        reports = self._reports[job_id]
        reports.append((steps / total, loss))
        events: list[Wish] = []
        if len(reports) >= 3:
            self._chance[job_id] = self._chance_of(reports)
            if self._chance[job_id] < POOR:
                del self._chance[job_id]
                events += self.drop([job_id])
                events += self.finish()
        events += self._update_weights()
        following = len(reports) + 1
        watch = {job_id: total * following / REPORTS} if job_id in self.alive and following < REPORTS else {}
        return TunerRequests(watch, events)

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Finish the app if the trial reached the target at its end."""
        if not math.isnan(loss) and loss <= self._target and job_id in self.alive:
            return self._reach_target(job_id, loss, ended=True)
        self._chance.pop(job_id, None)
        return super().ended(job_id, loss)

    def _reach_target(self, job_id: str, loss: float, *, ended: bool = False) -> TunerRequests:
        """Finish the app: cancel all trials, including this one unless it has ended."""
        self._best = min(self._best, (loss, job_id))
        if ended:
            del self.alive[job_id]
        return TunerRequests(events=[*self.drop(list(self.alive)), *self.finish()])

    def _chance_of(self, reports: Sequence[tuple[float, float]]) -> float:
        progress = reports[-1][0]
        end, spread = max(predict_loss(reports), 1e-12), SPREAD * (1 - progress)
        if spread <= 0:
            return float(end <= self._target)
        below = (elementary.log(self._target) - elementary.log(end)) / spread
        return float(rounded(0.5 * (1 + math.erf(below / math.sqrt(2)))))

    def _update_weights(self) -> list[Wish]:
        """Return the changes of weights."""
        at, slots = threshold(list(self._chance.values()), self.slots)
        ranked = sorted(self._chance, key=lambda name: (-self._chance[name], name))
        promising = {name for name in ranked[:slots] if self._chance[name] >= at}
        changed: list[Wish] = []
        for name in self.alive:
            weight = self.jobs[name].weight * (PROMISING_WEIGHT if name in promising else 1.0)
            if weight != self._weight.get(name, self.jobs[name].weight):
                self._weight[name] = weight
                changed.append(JobUpdated(name, weight=weight))
        return changed
