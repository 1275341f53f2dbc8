"""What observers hear, made into figures: JCT, queueing, utilisation, cost, finish-time fairness. Knows no world."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.decisions import Decision, Refuse, Start, Stop
from eunomia.model.events import JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

STATUSES = ("unfinished", "finished", "failed", "cancelled", "rejected")
UNFINISHED, FINISHED, FAILED, CANCELLED, REJECTED = range(5)
HOUR_S = 3600.0


class _Life:
    """What was heard of one job."""

    __slots__ = (
        "ended",
        "epoch",
        "failures",
        "first",
        "job",
        "preemptions",
        "received",
        "seats",
        "service",
        "since",
        "status",
    )

    def __init__(self, job: Job, types: int):
        self.job = job
        self.first = self.ended = math.nan
        self.status, self.preemptions, self.failures, self.epoch = UNFINISHED, 0, 0, 0
        self.received = [0.0] * types  # seconds
        self.seats: tuple[int, ...] = ()  # held now
        self.since = self.service = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that was measured of one run. `jobs` has one column per name of jobs.csv, `steps` the step

    functions over time that the charts show.
    """

    types: tuple[str, ...]
    summary: Mapping[str, float | int | None]
    jobs: Mapping[str, Array]
    alone_s: Floats  # (job,) run time on the fastest type
    bin_start_s: Floats  # (bin,)
    utilization: Floats  # (type, bin) busy / available; nan where none was available
    running_jobs: Floats  # (bin,)
    waiting_jobs: Floats  # (bin,)


