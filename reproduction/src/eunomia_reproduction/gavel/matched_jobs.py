"""Gavel's estimator as published: every job is profiled and matched anew, and a pair is known once it has run.

A job that arrives is measured beside each reference on each type with one probability, also a job of a reference's
type; its row is completed and it is taken for the nearest reference, from then on. Two jobs keep what their references
keep beside each other, until they have shared an accelerator: then the policy has their true speeds there. A pair that
does not fit is found out when it is answered. Completing a row takes long, so that a job draws one of `PROFILES`
profiles of its type, with replacement. D. Narayanan et al., OSDI 2020, section 6, and the published code
(`throughput_estimator.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Answer, Rows, Shares
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Decision, Start, Starts
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.policy import Policy, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.throughputs.estimators.matching import ReferenceSet, draw_profile, draw_references, take_fingerprint
from eunomia.throughputs.estimators.pair_table import PairTable

PROFILES = 40  # of a job type
SOLVER, STREAM = "als", 4  # of the seed: the published code draws its profiles from the seed + 4


class PairsOfJobs:
    """What is believed of pairs of jobs, by their numbers in the trace: matches, and pairs that have run."""

    def __init__(
        self,
        jobs: Sequence[Job],
        table: PairTable,
        types: Sequence[str],
        *,
        references: int,
        profiled: float,
        seed: int,
    ):
        """Take the jobs in order, the measured table, and the types of the cluster in its order."""
        order = [table.types.index(name) for name in types]
        table = replace(table, types=tuple(types), kept=table.kept[:, order], alone=table.alone[:, order])
        self._number = {job.submitted: m for m, job in enumerate(jobs)}
        self._by_name = {job.job_id: m for m, job in enumerate(jobs)}
        row = {name: m for m, name in enumerate(table.job_types)}
        self._kind = np.array([row[job.job_type] for job in jobs])
        self._table, self._profiled, self._seed = table, profiled, seed
        self._true = np.where(np.isnan(table.kept), 0.0, table.kept)
        self._refs: ReferenceSet = draw_references(table, references, np.random.default_rng((seed, STREAM)))
        self._match: dict[int, int] = {}  # by job
        self._references: dict[tuple[int, int], int] = {}  # by job type and profile
        self._known: dict[int, set[tuple[int, int]]] = {}  # by job: partners and types with which it shared, or cannot

    def numbers(self, view: View) -> Ints:
        """Return the numbers of the jobs of a view, (job,): no two arrive at one time."""
        return np.array([self._number[at] for at in view.submitted.tolist()], dtype=np.int64)

    def kept(self, jobs: Ints) -> Floats:
        """Return the believed part of its speed that each job keeps beside each other, (job, type, job)."""
        matches = [self._matched(job) for job in jobs.tolist()]
        believed = self._refs.kept[matches][:, :, matches]
        place = {job: m for m, job in enumerate(jobs.tolist())}
        for one, m in place.items():
            for other, type in self._known.get(one, ()):
                if other in place:
                    believed[m, type, place[other]] = self._true[self._kind[one], type, self._kind[other]]
        return np.asarray(believed)

    def fits(self, jobs: Ints, rows: Rows) -> Bools:
        """Return which rows can run, (row,); pairs that cannot are known from now on."""
        assert rows.partner is not None
        first, second = self._kind[jobs[rows.job]], self._kind[jobs[rows.partner]]
        runs = (rows.partner < 0) | (self._true[first, rows.type, second] > 0)
        for row in np.flatnonzero(~runs).tolist():
            self._know(int(jobs[rows.job[row]]), int(jobs[rows.partner[row]]), int(rows.type[row]))
        return np.asarray(runs)

    def ran(self, one: str, other: str, type: int) -> None:
        """Note that two jobs share an accelerator of a type."""
        self._know(self._by_name[one], self._by_name[other], type)

    def _know(self, one: int, other: int, type: int) -> None:
        self._known.setdefault(one, set()).add((other, type))
        self._known.setdefault(other, set()).add((one, type))

    def _matched(self, job: int) -> int:
        if job not in self._match:
            drawn = int(np.random.default_rng((self._seed, STREAM, job)).integers(PROFILES))
            self._match[job] = self._reference(int(self._kind[job]), drawn)
        return self._match[job]

    def _reference(self, kind: int, profile: int) -> int:
        """Return the reference that a job type is taken for by one of its profiles."""
        if (kind, profile) not in self._references:
            rng = np.random.default_rng((self._seed, STREAM, kind, profile))
            asked = draw_profile(len(self._table.types), len(self._refs.jobs), self._profiled, rng)
            seen = take_fingerprint(self._table, kind, self._refs, asked)
            self._references[kind, profile], _ = self._refs.match(seen, SOLVER, rng)
        return self._references[kind, profile]


@dataclass(frozen=True)
class MatchedJobs:
    """LAS with space sharing, to which each job looks like the reference that it was matched with."""

    pairs: PairsOfJobs
    inner: Policy = field(default_factory=lambda: MaxMinFairness(space_sharing=True))

    info: ClassVar[PolicyInfo] = MaxMinFairness.info  # each instance shows the inner policy's card

    def __post_init__(self) -> None:
        info = self.inner.info
        object.__setattr__(self, "info", replace(info, needs=info.needs | {"submitted"}))

    def decide(self, view: View) -> Answer:
        """Return rows with partners; those of pairs that cannot run are left out."""
        jobs = self.pairs.numbers(view)
        solo = view.throughput
        beside = np.transpose(self.pairs.kept(jobs), (0, 2, 1)) * solo[:, None, :]
        columns = {**view.columns, "job_class": np.arange(view.jobs), "packed_throughput": beside}
        answer = self.inner.decide(replace(view, columns=columns))
        assert isinstance(answer, Shares)
        assert answer.rows is not None
        runs = self.pairs.fits(jobs, answer.rows)
        job, type, partner = answer.rows.job[runs], answer.rows.type[runs], answer.rows.partner
        assert partner is not None
        return replace(answer, x=answer.x[runs], rows=Rows(job, type, partner=partner[runs]))


@dataclass(frozen=True)
class SharingObserver:
    """Tells what is believed of pairs which of them run; `type_of` (device,)."""

    pairs: PairsOfJobs
    type_of: Ints

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note the pairs that start."""
        for decision in decisions:
            starts = decision.each() if isinstance(decision, Starts) else [decision]
            for start in starts:
                if isinstance(start, Start) and start.partner_id is not None:
                    self.pairs.ran(start.job_id, start.partner_id, int(self.type_of[start.seats[0]]))
