"""One decision of ASTRAEA: a starving gang, budgets of tenants, then jobs, on free seats and those of ended leases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.view import View
from eunomia.policies.grants.astraea.lending import lent, reclaimed
from eunomia.policies.grants.astraea.overdue import overdue
from eunomia.policies.grants.astraea.quota import budgets
from eunomia.policies.grants.astraea.seen import Seen, wishes
from eunomia.policies.grants.astraea.selection import Keys, line_up, ranked
from eunomia.policies.grants.astraea.serving import serve

UNBOUNDED = 1 << 40  # accelerators


class Terms(NamedTuple):
    """What a decision goes by besides the view."""

    quota: str
    block: bool
    ahead_s: float  # what a grant counts for on paper
    lend: float


@dataclass(slots=True)
class Deciding:
    """The seats and budgets of one decision, used up as it goes."""

    view: View
    seen: Seen
    keys: Keys  # (job,) each
    starving: Bools  # (job,)
    fresh: Ints  # jobs whose leases may end early
    terms: Terms
    seated: dict[int, int] = field(default_factory=dict)  # job -> type
    stopped: list[int] = field(default_factory=list)

    def decide(self) -> None:
        """Fill `seated` and `stopped`."""
        seen, terms = self.seen, self.terms
        line = self._line(seen.competes & ~self._serve_overdue())
        if terms.quota == "fair":
            first = self._firsts(line)
            left, size = int(seen.free.sum()), self.view.scale_factor[line]
            budget = budgets(size, first, left, seen.held, seen.quota, seen.used, seen.entitled, terms.ahead_s)
            self._serve(line, budget, self.fresh)
            return
        budget = self._at_least_the_admitted()
        if terms.quota == "dynamic":
            self._reclaim(line, budget)
        self._serve(line, budget, NO_INTS)
        if terms.quota == "dynamic":
            self._lend(line)

    def _serve_overdue(self) -> Bools:
        """Seat the gang that has starved longest, or set seats aside for it; return whom that leaves out, (job,)."""
        view, seen = self.view, self.seen
        out = np.zeros(view.jobs, dtype=bool)
        job, type = overdue(view, seen, self.starving, lends=self.terms.quota == "fair")
        if job < 0:
            return out
        size, tenant = int(view.scale_factor[job]), seen.tenant[job]
        if size <= seen.free[type]:
            self.seated[job], out[job] = type, True
            seen.held[tenant] += size
        else:
            out |= seen.tenant == tenant
        seen.free[type] = max(seen.free[type] - size, 0)
        return out

    def _line(self, competes: Bools) -> Ints:
        """Return who competes tenant by tenant, the next one first."""
        rows = np.flatnonzero(competes)
        keys = tuple(key[rows] for key in self.keys)
        return rows[line_up(keys, self.view.submitted[rows], self.starving[rows], self.seen.tenant[rows])]

    def _firsts(self, line: Ints) -> Ints:
        """Return where the jobs of each tenant begin in a line that stands tenant by tenant, (tenant + 1,)."""
        return np.searchsorted(self.seen.tenant[line], np.arange(len(self.seen.quota) + 1))

    def _serve(self, line: Ints, budget: Ints, fresh: Ints) -> None:
        view, seen = self.view, self.seen
        worst = ranked(tuple(-key[fresh] for key in self.keys))
        fresh = fresh[worst][np.argsort(seen.tenant[fresh[worst]], kind="stable")]
        fresh_first = self._firsts(fresh)
        hungry = np.bincount(seen.tenant[line[self.starving[line]]], minlength=len(seen.quota))
        types, ended = serve(
            view.scale_factor[line],
            self._firsts(line),
            wishes(view, line),
            seen.never_ran[line],
            hungry,
            seen.free,
            seen.held,
            budget,
            view.scale_factor[fresh],
            view.on_type[fresh],
            fresh_first,
            self.terms.block,
        )
        for first, n in zip(fresh_first[:-1].tolist(), ended.tolist(), strict=True):
            self.stopped += fresh[first : first + n].tolist()
        sitting = np.flatnonzero(types >= 0)
        self.seated |= dict(zip(line[sitting].tolist(), types[sitting].tolist(), strict=True))

    def _at_least_the_admitted(self) -> Ints:
        """Return quotas, of which none is narrower than a job that was admitted when it was wider."""
        budget = self.seen.quota.copy()
        rows = np.flatnonzero(~self.seen.too_wide)
        np.maximum.at(budget, self.seen.tenant[rows], self.view.scale_factor[rows])
        return budget

    def _reclaim(self, line: Ints, budget: Ints) -> None:
        """Take back what was lent where tenants claim it within their quotas."""
        view, seen = self.view, self.seen
        claims = np.zeros(len(seen.quota), dtype=np.int64)
        size, tenant = view.scale_factor[line], seen.tenant[line]
        np.add.at(claims, tenant, size)
        within = np.minimum(claims, np.maximum(budget - seen.held, 0))
        stop = reclaimed(view, seen, int(within.sum() - seen.free.sum()))
        np.subtract.at(seen.held, seen.tenant[stop], view.scale_factor[stop])
        np.add.at(seen.free, view.on_type[stop], view.scale_factor[stop])
        self.stopped += stop.tolist()

    def _lend(self, line: Ints) -> None:
        """Give unused quota to jobs that found none, in drawn order."""
        seen = self.seen
        waiting = line[~np.isin(line, list(self.seated))]
        drawn = waiting[self.view.rng().permutation(len(waiting))]
        drawn = drawn[np.argsort(seen.tenant[drawn], kind="stable")]
        unused = int(np.maximum(seen.quota - seen.held, 0).sum())
        budget: Ints = np.floor(seen.quota * self.terms.lend).astype(np.int64)
        seen.free[:] = lent(seen.free, unused)
        self._serve(drawn, budget, NO_INTS)
