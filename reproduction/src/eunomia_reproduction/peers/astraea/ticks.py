"""The artifact's clock, to the letter: every ten seconds all is looked at, in a fixed order.

The next job, how much each tenant may hold, and the placement are the formulas of `policies.grants.astraea`. The rest
is as the artifact does it, odd or not:

- a job is seen at the first tick after its submission, and its accelerators are held to the tick after its end, though
  its end is recorded to the second;
- when a job leaves the list of running ones, the next in that list is not looked at before the next tick;
- jobs of tenants without a share, and those that are wider than their tenant's quota, vanish;
- how long jobs last it could learn from a file, but never reads it: the chance to end within a lease is always 1;
- leases of jobs of more than 32 accelerators never end;
- a lease that ended and is given anew at once costs nothing; checkpoints and resumes are counted, never charged;
- places do not matter: on nodes of 8 accelerators a gang is placed wherever enough are free, spread if need be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.policies.grants.astraea.phases import budgets, serve
from eunomia.policies.grants.astraea.selection import FAIR, KEYS, Keys, SelectionInputs, line_up, ranked
from eunomia.policies.grants.astraea.tenant_order import ratio
from eunomia_reproduction.peers.astraea.inputs import ArtifactOptions, ArtifactWorkload

TICK_S = 10
WITHOUT_END = 32  # accelerators; leases of wider jobs do not end
YOUNGEST_S = 120  # a first lease is not fresh before that age
HOUR_S, HOURS = 3600, 24


@dataclass(frozen=True, slots=True)
class TickOutcome:
    """What became of each job, (job,) each; nan = it vanished."""

    end: Floats
    fairness: Floats
    expiries: Ints
    preemptions: Ints
    resumes: Ints
    waited: Ints
    tenant_fairness: Floats  # (tenant,)

    def by_tenant(self, tenants: tuple[str, ...]) -> dict[str, float]:
        """Return the fairness of tenants over the last 24 whole hours."""
        return dict(zip(tenants, self.tenant_fairness.tolist(), strict=True))


class Ticks:
    """One run of one workload."""

    def __init__(self, jobs: ArtifactWorkload, options: ArtifactOptions):
        self.jobs, self.options = jobs, options
        self.quota, self.admitted = jobs.quotas(), jobs.admitted()
        self.accounts = UsageAccounts(self.quota)
        n = len(jobs.names)
        self.ran, self.life, self.waited, self.spell, self.lease = (np.zeros(n, dtype=np.int64) for _ in range(5))
        self.deserved, self.used, self.fairness, self.themis = (np.zeros(n) for _ in range(4))
        self.end = np.full(n, np.nan)
        self.expiries, self.preemptions, self.resumes, self.saved_at = (np.zeros(n, dtype=np.int64) for _ in range(4))
        self.resumed = np.zeros(n, dtype=bool)
        self.coming, self.waiting, self.running = 0, NO_INTS, NO_INTS  # the lists keep their order
        self.fresh = NO_INTS

    def run(self) -> TickOutcome:
        """Tick until every job has ended or vanished."""
        now = 0
        while self.coming < len(self.jobs.names) or len(self.waiting) or len(self.running):
            if now % HOUR_S == 0:
                self.accounts.turn()
            self._pass_time()
            self._update_fairness()
            self._end(now)
            self._find_fresh()
            self._arrive(now)
            if len(self.waiting):
                self._allocate(now)
            now += TICK_S
        return TickOutcome(
            self.end, self.fairness, self.expiries, self.preemptions, self.resumes, self.waited, self.accounts.fairness
        )

    def _pass_time(self) -> None:
        for column, rows in ((self.waited, self.waiting), (self.spell, self.waiting), (self.life, self.waiting)):
            column[rows] += TICK_S
        for column in (self.ran, self.lease, self.life):
            column[self.running] += TICK_S

    def _update_fairness(self) -> None:
        """Bring the fairness of jobs and tenants up to date."""
        jobs, present = self.jobs, np.concatenate((self.waiting, self.running))
        size, tenant = jobs.size[present], jobs.tenant[present]
        self.deserved[present] += deserved_rate(size, tenant, self.quota) * TICK_S
        self.used[self.running] = jobs.size[self.running] * self.ran[self.running]
        self.fairness[present] = self.used[present] / self.deserved[present]
        held = self._by_tenant(self.running)
        self.accounts.add(held, held + self._by_tenant(self.waiting), TICK_S)

    def _by_tenant(self, rows: Ints) -> Ints:
        """Return accelerators that these jobs ask for, (tenant,)."""
        return np.bincount(self.jobs.tenant[rows], self.jobs.size[rows], len(self.quota)).astype(np.int64)

    def _end(self, now: int) -> None:
        """Let jobs finish and leases end."""
        running = self.running
        done = self.ran[running] >= self.jobs.duration[running]
        over = (self.lease[running] >= self.options.lease) & (self.jobs.size[running] <= WITHOUT_END)
        leaving, passed_over = [], -1
        for place in np.flatnonzero(done | over).tolist():
            if place != passed_over:
                leaving.append(place)
                passed_over = place + 1
        if not leaving:
            return
        gone = running[leaving]
        ended, expired = gone[done[leaving]], gone[~done[leaving]]
        self.end[ended] = now + self.jobs.duration[ended] - self.ran[ended]
        self.expiries[expired] += 1
        self.spell[expired], self.saved_at[expired] = 0, now
        self.resumes[gone] += self.resumed[gone]
        self.resumed[gone] = False
        self.running = np.delete(running, leaving)
        self.waiting = np.concatenate((self.waiting, expired))

    def _find_fresh(self) -> None:
        """Find the leases that may end early; what they did so far would be lost, and does not count as used."""
        age, row = self.lease[self.running], self.running
        young = (age < self.options.delay) & ((self.expiries[row] > 0) | (age >= YOUNGEST_S))
        self.fresh = row[young]
        self.used[self.fresh] = self.jobs.size[self.fresh] * (self.ran[self.fresh] - self.lease[self.fresh])
        self.fairness[self.fresh] = self.used[self.fresh] / self.deserved[self.fresh]

    def _arrive(self, now: int) -> None:
        jobs, first = self.jobs, self.coming
        while self.coming < len(jobs.names) and jobs.submitted[self.coming] <= now:
            self.coming += 1
        seen = np.arange(first, self.coming)
        come = seen[self.admitted[seen]]
        self.waited[come] = self.life[come] = self.spell[come] = now - jobs.submitted[come]
        self.saved_at[come] = now
        self.waiting = np.concatenate((self.waiting, come))

    # ---- placement ---------------------------------------------------------------------------------------------------

    def _allocate(self, now: int) -> None:
        jobs, held = self.jobs, self._by_tenant(self.running)
        free, fair = jobs.accelerators - int(held.sum()), self.options.quota == "fair"
        fresh = self.fresh if fair and self.options.selection in FAIR else NO_INTS
        if free == 0 and not len(fresh):
            return
        starving = self.spell[self.waiting] >= self.options.starvation
        keys = self._keys(self.waiting, asked=~starving)
        tenant = jobs.tenant[self.waiting]
        line = self.waiting[line_up(keys, jobs.submitted[self.waiting], starving, tenant)]
        size, first = jobs.size[line], self._firsts(line)
        budget = self.quota
        if fair:
            used, entitled = self.accounts.used, self.accounts.entitled
            budget = budgets(size, first, free, held, self.quota, used, entitled, self.options.lease)
        fresh = self._most_served(fresh)
        fresh_first = self._firsts(fresh)
        never_ran = (self.ran[line] == 0) & (self.preemptions[line] == 0)
        seated, ended = serve(
            size,
            first,
            np.zeros((len(line), 1), dtype=np.int64),
            never_ran,
            np.bincount(tenant[starving], minlength=len(self.quota)),
            np.array([free]),
            held,
            budget,
            jobs.size[fresh],
            np.zeros(len(fresh), dtype=np.int64),
            fresh_first,
            self.options.block,
        )
        stopped = [fresh[first : first + n] for first, n in zip(fresh_first[:-1], ended, strict=True)]
        self._stop(np.concatenate(stopped))
        self._start(line[seated >= 0], now)

    def _firsts(self, line: Ints) -> Ints:
        """Return where the jobs of each tenant begin in a line that stands tenant by tenant, (tenant + 1,)."""
        return np.searchsorted(self.jobs.tenant[line], np.arange(len(self.quota) + 1))

    def _keys(self, rows: Ints, asked: Bools | None = None) -> Keys:
        """Return what these jobs are ranked by. Oddity: Themis' number stands as it was when a job last waited."""
        if self.options.selection == "themis":
            if asked is not None:
                self.themis[rows[asked]] = KEYS["themis"](self._known(rows[asked]))[0]
            return (self.themis[rows],)
        return KEYS[self.options.selection](self._known(rows))

    def _known(self, rows: Ints) -> SelectionInputs:
        jobs = self.jobs
        return SelectionInputs(
            submitted=jobs.submitted[rows],
            size=jobs.size[rows],
            fairness=self.fairness[rows],
            is_new=self.deserved[rows] == 0,
            ran=self.ran[rows],
            life=self.life[rows],
            remaining=jobs.duration[rows] - self.ran[rows],
            chance=np.ones(len(rows)),
            draw=rows,
        )

    def _most_served(self, fresh: Ints) -> Ints:
        """Return fresh leases tenant by tenant, in each those first whose jobs would be the last in line."""
        worst = ranked(tuple(-key for key in self._keys(fresh)))
        return fresh[worst][np.argsort(self.jobs.tenant[fresh[worst]], kind="stable")]

    def _stop(self, rows: Ints) -> None:
        """End leases early: their work is lost."""
        self.ran[rows] -= self.lease[rows]
        self.waited[rows] += self.lease[rows]
        self.lease[rows] = 0
        self.preemptions[rows] += 1
        self.resumed[rows] = False
        self.running = self.running[~np.isin(self.running, rows)]
        self.waiting = np.concatenate((self.waiting, rows))

    def _start(self, rows: Ints, now: int) -> None:
        self.lease[rows] = self.spell[rows] = 0
        self.resumed[rows] |= (self.expiries[rows] > 0) & (self.saved_at[rows] != now)
        self.waiting = self.waiting[~np.isin(self.waiting, rows)]
        self.running = np.concatenate((self.running, rows))