class Metrics:
    """An observer that keeps what the figures need."""

    def __init__(self, topology: Topology, speeds: Speeds, prices: Mapping[str, float | None]):
        self._topology, self._speeds, self._prices = topology, speeds, prices
        self._lives: dict[str, _Life] = {}
        self._type_of = topology.type.tolist()
        self._busy: list[tuple[float, int, int]] = []  # (at, type, accelerators more or fewer)
        self._service: list[tuple[float, int, int]] = []  # the same for those in service
        self._present: list[tuple[float, int]] = []  # (at, jobs more or fewer)
        self._running: list[tuple[float, int]] = []
        self._used: dict[tuple[int, ...], int] = {}  # seats in use: how many share them
        self.end_s = 0.0  # last event of a job or machine
        self.ended = 0  # jobs that ended

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note what happened and what was decided."""
        at = moment.at
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self._lives[job.job_id] = _Life(job, len(self._topology.types))
                    self._present.append((at, 1))
                case JobFinished(name, epoch):
                    self._end(name, at, FINISHED, epoch)
                case JobFailed(name, epoch):
                    self._fail(name, at, epoch)
                case JobCancelled(name):
                    self._end(name, at, CANCELLED, None)
                case NodeLost(node) | NodeJoined(node):
                    sign = -1 if isinstance(event, NodeLost) else 1
                    size = int(self._topology.size[node])
                    self._service.append((at, int(self._topology.node_type[node]), sign * size))
                    continue
                case _:
                    continue
            self.end_s = at
        for decision in decisions:
            match decision:
                case Stop():
                    self._stop(decision, at)
                case Start():
                    self._start(decision, at)
                case Refuse(name):
                    self._end(name, at, REJECTED, None)

    def _start(self, order: Start, at: float) -> None:
        for name, epoch in ((order.job_id, order.epoch), (order.partner_id, order.partner_epoch)):
            if name is None:
                continue
            life = self._lives[name]
            if math.isnan(life.first):
                life.first = at
            life.seats, life.since, life.epoch = order.seats, at, epoch
            self._running.append((at, 1))
            if self._used.setdefault(order.seats, 0) == 0:
                self._busy.append((at, self._type_of[order.seats[0]], len(order.seats)))
            self._used[order.seats] += 1

    def _stop(self, order: Stop, at: float) -> None:
        for name in order.job_ids:
            life = self._lives[name]
            if life.seats:
                self._unseat(life, at)
                life.preemptions += order.save

    def _unseat(self, life: _Life, at: float) -> None:
        seats, type = life.seats, self._type_of[life.seats[0]]
        life.received[type] += at - life.since
        life.service += (at - life.since) * len(seats)
        life.seats = ()
        self._running.append((at, -1))
        self._used[seats] -= 1
        if self._used[seats] == 0:
            del self._used[seats]
            self._busy.append((at, type, -len(seats)))

    def _fail(self, name: str, at: float, epoch: int) -> None:
        life = self._lives[name]
        if life.seats and life.epoch == epoch:
            life.failures += 1
            if life.failures > life.job.retries:
                self._end(name, at, FAILED, epoch)
            else:
                self._unseat(life, at)

    def _end(self, name: str, at: float, status: int, epoch: int | None) -> None:
        life = self._lives[name]
        if life.status != UNFINISHED or (epoch is not None and (epoch != life.epoch or not life.seats)):
            return
        if life.seats:
            self._unseat(life, at)
        life.status, life.ended = status, at
        self._present.append((at, -1))
        self.ended += 1

    # ---- figures ---------------------------------------------------------------------------------------------

    def figures(self, bins: int = 400) -> Figures:
        """Return the figures of what was heard so far; what still runs counts up to the last event of a job."""
        lives = list(self._lives.values())
        for life in lives:
            if life.seats:  # still running when the world ended
                self._unseat(life, self.end_s)
        alone_s = np.array([self._alone(life.job) for life in lives])
        jobs = self._columns(lives, alone_s)
        begin = float(np.min(jobs["submitted_s"])) if lives else 0.0
        edges = np.linspace(begin, max(self.end_s, begin), bins + 1)
        types = len(self._topology.types)
        busy = np.stack([_integral(self._of_type(self._busy, j), edges) for j in range(types)])
        capacity = self._topology.capacity()
        lost = np.stack([_integral(self._of_type(self._service, j), edges) for j in range(types)])
        available = capacity[:, None] * (edges - begin) + lost
        running = _integral(_steps(self._running), edges)
        present = _integral(_steps(self._present), edges)
        width = max(edges[1] - edges[0], 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.diff(busy) / np.diff(available)
        return Figures(
            types=self._topology.types,
            summary=self._summary(jobs, busy[:, -1], available[:, -1]),
            jobs=jobs,
            alone_s=alone_s,
            bin_start_s=edges[:-1],
            utilization=np.where(np.diff(available) > 0, share, np.nan),
            running_jobs=np.diff(running) / width,
            waiting_jobs=(np.diff(present) - np.diff(running)) / width,
        )

    def _of_type(self, changes: list[tuple[float, int, int]], type: int) -> tuple[Floats, Floats]:
        return _steps([(at, change) for at, j, change in changes if j == type])

    def _alone(self, job: Job) -> float:
        """Return the seconds the job needs on its fastest type with nobody around."""
        best = float(self._speeds.alone(job.job_type, job.scale_factor).max())
        return job.total_steps / best if best > 0 else math.inf

    def _columns(self, lives: list[_Life], alone_s: Floats) -> dict[str, Array]:
        jobs = [life.job for life in lives]
        submitted = np.array([job.submitted for job in jobs])
        ended = np.array([life.ended for life in lives])
        status = np.array([life.status for life in lives], dtype=np.int64)
        finished = np.where(status == FINISHED, ended, np.nan)
        received = np.array([life.received for life in lives]).reshape(len(lives), len(self._topology.types))
        size = np.array([job.scale_factor for job in jobs], dtype=np.int64)
        columns: dict[str, Array] = {
            "job_id": np.array([job.job_id for job in jobs], dtype=object),
            "tenant": np.array([job.tenant for job in jobs], dtype=object),
            "app": np.array([job.app for job in jobs], dtype=object),
            "job_type": np.array([job.job_type for job in jobs], dtype=object),
            "scale_factor": size,
            "submitted_s": submitted,
            "first_started_s": np.array([life.first for life in lives]),
            "finished_s": finished,
            "jct_s": finished - submitted,
            "attained_service_s": np.array([life.service for life in lives]),
            "preemptions": np.array([life.preemptions for life in lives], dtype=np.int64),
            "status": np.array([STATUSES[code] for code in status], dtype=object),
            "rho_themis": self._rho_themis(jobs, submitted, finished, size, alone_s),
        }
        for j, name in enumerate(self._topology.types):
            columns[f"received_{name}_s"] = received[:, j]
        return columns

    def _rho_themis(self, jobs: list[Job], submitted: Floats, finished: Floats, size: Ints, alone_s: Floats) -> Floats:
        """Return ρ = T_sh / (T_cluster · N_avg) of each job's app; a job without an app is one by itself.

        Mahajan et al., Themis, NSDI 2020, section 3.2: T_sh from the first submission to the last finish, T_cluster
        on the whole cluster, N_avg the mean number of apps present meanwhile. nan until all of the app finished.
        """
        if not jobs:
            return np.empty(0)
        # "" is nobody's app; the job's own row stands in for it.
        keys = {key: i for i, key in enumerate(dict.fromkeys(job.app or m for m, job in enumerate(jobs)))}
        app = np.array([keys[job.app or m] for m, job in enumerate(jobs)])
        apps = len(keys)
        begin = np.full(apps, np.inf)
        np.minimum.at(begin, app, submitted)
        end = np.full(apps, -np.inf)
        np.maximum.at(end, app, finished)  # nan spreads: the app has not finished
        work = np.bincount(app, weights=alone_s * size, minlength=apps)
        gangs = np.bincount(app, weights=size, minlength=apps)
        longest = np.zeros(apps)
        np.maximum.at(longest, app, alone_s)
        cluster_s = np.maximum(longest, work / np.minimum(gangs, self._topology.devices))
        leaves = np.sort(np.where(np.isnan(end), self.end_s, end))
        arrives = np.sort(begin)
        life = end - begin
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (_overlap(arrives, begin, end) - _overlap(leaves, begin, end)) / life
            rho = life / (cluster_s * np.maximum(mean, 1.0))
        return np.asarray(rho[app])

    def _summary(self, jobs: Mapping[str, Array], busy_s: Floats, available_s: Floats) -> dict[str, float | int | None]:
        status, jct = jobs["status"], jobs["jct_s"][jobs["status"] == "finished"]
        waits = (jobs["first_started_s"] - jobs["submitted_s"])[~np.isnan(jobs["first_started_s"])]
        rho = jobs["rho_themis"][~np.isnan(jobs["rho_themis"])]
        finished = jobs["finished_s"][status == "finished"]
        summary: dict[str, float | int | None] = {"jobs_submitted": len(status)}
        for name in ("finished", "failed", "cancelled", "rejected", "unfinished"):
            summary[f"jobs_{name}"] = int((status == name).sum())
        summary["jct_mean_s"] = _mean(jct)
        for percent in (50, 95, 99):
            summary[f"jct_p{percent}_s"] = _value(np.percentile(jct, percent)) if len(jct) else None
        summary["queueing_mean_s"] = _mean(waits)
        begin = jobs["submitted_s"].min() if len(status) else 0.0
        summary["makespan_s"] = _value(finished.max() - begin) if len(finished) else None
        summary["end_s"] = self.end_s
        summary["utilization"] = _ratio(busy_s.sum(), available_s.sum())
        for j, name in enumerate(self._topology.types):
            summary[f"utilization_{name}"] = _ratio(busy_s[j], available_s[j])
        summary["cost_usd"] = self._cost(busy_s)
        summary["preemptions"] = int(jobs["preemptions"].sum())
        summary["rho_themis_max"] = _value(rho.max()) if len(rho) else None
        summary["rho_themis_mean"] = _mean(rho)
        return summary

    def _cost(self, busy_s: Floats) -> float | None:
        """Return what the busy accelerators cost; None when a type that was used has no price."""
        total = 0.0
        for name, seconds in zip(self._topology.types, busy_s, strict=True):
            price = self._prices.get(name)
            if seconds > 0 and price is None:
                return None
            total += (price or 0.0) * float(seconds) / HOUR_S
        return total


def _value(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _mean(values: Floats) -> float | None:
    return _value(values.mean()) if len(values) else None


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _steps(changes: Sequence[tuple[float, int]]) -> tuple[Floats, Floats]:
    """Return times, in order, and the value from each on."""
    if not changes:
        return np.zeros(1), np.zeros(1)
    table = np.array(changes, dtype=float)
    order = np.argsort(table[:, 0], kind="stable")
    return table[order, 0], np.cumsum(table[order, 1])


def _integral(steps: tuple[Floats, Floats], edges: Floats) -> Floats:
    """Return ∫ of a step function from the first edge to each edge; it is 0 before its first step."""
    at, value = steps
    total = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(at))))
    place = np.searchsorted(at, edges, side="right") - 1
    inside = np.maximum(place, 0)
    whole = np.where(place >= 0, total[inside] + value[inside] * (edges - at[inside]), 0.0)
    return np.asarray(whole - whole[0])


def _overlap(times: Floats, begin: Floats, end: Floats) -> Floats:
    """Return, for each [begin, end], ∫ of how many of the sorted `times` have passed."""
    total = np.concatenate(([0.0], np.cumsum(times)))

    def passed(at: Floats) -> Floats:
        count = np.searchsorted(times, at, side="right")
        return np.asarray(count * at - total[count])

    return passed(end) - passed(begin)
