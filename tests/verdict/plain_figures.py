"""The figures of a run a second time, from the definitions in docs/reference.md and docs/fairness.md, loop after loop.

Nothing here shares code with the package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from tests.verdict.plain_cluster import HOUR, NAN, PlainCluster, owner
from tests.verdict.plain_timelines import Timeline

Row: TypeAlias = dict[str, float | str]


def mean(values: Iterable[float]) -> float:
    """Return the average of the known values; nan without any."""
    known = [each for each in values if not math.isnan(each)]
    return math.fsum(known) / len(known) if known else NAN


def most(values: Iterable[float]) -> float:
    """Return the largest of the known values; nan without any."""
    return max((each for each in values if not math.isnan(each)), default=NAN)


def percentile(values: list[float], part: float) -> float:
    """Return a percentile, linear between neighbours."""
    if not values:
        return NAN
    ordered, place = sorted(values), part * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def column(rows: list[Row], name: str) -> list[float]:
    """Return a column of numbers."""
    return [float(row[name]) for row in rows]


def first_waits(rows: list[Row]) -> list[float]:
    """Return the waits to the first start."""
    return [b - a for a, b in zip(column(rows, "submitted_s"), column(rows, "first_started_s"), strict=True)]


class PlainFigures(PlainCluster):
    """The rows of jobs.csv and tenants.csv, and the fields of summary.json."""

    # ---- jobs ------------------------------------------------------------------------------------------------

    def job_rows(self) -> list[Row]:
        """Return the columns of jobs.csv."""
        rho = self.app_rho()
        return [self._job_row(job, rho[job.app or job.job_id]) for job in self.jobs]

    def _job_row(self, job: Timeline, rho: float) -> Row:
        done = job.status == "finished"
        jct = job.ended - job.submitted if done else NAN
        received = {name: job.ran_s(name) for name in self.types}
        ran, deserved = sum(received.values()), self.deserved_of(job)
        service = sum((lease.end - lease.begin) * len(lease.seats) for lease in job.leases)
        ltgf = service / deserved if deserved > 0 else NAN
        present_at_it = self.until(job) > job.deadline * (1 + 1e-9) or math.isnan(job.ended)
        late = job.status in ("failed", "rejected") or (present_at_it and self.until(job) >= job.deadline)
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
        """Return ∫ min(z, w / Σ w · O) dt while the job is present, Σ w of its tenant's jobs that are."""
        total = 0.0
        for part, present, owned in zip(self.parts, self.present, self.owned, strict=True):
            if job in present:
                weights = sum(other.weight for other in present if owner(other) == owner(job))
                total += min(job.size, job.weight / weights * owned[owner(job)]) * part.lasts
        return total

    def rho_isolated(self, job: Timeline) -> float:
        """Return the steps possible on an nth of every type in the job's time ÷ its steps, n the jobs present."""
        whole = sum(self.capacity.values())
        share = math.fsum(
            part.lasts / max(len(present), whole / job.size)
            for part, present in zip(self.parts, self.present, strict=True)
            if job in present
        )
        return sum(rate * self.capacity[t] for t, rate in self.rates(job).items()) / job.size * share / job.steps

    # ---- apps ------------------------------------------------------------------------------------------------

    def apps(self) -> dict[str, list[Timeline]]:
        """Return the jobs of each app; a job without one is an app by itself."""
        found: dict[str, list[Timeline]] = {}
        for job in self.jobs:
            found.setdefault(job.app or job.job_id, []).append(job)
        return found

    def app_rho(self) -> dict[str, float]:
        """Return T_shared ÷ the time on a private Nth, N the mean number of apps present; nan: it did not finish."""
        apps, rho = self.apps(), dict[str, float]()
        spans = {
            name: (min(job.submitted for job in jobs), max(self.until(job) for job in jobs))
            for name, jobs in apps.items()
        }
        for name, jobs in apps.items():
            begin, end = spans[name]
            alone = [(self.alone_s(job), job.size) for job in jobs]
            work = sum(seconds * size for seconds, size in alone)
            done = all(job.status == "finished" for job in jobs)
            n = sum(max(min(end, two) - max(begin, one), 0.0) for one, two in spans.values()) / (end - begin or NAN)
            part = sum(self.capacity.values()) / max(n, 1.0)
            least = work / min(sum(size for _, size in alone), part)
            rho[name] = (end - begin) / max(*(seconds for seconds, _ in alone), least) if done else NAN
        return rho

    # ---- tenants ---------------------------------------------------------------------------------------------

    def tenant_rows(self, jobs: list[Row]) -> list[Row]:
        """Return the columns of tenants.csv, `jobs` being the rows of jobs.csv."""
        parents = {name.rpartition("/")[0] for name in self.tenants}
        owners = [owner(job) for job in self.jobs]
        shown = [name for name in self.tenants if name in owners or name not in parents]
        quota = self.shares(sum(self.capacity.values()), dict.fromkeys(self.tenants, 1.0))
        rows_of = {name: [row for row, u in zip(jobs, owners, strict=True) if u == name] for name in shown}
        return [self._tenant_row(name, rows_of[name], shown, quota) for name in shown]

    def _tenant_row(self, name: str, own: list[Row], shown: list[str], quota: dict[str, float]) -> Row:
        deserved = self.total(lambda k: min(self.asked[k][name], self.owned[k][name]))
        held, available = self.totals([held[name] for held in self.held]), self.totals(self.in_service)
        received = sum(held.values())
        return {
            "tenant": name, "weight": self.world.tenants.get(name, (1.0, NAN))[0], "quota": quota[name],
            "deserved_gpu_s": deserved, "received_gpu_s": received,
            "ltgf": received / deserved if deserved > 0 else NAN, "rho_themis_max": most(column(own, "rho_themis")),
            "jct_mean_s": mean(column(own, "jct_s")), "queueing_mean_s": mean(first_waits(own)),
            "total_wait_mean_s": mean(float(row["total_wait_s"]) for row in own if row["status"] != "rejected"),
            "sharing_loss_jobs": sum(v < 0.95 for v in column(own, "ltgf")), "jobs": len(own),
            "sharing_benefit_jobs": sum(v > 1.05 for v in column(own, "ltgf")),
            "envy_max": self.envy(name, shown, quota),
            "dominant_share": max(held[t] / available[t] if available[t] > 0 else 0.0 for t in self.types),
        }  # fmt: skip

    def envy(self, name: str, shown: list[str], quota: dict[str, float]) -> float:
        """Return how much more of its requests would have been served with another's accelerators, scaled by quota."""
        own = [job for job in self.jobs if owner(job) == name]
        work = {job.job_id: self.alone_s(job) * job.size for job in own}
        asked_in_all = self.total(lambda k: self.asked[k][name])
        if quota[name] <= 0 or asked_in_all <= 0:
            return NAN
        worth = {
            t: sum(work[j.job_id] * self.rates(j)[t] * self.alone_s(j) / j.steps for j in own) / sum(work.values())
            for t in self.types
        }
        hours: dict[int, list[int]] = {}
        for k, part in enumerate(self.parts):
            hours.setdefault(math.floor(part.begin / HOUR), []).append(k)
        done = dict.fromkeys(shown, 0.0)
        for other in shown:
            scale = quota[name] / quota[other] if quota[other] > 0 else 0.0
            amounts = [held[other] for held in self.held]
            for parts in hours.values():
                held = self.totals(amounts, parts)
                used = scale * sum(worth[t] * held[t] for t in self.types)
                done[other] += min(self.total(lambda k: self.asked[k][name], parts), used)
        return max(max(done.values()) - done[name], 0.0) / asked_in_all

    # ---- the summary -----------------------------------------------------------------------------------------

    def summary(self, jobs: list[Row], tenants: list[Row]) -> dict[str, float]:
        """Return the fields of summary.json, nan for null; losses that only the backend knows are left out."""
        done = [row for row in jobs if row["status"] == "finished"]
        jct, rho = column(done, "jct_s"), [v for v in self.app_rho().values() if not math.isnan(v)]
        busy, available = self.totals(self.busy), self.totals(self.in_service)
        ltgf = [v for v in column(tenants, "ltgf") if not math.isnan(v)]
        missed = [v for v in column(jobs, "deadline_missed") if not math.isnan(v)]
        statuses = ("finished", "failed", "cancelled", "rejected", "unfinished")
        return {
            "jobs_submitted": len(jobs), **{f"jobs_{s}": sum(row["status"] == s for row in jobs) for s in statuses},
            "jct_mean_s": mean(jct), **{f"jct_p{p}_s": percentile(jct, p / 100) for p in (50, 95, 99)},
            "queueing_mean_s": mean(first_waits(jobs)),
            "total_wait_mean_s": mean(float(row["total_wait_s"]) for row in jobs if row["status"] != "rejected"),
            "makespan_s": most(column(done, "finished_s")) - self.begin, "end_s": self.history.end_s,
            "utilization": sum(busy.values()) / (sum(available.values()) or NAN),
            **{f"utilization_{t}": busy[t] / (available[t] or NAN) for t in self.types},
            "cost_usd": sum(busy[t] / HOUR * self.world.prices[t] for t in self.types),
            "preemptions": sum(job.preemptions for job in self.jobs), "rho_themis_max": most(rho),
            "rho_themis_mean": mean(rho), "jain_rho": sum(rho) ** 2 / (len(rho) * sum(v * v for v in rho) or NAN),
            "rho_isolated_max": most(column(done, "rho_isolated")),
            "rho_astraea_max": most(column(done, "rho_astraea")), "slowdown_mean": mean(column(done, "slowdown")),
            "sharing_loss_jobs": sum(v < 0.95 for v in column(jobs, "ltgf")),
            "sharing_benefit_jobs": sum(v > 1.05 for v in column(jobs, "ltgf")),
            "jobs_cancelled_by_tuner": sum(row["cancelled_by"] == "tuner" for row in jobs),
            "deadlines_missed": sum(missed) if missed else NAN,
            "max_min_ratio": max(ltgf) / min(ltgf) if len(ltgf) > 1 and min(ltgf) > 0 else NAN,
            **self._of_apps(), **self._idle(),
        }  # fmt: skip

    def _of_apps(self) -> dict[str, float]:
        apps = {name: jobs for name, jobs in self.apps().items() if jobs[0].app}
        if all(len(jobs) < 2 for jobs in apps.values()):
            return dict.fromkeys(("apps_submitted", "apps_finished", "apps_without_model", "app_jct_mean_s"), NAN)
        done = [jobs for jobs in apps.values() if all(job.status == "finished" for job in jobs)]
        took = mean(max(job.ended for job in jobs) - min(job.submitted for job in jobs) for jobs in done)
        finished = len(done)
        return {"apps_submitted": len(apps), "apps_finished": finished, "apps_without_model": 0, "app_jct_mean_s": took}

    def _idle(self) -> dict[str, float]:
        """Return the idle accelerator-seconds by cause, and those out of service."""
        found = dict.fromkeys(("no_demand", "fragmentation", "held_back", "out_of_service"), 0.0)
        for k, part in enumerate(self.parts):
            run = [job for job, _ in self.served[k]]
            waiting = [job.size for job in self.present[k] if job not in run]
            for t in self.types:
                free = max(self.in_service[k][t] - self.busy[k][t], 0.0)
                cause = "no_demand" if not waiting else "held_back" if min(waiting) <= free else "fragmentation"
                found[cause] += free * part.lasts
                found["out_of_service"] += (self.capacity[t] - self.in_service[k][t]) * part.lasts
        return {f"lost_{cause}_accelerator_s": seconds for cause, seconds in found.items()}