def deserved_rate(size: Ints, tenant: Ints, quota: Ints) -> Floats:
    """Return min(z, Q / n), (job,) accelerators: what each of the n present jobs of a tenant deserves."""
    present = np.bincount(tenant, minlength=len(quota))
    return np.minimum(size, (1.0 / present[tenant]) * quota[tenant])


class UsageAccounts:
    """Accelerator-seconds by tenant over the last 24 whole hours, (tenant,) each.

    Oddity: an hour counts when it is over, so during the first one no tenant has used anything.
    """

    def __init__(self, quota: Ints):
        self._quota = quota
        self._now = np.zeros((3, len(quota)))  # used, entitled, deserved in this hour
        self._past: list[Floats] = []
        self._sums = np.zeros((3, len(quota)))

    @property
    def used(self) -> Floats:
        return np.asarray(self._sums[0])

    @property
    def entitled(self) -> Floats:
        return np.asarray(self._sums[1])

    @property
    def fairness(self) -> Floats:
        """What they used over what they deserved; 1 for tenants that deserved nothing."""
        return ratio(self._sums[0], self._sums[2], unknown=1.0)

    def turn(self) -> None:
        """Begin another hour."""
        self._past = [*self._past, self._now][-HOURS:]
        self._now = np.zeros_like(self._now)
        self._sums = np.sum(self._past, axis=0)

    def add(self, running: Ints, demand: Ints, seconds: float) -> None:
        """Count what tenants held and asked for, accelerators, in the last seconds."""
        self._now += np.stack((running, self._quota, np.minimum(demand, self._quota))) * seconds
