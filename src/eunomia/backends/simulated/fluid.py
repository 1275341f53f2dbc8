"""The fluid simulation: accelerators divide at will, and jobs receive shares of time instead of seats.

Starts, checkpoints, machine failures and placement need seats, so they do not exist here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.rates import Rates
from eunomia.backends.simulated.virtual_clock import VirtualClock
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.decisions import Decision, SetShares
from eunomia.model.events import Event, JobFinished
from eunomia.model.held_time import LOST_TIME_REASONS, HeldTime
from eunomia.model.job import Job
from eunomia.model.job_table import job_array
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

_TOLERANCE = 1e-12  # of all steps of a job: what rounding leaves over of them is done
_NO_FLOATS: Floats = np.empty(0)


class FluidSimulation(VirtualClock):
    """True throughputs, and users who cancel jobs. No job is ever started: its epoch is 0."""

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        speeds: Speeds,
        *,
        faults: FaultModel | None = None,
        seed: int = 0,
    ):
        super().__init__(jobs, faults=faults, seed=seed)
        self._types, self._rates = topology.types, Rates(speeds, self._jobs)
        self._total = job_array(self._jobs, "total_steps", float)  # (job,) steps
        self._to_do = self._total.copy()  # (job,) steps at `_since`
        self._useful, self._sharing = np.zeros(len(self._jobs)), 0.0  # accelerator-seconds
        self._alive = np.ones(len(self._jobs), dtype=bool)
        self._cancelled = np.zeros(len(self._jobs), dtype=bool)
        self._job: Ints = NO_INTS  # (entry,) row of the job that receives
        self._x, self._rate = _NO_FLOATS, _NO_FLOATS  # (entry,) share of time; steps/s
        self._held, self._worth = _NO_FLOATS, _NO_FLOATS  # (entry,) accelerators, and those that are of use
        self._ends = _NO_FLOATS  # (entry,) when its job ends at these shares
        self._slack = _NO_FLOATS  # (entry,) seconds before that in which only rounding is left to do
        self._since = 0.0

    def losses(self, until: float) -> HeldTime:
        """Return what the accelerator-seconds received by the end of the run, `until`, were used for."""
        self._flow_to(until)
        lost = dict.fromkeys(LOST_TIME_REASONS, 0.0)
        lost["sharing"], lost["cancelled_jobs"] = self._sharing, float(self._useful[self._cancelled].sum())
        return HeldTime(float(self._useful[~self._cancelled].sum()), lost)

    # ---- what happens ----------------------------------------------------------------------------------------

    def _next_time(self) -> float:
        return float(self._ends.min(initial=math.inf))

    def _is_over(self, at: float) -> bool:
        if at < math.inf:
            return False
        self.given_up = (
            f"given up: nothing more will happen, and the last answer gives no share of time to "
            f"{self._unfinished:,} jobs that are not done"
        )
        return True

    def _happen_now(self) -> list[Event]:
        """Complete jobs whose remaining steps are within tolerance, so that simultaneous ends coincide."""
        due = (self._ends <= self._at + self._slack) & (self._ends < math.inf)
        if not due.any():
            return []
        rows = np.unique(self._job[due])
        self._end(rows)
        return [JobFinished(self._register.ids[row], 0) for row in rows.tolist()]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Apply a decision at once."""
        if isinstance(decision, SetShares):
            self._set_shares(decision)
        else:
            super().carry_out(decision)

    def _refuse(self, row: int) -> None:
        self._end(np.array([row]))

    def _cancel(self, row: int) -> None:
        self._end(np.array([row]))
        self._cancelled[row] = True

    def _has_ended(self, row: int) -> bool:
        return not self._alive[row]

    def _set_shares(self, order: SetShares) -> None:
        """Set the shares of all jobs from now on."""
        self._flow_to(self._at)
        job, mate = self._register.rows(order.jobs), self._register.rows(order.partners)
        self._job, self._x = job, order.x
        self._rate, alone = self._speeds(job, mate, order)
        stuck = np.flatnonzero(self._rate <= 0)
        if len(stuck):
            name, type = self._register.ids[int(job[stuck[0]])], self._types[int(order.types[stuck[0]])]
            raise RuntimeError(f"job {name!r} was given time on {type}, where it cannot run")
        self._held = np.asarray(order.sizes * np.where(mate < 0, 1.0, 0.5))
        self._worth = order.sizes * self._rate / alone
        whole = np.bincount(job, self._x * self._rate, minlength=1)[job]
        self._ends, self._slack = np.asarray(self._at + self._to_do[job] / whole), _TOLERANCE * self._total[job] / whole

    def _speeds(self, job: Ints, mate: Ints, order: SetShares) -> tuple[Floats, Floats]:
        """Return steps/s of each entry, (entry,): at present, and without a partner."""
        rates = self._rates
        kind = rates.kind_of[rates.model[job], order.sizes]
        alone = rates.alone[kind, order.types]
        two = np.flatnonzero(mate >= 0)
        if not len(two):
            return alone, alone
        mine, other = kind[two], rates.kind_of[rates.model[mate[two]], order.sizes[two]]
        rates.look_up_pairs(mine, other)
        rate = alone.copy()
        rate[two] = rates.beside[rates.pair_of[mine, other], order.types[two]]
        return rate, alone

    def _flow_to(self, at: float) -> None:
        """Do the steps up to `at`."""
        elapsed, self._since = at - self._since, at
        if elapsed <= 0 or not len(self._job):
            return
        received = self._x * elapsed
        np.subtract.at(self._to_do, self._job, received * self._rate)
        np.add.at(self._useful, self._job, received * self._worth)
        self._sharing += float((received * (self._held - self._worth)).sum())

    def _end(self, rows: Ints) -> None:
        """End jobs; they keep what they received up to now."""
        self._flow_to(self._at)
        self._unfinished -= int(self._alive[rows].sum())
        self._alive[rows] = False
        left = np.isin(self._job, rows)
        self._x = np.where(left, 0.0, self._x)
        self._ends[left] = math.inf
