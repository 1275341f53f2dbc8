"""The figures of a run a second time: from the definitions in docs/reference.md and docs/fairness.md, one loop after another.

Nothing here shares code with the package. Times are split at every instant at which anything changes, and sums are
taken over the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.verdict.plain_timelines import History, Timeline
from tests.verdict.worlds import World

HOUR = 3600.0
NAN = math.nan


def mean(values: Iterable[float]) -> float:
    """Return the average of the known values; nan without any."""
    known = [each for each in values if not math.isnan(each)]
    return math.fsum(known) / len(known) if known else NAN


def percentile(values: list[float], part: float) -> float:
    """Return a percentile, linear between neighbours."""
    if not values:
        return NAN
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True)
class Instant:
    """A part of the time in which nothing changes."""

    begin: float
    end: float

    @property
    def lasts(self) -> float:
        """Its length."""
        return self.end - self.begin

    def covers(self, begin: float, end: float) -> bool:
        """Whether all of it lies in [begin, end]."""
        return begin <= self.begin and self.end <= end


class PlainRun:
    """The figures of one run."""

    def __init__(self, world: World, history: History) -> None:
        self.world, self.history = world, history
        self.jobs = list(history.jobs.values())
        self.begin = min(job.submitted for job in self.jobs)
        self.end = max(history.end_s, self.begin)
        self.capacity = {name: sum(size for kind, size in world.nodes if kind == name) for name in world.types}
        self.tenants = self._tree()
        hours = [HOUR * k for k in range(math.ceil(self.begin / HOUR), math.ceil(self.end / HOUR))]
        times = {self.begin, self.end, *hours}
        for job in self.jobs:
            times |= {job.submitted, self.until(job)}
            times |= {edge for lease in job.leases for edge in (lease.begin, lease.end)}
        times |= {edge for _, since, until in history.outages for edge in (since, until)}
        inside = sorted(at for at in times if self.begin <= at <= self.end)
        self.parts = [Instant(one, two) for one, two in zip(inside, inside[1:], strict=False)]
        self.present = [
            [job for job in self.jobs if part.covers(job.submitted, self.until(job))] for part in self.parts
        ]
        self.served = [
            [(job, lease) for job in self.jobs for lease in job.leases if part.covers(lease.begin, lease.end)]
            for part in self.parts
        ]  # fmt: skip
        self.in_service = [self._in_service(part) for part in self.parts]
        self.quotas = [self._quotas(sum(one.values())) for one in self.in_service]
        self.owned = [self._owned(*each) for each in zip(self.present, self.quotas, strict=True)]

    # ---- the cluster and the tenants -------------------------------------------------------------------------

    def until(self, job: Timeline) -> float:
        """Return the end of a job's presence."""
        return self.end if math.isnan(job.ended) else job.ended

    def _in_service(self, part: Instant) -> dict[str, float]:
        gone = [node for node, since, until in self.history.outages if part.covers(since, until)]
        return {
            name: float(sum(size for n, (kind, size) in enumerate(self.world.nodes) if kind == name and n not in gone))
            for name in self.world.types
        }

    def _tree(self) -> list[str]:
        """Return the tenants, parents before children: declared ones first, then those of jobs."""
        names: list[str] = []
        for owner in [*self.world.tenants, *(job.tenant or "-" for job in self.jobs)]:
            path = owner.split("/")
            names += ["/".join(path[:depth]) for depth in range(1, len(path) + 1)]
        return list(dict.fromkeys(names))

    def _quotas(self, capacity: float) -> dict[str, float]:
        """Return the accelerators of each tenant: its quota, or its part by weight of what is left, rounded down."""
        quota: dict[str, float] = {}
        for name in self.tenants:
            parent = name.rpartition("/")[0]
            siblings = [each for each in self.tenants if each.rpartition("/")[0] == parent]
            said = {each: self.world.tenants.get(each, (1.0, NAN)) for each in siblings}
            weight, own = said[name]
            if math.isnan(own):
                whole = quota[parent] if parent else capacity
                left = max(whole - sum(q for _, q in said.values() if not math.isnan(q)), 0.0)
                own = math.floor(left * weight / sum(w for w, q in said.values() if math.isnan(q)) + 1e-9)
            quota[name] = float(own)
        return quota

    def _owned(self, present: list[Timeline], quota: dict[str, float]) -> dict[str, float]:
        """Return what each tenant's own jobs are entitled to: its quota less what is deserved below it."""
        own = dict(quota)
        for name in reversed(self.tenants):
            below = [each for each in self.tenants if each.startswith(f"{name}/")]
            own[name] = max(quota[name] - sum(min(self.demand(present, each), own[each]) for each in below), 0.0)
        return own

    @staticmethod
    def demand(present: list[Timeline], tenant: str) -> float:
        """Return the accelerators that the tenant's present jobs ask for."""
        return float(sum(job.size for job in present if (job.tenant or "-") == tenant))

    # ---- jobs ------------------------------------------------------------------------------------------------

    def alone_s(self, job: Timeline) -> float:
        """Return the run time on the fastest type that holds the gang."""
        return job.steps / max(self.rates(job)[name] for name in self.world.types if self.capacity[name] >= job.size)

    def rates(self, job: Timeline) -> dict[str, float]:
        """Return the steps/s of a job by type."""
        return {name: self.world.rate[name, job.job_type, job.size] for name in self.world.types}

    def job_rows(self) -> list[dict[str, float | str]]:
        """Return the columns of jobs.csv."""
        rho = self.app_rho()
        return [self._job_row(job, rho[job.app or job.job_id]) for job in self.jobs]

    def _job_row(self, job: Timeline, rho: float) -> dict[str, float | str]:
        done = job.status == "finished"
        jct = job.ended - job.submitted if done else NAN
        received = {name: job.ran_s(name) for name in self.world.types}
        ran = sum(received.values())
        service = sum((lease.end - lease.begin) * len(lease.seats) for lease in job.leases)
        deserved = self.deserved_of(job)
        ltgf = service / deserved if deserved > 0 else NAN
        late = self.until(job) > job.deadline or job.status in ("failed", "rejected") or (
            math.isnan(job.ended) and self.end >= job.deadline
        )  # fmt: skip
        return {
            "job_id": job.job_id, "tenant": job.tenant, "app": job.app, "job_type": job.job_type, "status": job.status,
            "scale_factor": job.size, "submitted_s": job.submitted, "preemptions": job.preemptions,
            "first_started_s": job.leases[0].begin if job.leases else NAN, "finished_s": job.ended if done else NAN,
            "jct_s": jct, "attained_service_s": service, "rho_themis": rho,
            "rho_isolated": self.rho_isolated(job) if done else NAN,
            "rho_astraea": (1.0 if math.isnan(ltgf) else jct / (ran * ltgf + jct - ran)) if done else NAN,
            "ltgf": ltgf, "slowdown": jct / ran if done else NAN,
            "total_wait_s": self.until(job) - job.submitted - ran,
            "cancelled_by": ("tuner" if job.by_tuner else "user") if job.status == "cancelled" else "",
            "deadline_s": job.deadline if math.isfinite(job.deadline) else NAN,
            "deadline_missed": float(late) if math.isfinite(job.deadline) else NAN,
            **{f"received_{name}_s": seconds for name, seconds in received.items()},
        }  # fmt: skip

    def deserved_of(self, job: Timeline) -> float:
        """Return ∫ min(z, w / Σ w · Q) dt while the job is present, Σ w of its tenant's jobs that are."""
        tenant, total = job.tenant or "-", 0.0
        for part, present, owned in zip(self.parts, self.present, self.owned, strict=True):
            if job in present:
                weights = sum(other.weight for other in present if (other.tenant or "-") == tenant)
                total += min(job.size, job.weight / weights * owned[tenant]) * part.lasts
        return total

    def rho_isolated(self, job: Timeline) -> float:
        """Return the steps possible on an nth of every type in the job's time ÷ its steps, n the jobs present."""
        whole = sum(self.capacity.values())
        share = sum(
            part.lasts / max(len(present), whole / job.size)
            for part, present in zip(self.parts, self.present, strict=True) if job in present
        )  # fmt: skip
        return sum(rate * self.capacity[name] for name, rate in self.rates(job).items()) / job.size * share / job.steps

    # ---- apps ------------------------------------------------------------------------------------------------

    def apps(self) -> dict[str, list[Timeline]]:
        """Return the jobs of each app; a job without one is an app by itself."""
        found: dict[str, list[Timeline]] = {}
        for job in self.jobs:
            found.setdefault(job.app or job.job_id, []).append(job)
        return found

    def app_rho(self) -> dict[str, float]:
        """Return T_shared ÷ (T_alone · N) of each app, N the mean number of apps present meanwhile; nan: not finished."""
        apps = self.apps()
        spans = {
            name: (min(job.submitted for job in jobs), max(self.until(job) for job in jobs))
            for name, jobs in apps.items()
        }
        rho = {}
        for name, jobs in apps.items():
            if any(job.status != "finished" for job in jobs):
                rho[name] = NAN
                continue
            begin, end = spans[name]
            alone = [(self.alone_s(job), job.size) for job in jobs]
            work = sum(seconds * size for seconds, size in alone)
            least = work / min(sum(size for _, size in alone), sum(self.capacity.values()))
            n = sum(max(min(end, two) - max(begin, one), 0.0) for one, two in spans.values()) / (end - begin)
            rho[name] = (end - begin) / (max(*(seconds for seconds, _ in alone), least) * max(n, 1.0))
        return rho

    # ---- tenants ---------------------------------------------------------------------------------------------

    def tenant_rows(self, jobs: list[dict[str, float | str]]) -> list[dict[str, float | str]]:
        """Return the columns of tenants.csv, `jobs` being the rows of jobs.csv."""
        parents = {name.rpartition("/")[0] for name in self.tenants}
        owners = [job.tenant or "-" for job in self.jobs]
        shown = [name for name in self.tenants if name in owners or name not in parents]
        quota, available = self._quotas(sum(self.capacity.values())), self.integral(lambda k: self.in_service[k])
        rows = []
        for name in shown:
            own = [row for row, owner in zip(jobs, owners, strict=True) if owner == name]
            number = _numbers_of(own)
            deserved = self.integral(lambda k, u=name: min(self.demand(self.present[k], u), self.owned[k][u]))
            held = self.integral(lambda k, u=name: self.held(k, u))
            received = sum(held.values())
            rows.append({
                "tenant": name, "weight": self.world.tenants.get(name, (1.0, NAN))[0], "quota": quota[name],
                "deserved_gpu_s": deserved, "received_gpu_s": received,
                "ltgf": received / deserved if deserved > 0 else NAN,
                "rho_themis_max": max((v for v in number("rho_themis") if not math.isnan(v)), default=NAN),
                "jct_mean_s": mean(number("jct_s")),
                "queueing_mean_s": mean(b - a for a, b in zip(number("submitted_s"), number("first_started_s"), strict=True)),
                "total_wait_mean_s": mean(float(row["total_wait_s"]) for row in own if row["status"] != "rejected"),
                "sharing_loss_jobs": sum(v < 0.95 for v in number("ltgf")), "jobs": len(own),
                "sharing_benefit_jobs": sum(v > 1.05 for v in number("ltgf")),
                "envy_max": self.envy(name, shown, quota),
                "dominant_share": max(held[t] / available[t] if available[t] > 0 else 0.0 for t in self.world.types),
            })  # fmt: skip
        return rows

    def held(self, k: int, tenant: str) -> dict[str, float]:
        """Return the accelerators that a tenant's jobs hold by type; both of a pair count."""
        held = dict.fromkeys(self.world.types, 0.0)
        for job, lease in self.served[k]:
            if (job.tenant or "-") == tenant:
                held[lease.type] += len(lease.seats)
        return held

    def integral(
        self, amount: Callable[..., float | dict[str, float]], within: tuple[float, float] | None = None
    ) -> dict[str, float] | float:
        """Return the integral of an amount, or of each amount of a dictionary, by number of the part of time."""
        begin, end = within or (self.begin, self.end)
        parts = [(k, part.lasts) for k, part in enumerate(self.parts) if part.covers(begin, end)]
        values = [(amount(k), lasts) for k, lasts in parts]
        if values and isinstance(values[0][0], dict):
            return {name: math.fsum(one[name] * lasts for one, lasts in values) for name in values[0][0]}
        return math.fsum(one * lasts for one, lasts in values) if values else dict.fromkeys(self.world.types, 0.0)

    def envy(self, name: str, shown: list[str], quota: dict[str, float]) -> float:
        """Return how much more of its requests would have been served with another's accelerators, scaled by quota."""
        edges = sorted(
            {self.begin, self.end, *(HOUR * k for k in range(math.ceil(self.end / HOUR)) if HOUR * k > self.begin)}
        )
        own = [job for job in self.jobs if (job.tenant or "-") == name]
        work = {job.job_id: self.alone_s(job) * job.size for job in own}
        asked_in_all = self.integral(lambda k: self.demand(self.present[k], name)) if self.parts else 0.0
        if quota[name] <= 0 or not isinstance(asked_in_all, float) or asked_in_all <= 0:
            return NAN
        worth = {
            t: sum(work[j.job_id] * self.rates(j)[t] * self.alone_s(j) / j.steps for j in own) / sum(work.values())
            for t in self.world.types
        }  # fmt: skip
        done = {}
        for other in shown:
            scale = quota[name] / quota[other] if quota[other] > 0 else 0.0
            done[other] = 0.0
            for hour in zip(edges, edges[1:], strict=False):
                asked = self.integral(lambda k: self.demand(self.present[k], name), hour)
                held = self.integral(lambda k, v=other: self.held(k, v), hour)
                if isinstance(asked, float) and isinstance(held, dict):
                    done[other] += min(asked, scale * sum(worth[t] * held[t] for t in self.world.types))
        return max(max(done.values()) - done[name], 0.0) / asked_in_all

    # ---- the summary -----------------------------------------------------------------------------------------

    def summary(self, jobs: list[dict[str, float | str]], tenants: list[dict[str, float | str]]) -> dict[str, float]:
        """Return the fields of summary.json, nan for null; losses that only the backend knows are left out."""
        number = _numbers_of(jobs)
        done = [row for row in jobs if row["status"] == "finished"]
        of_done = _numbers_of(done)
        jct, rho = of_done("jct_s"), [v for v in self.app_rho().values() if not math.isnan(v)]
        found = {"jobs_submitted": len(jobs)}
        for status in ("finished", "failed", "cancelled", "rejected", "unfinished"):
            found[f"jobs_{status}"] = sum(row["status"] == status for row in jobs)
        busy = self.integral(lambda k: self.busy(k))
        available = self.integral(lambda k: self.in_service[k])
        ltgf = [float(row["ltgf"]) for row in tenants if not math.isnan(float(row["ltgf"]))]
        missed = [v for v in number("deadline_missed") if not math.isnan(v)]
        return found | {
            "jct_mean_s": mean(jct), **{f"jct_p{p}_s": percentile(jct, p / 100) for p in (50, 95, 99)},
            "queueing_mean_s": mean(b - a for a, b in zip(number("submitted_s"), number("first_started_s"), strict=True)),
            "total_wait_mean_s": mean(float(row["total_wait_s"]) for row in jobs if row["status"] != "rejected"),
            "makespan_s": max(of_done("finished_s")) - self.begin if done else NAN, "end_s": self.history.end_s,
            "utilization": sum(busy.values()) / sum(available.values()),
            **{f"utilization_{t}": busy[t] / available[t] if available[t] > 0 else NAN for t in self.world.types},
            "cost_usd": sum(busy[t] / HOUR * self.world.prices[t] for t in self.world.types),
            "preemptions": sum(job.preemptions for job in self.jobs),
            "rho_themis_max": max(rho, default=NAN), "rho_themis_mean": mean(rho),
            "jain_rho": sum(rho) ** 2 / (len(rho) * sum(v * v for v in rho)) if rho else NAN,
            "rho_isolated_max": max(of_done("rho_isolated"), default=NAN),
            "rho_astraea_max": max(of_done("rho_astraea"), default=NAN), "slowdown_mean": mean(of_done("slowdown")),
            "sharing_loss_jobs": sum(v < 0.95 for v in number("ltgf")),
            "sharing_benefit_jobs": sum(v > 1.05 for v in number("ltgf")),
            "jobs_cancelled_by_tuner": sum(row["cancelled_by"] == "tuner" for row in jobs),
            "deadlines_missed": sum(missed) if missed else NAN,
            "max_min_ratio": max(ltgf) / min(ltgf) if len(ltgf) > 1 and min(ltgf) > 0 else NAN,
            **self._of_apps(), **self._idle(),
        }  # fmt: skip

    def busy(self, k: int) -> dict[str, float]:
        """Return the accelerators in use by type; those that a pair shares count once."""
        seats = {
            t: {seat for _, lease in self.served[k] if lease.type == t for seat in lease.seats}
            for t in self.world.types
        }
        return {t: float(len(used)) for t, used in seats.items()}

    def _of_apps(self) -> dict[str, float]:
        apps = {name: jobs for name, jobs in self.apps().items() if jobs[0].app}
        if all(len(jobs) < 2 for jobs in apps.values()):
            return dict.fromkeys(("apps_submitted", "apps_finished", "apps_without_model", "app_jct_mean_s"), NAN)
        done = [jobs for jobs in apps.values() if all(job.status == "finished" for job in jobs)]
        took = [max(job.ended for job in jobs) - min(job.submitted for job in jobs) for jobs in done]
        return {
            "apps_submitted": len(apps), "apps_finished": len(done), "apps_without_model": 0, "app_jct_mean_s": mean(took)
        }  # fmt: skip

    def _idle(self) -> dict[str, float]:
        """Return the idle accelerator-seconds by cause, and those out of service."""
        found = dict.fromkeys(("no_demand", "fragmentation", "held_back", "out_of_service"), 0.0)
        for k, part in enumerate(self.parts):
            run = [job for job, _ in self.served[k]]
            waiting = [job.size for job in self.present[k] if job not in run]
            busy = self.busy(k)
            for t in self.world.types:
                free = max(self.in_service[k][t] - busy[t], 0.0)
                cause = "no_demand" if not waiting else "held_back" if min(waiting) <= free else "fragmentation"
                found[cause] += free * part.lasts
                found["out_of_service"] += (self.capacity[t] - self.in_service[k][t]) * part.lasts
        return {f"lost_{cause}_accelerator_s": seconds for cause, seconds in found.items()}


def _numbers_of(rows: list[dict[str, float | str]]) -> Callable[[str], list[float]]:
    """Return what gives a column of rows as numbers."""
    return lambda name: [float(row[name]) for row in rows]
