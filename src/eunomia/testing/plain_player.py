"""Plays a ranked order as its definition reads: at each moment it sorts all jobs and walks all of them.

The oracle of `backends.simulated.implied_moments`. No reservations, drawn types, ties by the last order or failures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.view import View
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.testing.policy_rules import rank_keys
from eunomia.testing.small_worlds import SmallWorld


@dataclass
class _Played:
    """One job: what it has done, and how it runs."""

    job: Job
    rates: list[float]  # (type,) steps/s
    on_type: int = -1  # -1 = it waits
    rate: float = 0.0
    width: int = 0  # accelerators that it holds
    done: float = 0.0  # steps up to `since`, from when on it makes progress
    since: float = 0.0
    service: float = 0.0  # accelerator-seconds up to `held_since`
    held_since: float = 0.0
    is_new: bool = True

    def steps_at(self, at: float) -> float:
        return self.done + max(at - self.since, 0.0) * self.rate

    def service_at(self, at: float) -> float:
        return self.service + (at - self.held_since) * self.width

    def end(self) -> float:
        return self.since + max(self.job.total_steps - self.done, 0.0) / self.rate if self.rate else math.inf

    def move(self, type: int, at: float, overheads: Overheads) -> None:
        """Stop, if it runs, and start on a type, -1 = wait from now on."""
        self.done, self.service = self.steps_at(at), self.service_at(at)
        self.on_type, self.rate, self.width = type, 0.0, 0
        if type >= 0:
            self.rate, self.width, self.held_since = self.rates[type], self.job.scale_factor, at
            self.since, self.is_new = at + overheads.of(first=self.is_new, size=self.width), False


@dataclass
class PlainRun:
    """What happened to jobs, with its time."""

    starts: list[tuple[float, str, int]] = field(default_factory=list)  # with the type
    stops: list[tuple[float, str]] = field(default_factory=list)
    ends: list[tuple[float, str]] = field(default_factory=list)


def play_plainly(policy: RankedOrder, world: SmallWorld, overheads: Overheads) -> PlainRun:
    """Play a world, whose jobs are in the order of submission, until nothing more can happen."""
    jobs, topology, found, there = world.jobs, world.topology, PlainRun(), list[_Played]()
    capacity, at, again_at = topology.capacity(), -math.inf, math.inf
    while True:
        at = min([again_at, *(job.submitted for job in jobs if job.submitted > at), *(one.end() for one in there)])
        if at == math.inf:
            return found
        found.ends += [(at, one.job.job_id) for one in there if one.end() == at]
        there = [one for one in there if one.end() > at]
        come = [job for job in jobs if job.submitted == at]
        there += [_Played(job, world.speeds.solo_throughput(job.job_type, job.scale_factor).tolist()) for job in come]
        columns = {
            "capacity": capacity,
            "remaining": np.array([max(one.job.total_steps - one.steps_at(at), 0.0) for one in there]),
            "scale_factor": np.array([one.job.scale_factor for one in there]),
            "service": np.array([one.service_at(at) for one in there]),
            "throughput": np.array([one.rates for one in there]).reshape(-1, len(topology.types)),
            "weight": np.array([one.job.weight for one in there]),
        }
        view = View(at=at, types=topology.types, jobs=len(there), columns=columns, memory={})
        key = rank_keys(policy.rank.key, policy.rank.quantum, view).tolist()
        line = sorted(range(len(key)), key=key.__getitem__)  # of equal ones the earlier submission first
        types = dict(zip(line, _walk(policy, [there[m] for m in line], capacity.tolist()), strict=True))
        again_at = _first_fall(line, types, key, view, policy.rank.quantum) if policy.rank.changes else math.inf
        moved = [(one, types[m]) for m, one in enumerate(there) if types[m] != one.on_type]
        found.stops += [(at, one.job.job_id) for one, _ in moved if one.on_type >= 0]
        found.starts += [(at, one.job.job_id, type) for one, type in moved if type >= 0]
        for one, type in moved:
            one.move(type, at, overheads)


def _walk(policy: RankedOrder, line: list[_Played], capacity: list[float]) -> list[int]:
    """Return on which type each job of the line is to run, -1 = it waits: the fastest that has room."""
    recall, chosen, is_stopped = policy.info.mechanism.recall, list[int](), False
    free = [c - sum(one.width for one in line if one.on_type == k and not recall) for k, c in enumerate(capacity)]
    for one in line:
        if one.on_type >= 0 and not recall:
            chosen.append(one.on_type)
            continue
        size = one.job.scale_factor
        can = [k for k, rate in enumerate(one.rates) if rate > 0 and size <= capacity[k]]
        room = [k for k in can if size <= free[k] and not is_stopped]
        is_stopped |= policy.misfit == "stop" and bool(can) and not room
        chosen.append(max(room, key=lambda k: one.rates[k], default=-1))  # of equal ones the first
        free[chosen[-1]] -= size if room else 0
    return chosen


def _first_fall(line: list[int], types: dict[int, int], key: list[float], view: View, quantum: float) -> float:
    """Return when the level of a running job first puts it behind any that waits."""
    falls = (
        view.at + ((key[n] + (n > m)) * quantum - view.service[m]) / view.scale_factor[m]
        for place, m in enumerate(line)
        for n in line[place + 1 :]
        if types[m] >= 0 > types[n]
    )
    return max(min(falls, default=math.inf), math.nextafter(view.at, math.inf))
