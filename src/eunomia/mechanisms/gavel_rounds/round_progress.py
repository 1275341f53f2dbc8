"""Gavel's accounting and rounds without a backend: takes jobs and allocations, returns rounds.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 5, as its published simulator does it (docs/gavel-mechanism.md gives the order of steps).
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.mechanisms.gavel_rounds.config import GavelRounds
from eunomia.mechanisms.gavel_rounds.job_pairs import JobPairs
from eunomia.mechanisms.gavel_rounds.progress_accounting import (
    ACTIVE,
    DONE,
    ProgressArrays,
    Round,
    plan,
    record_round,
    start_afresh,
)
from eunomia.mechanisms.gavel_rounds.round_placement import remember, seat
from eunomia.mechanisms.gavel_rounds.round_priorities import gather, take
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.topology import Topology
from eunomia.placement.radix_sort import rising

Beside = Callable[[int, int], Floats]  # rows of two jobs → steps/s of the first beside the second, (type,)
_SHUFFLES = 5  # what the published simulator adds to its seed for the order of types


class JobProgress(GrowingColumns):
    """Progress of each job, one row each."""

    size: Ints
    rate: Floats  # (job, type)
    total: Floats  # steps
    done: Floats
    failures: Ints  # rounds in a row in which it failed
    outcome: Ints
    ended: Floats  # when it did its last step, by the clock
    held: Floats  # (job, type) seconds on seats

    def __init__(self, types: int):
        super().__init__(
            {
                "size": (np.int64, 0),
                "rate": (np.float64, 0.0, types),
                "total": (np.float64, 0.0),
                "done": (np.float64, 0.0),
                "failures": (np.int64, 0),
                "outcome": (np.int64, ACTIVE),
                "ended": (np.float64, np.nan),
                "held": (np.float64, 0.0, types),
            }
        )

    @property
    def arrays(self) -> ProgressArrays:
        """The columns that kernels read and write."""
        return ProgressArrays(self.total, self.done, self.failures, self.outcome, self.ended, self.held)


class RoundClock:
    """One instance is one run. Rows of jobs are those of the caller's table, handed in in ascending order."""

    def __init__(self, rounds: GavelRounds, topology: Topology, seed: int, beside: Beside | None = None):
        self.rounds, self.topology = rounds, topology
        self.jobs, self.entries = JobProgress(len(topology.types)), JobPairs(len(topology.types))
        self.busy = np.zeros(topology.devices)  # (device,) seconds, as Gavel counts them
        self.charged = np.zeros(len(topology.types))  # accelerator-seconds, as Gavel counts them
        self.opened = 0  # rounds so far
        self.stale = True
        self._beside = beside
        self._coming: list[int] = []
        self._left = False  # a job was withdrawn during a round
        self._last_reset = 0.0
        self._ended: float | None = None  # end of the last round
        self.now: Round | None = None
        self._all_received = np.zeros(len(topology.types))
        self._devices = np.argsort(topology.type, kind="stable")
        self._begin = np.searchsorted(topology.type[self._devices], np.arange(len(topology.types) + 1))
        self._capacity = np.diff(self._begin)
        self._chain = np.full(topology.devices, -1, dtype=np.int64)
        self._shuffler = random.Random(seed + _SHUFFLES)
        named = rounds.visit or topology.types
        self._visit = [topology.types.index(name) for name in named if name in topology.types]

    # ---- arrivals and departures ----------------------------------------------------------------------------------

    def submit(self, size: int, total: float, rate: Floats) -> int:
        """Add a job, considered when the round ends. Returns its row; rate (type,) steps/s."""
        row = self.jobs.add()
        self.jobs.size[row], self.jobs.total[row], self.jobs.rate[row] = size, total, rate
        self._coming.append(row)
        return row

    def withdraw(self, row: int) -> None:
        """Withdraw a job. Its steps of the present round still count."""
        if row in self._coming:
            self._coming.remove(row)
        self.jobs.outcome[row], self._left = DONE, True
        if self.now is None:
            self._forget_leavers()

    def admit(self) -> None:
        """Add the jobs that arrived."""
        for row in self._coming:
            self._enter(row)
        self._coming.clear()

    def _enter(self, row: int) -> None:
        entries, size, rate = self.entries, int(self.jobs.size[row]), self.jobs.rate[row]
        first, second, rates, mates = [row], [-1], [rate], [np.zeros_like(rate)]
        if self.rounds.pairs and self._beside is not None:
            alone = (entries.second[: len(entries)] < 0) & (entries.size[: len(entries)] == size)
            for other in entries.first[: len(entries)][alone].tolist():
                first.append(other)
                second.append(row)
                rates.append(self._beside(other, row))
                mates.append(self._beside(row, other))
        entries.append(np.array(first), np.array(second), size, np.array(rates), np.array(mates), self.rounds.credit)
        self.stale = True

    # ---- a round's end ---------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Return whether a round is open in which a job runs."""
        return self.now is not None

    @property
    def end(self) -> float:
        """Return when the present round ends; inf when no job runs."""
        return np.inf if self.now is None else self.now.end

    @property
    def ended_at(self) -> float:
        """Return when the last round ended; 0 before the first has."""
        return 0.0 if self._ended is None else self._ended

    def close(self) -> Ints:
        """Record the round that has ended; return the rows of the jobs that left by it, done or dropped."""
        now, self.now = self.now, None
        if now is None:
            return NO_INTS
        began, self._ended = self.ended_at, now.end
        jobs = self.jobs
        self.stale |= record_round(
            began if self.rounds.charge_gaps else now.at, np.argsort(-now.finish, kind="stable"), self._all_received,
            self.rounds.most_failures, self.rounds.split_steps, self.busy, self.charged,
            *now, *self.entries.arrays, *jobs.arrays,
        )  # fmt: skip
        ran = np.concatenate((now.first, now.second[now.second >= 0]))
        left = np.sort(ran[jobs.outcome[ran] != ACTIVE])
        if self._left or len(left):
            self._forget_leavers()
        return left

    def _forget_leavers(self) -> None:
        n, outcome = len(self.entries), self.jobs.outcome
        first, second = self.entries.first[:n], self.entries.second[:n]
        self._left = False
        self.entries.keep((outcome[first] == ACTIVE) & ((second < 0) | (outcome[second] == ACTIVE)))
        self.stale = True

    # ---- the allocation --------------------------------------------------------------------------------------

    def due(self, at: float) -> bool:
        """Return whether the policy is to be asked now."""
        return self.stale and (at - self._last_reset >= self.rounds.solve_gap_s or self._last_reset == 0)

    def forget_last_reset(self) -> None:
        """Allow an ask before the interval is over: no job runs and none is to come."""
        self._last_reset = 0.0

    def count_afresh(self, at: float) -> None:
        """Carry over deficits and start counting for a new allocation."""
        entries = self.entries
        start_afresh(at - self._last_reset, self.rounds.credit, len(entries), self._all_received, *entries.arrays)
        self._last_reset, self.stale = at, False

    def adopt(self, known: Ints, first: Ints, second: Ints, type: Ints, x: Floats) -> None:
        """Take over an allocation of the jobs `known`: x (row,) for each job or pair on a type."""
        entries, n = self.entries, len(self.entries)
        is_known = np.zeros(len(self.jobs), dtype=np.bool_)
        is_known[known] = True
        mates = entries.second[:n]
        entries.known[:n] = is_known[entries.first[:n]] & ((mates < 0) | is_known[mates])
        entries.x[:n] = 0.0
        at = entries.find(first, second)
        here = at >= 0
        entries.x[at[here], type[here]] = x[here]

    # ---- a round's beginning ---------------------------------------------------------------------------------

    def open(self, at: float) -> Round:
        """Choose and seat the next round, which begins now; it may be empty."""
        entries, jobs, n = self.entries, self.jobs, len(self.entries)
        chosen, on = self._chosen()
        sizes, placed = entries.size[chosen], entries.known[chosen]
        if not self.rounds.idle_arrivals:
            placed = np.ones(len(chosen), dtype=np.bool_)
        seats, start = np.empty(int(sizes.sum()), np.int64), np.empty(len(chosen) + 1, np.int64)
        kept = np.empty(len(chosen), dtype=np.bool_)
        arrays = entries.arrays
        seated = seat(
            chosen, on, sizes, placed, self._devices, self._begin, self._chain, self.rounds.sticky, seats, start, kept,
            *arrays,
        )  # fmt: skip
        entry, on, kept = chosen[seated], on[seated], kept[seated]
        remember(entry, on, start, seats, self._chain, n, *arrays)
        steps, mate_steps, finish = np.empty((3, len(seated)))
        works = np.empty(len(seated), dtype=np.bool_)
        first, second = entries.first[entry], entries.second[entry]
        paired = bool(self.rounds.pairs and (second >= 0).any())
        rows = at, entry, first, second, on, start, seats, kept, steps, mate_steps, finish, works
        whole, split = self.rounds.most_failures > 0, self.rounds.split_steps
        plan(self.rounds.round_s, whole, split, jobs.total - jobs.done, *rows, np.inf, paired, *arrays)
        found = Round(*rows, float(finish.max(initial=-np.inf)), paired)
        self.opened += 1
        self.now = found if len(entry) else None
        return found

    def _chosen(self) -> tuple[Ints, Ints]:
        """Return entries and their types, in the order in which they were chosen."""
        arrays, n, rules = self.entries.arrays, len(self.entries), self.rounds
        visit = list(self._visit)
        if rules.shuffled:
            self._shuffler.shuffle(visit)
        lists = [visit] if rules.global_queue else [[j] for j in visit]
        free, taken = self._capacity.copy(), np.zeros(len(self.jobs), dtype=np.bool_)
        most = n * len(lists[0]) if lists else 0
        entry, type = np.empty(most, np.int64), np.empty(most, np.int64)
        keys, picked = np.empty((3, most)), 0
        chosen, on = np.empty(n, np.int64), np.empty(n, np.int64)
        for types in lists:
            group = np.array(types)
            for spare in (False, True) if rules.fill else (False,):
                m = gather(spare, group, n, self._all_received, free, taken, entry, type, keys, *arrays)
                if m:
                    picked = take(
                        rising(-keys[0, :m]), group, entry, type, keys, free, taken, rules.overtake, chosen, on,
                        picked, *arrays,
                    )  # fmt: skip
                if not free[group].any():
                    break
        return chosen[:picked], on[:picked]
