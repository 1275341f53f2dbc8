"""A backend whose profiler measures pairs during the run: its jobs hold real accelerators, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.model.arrays import Bools, Floats
from eunomia.model.decisions import Decision, GiveUp, Refuse, Start, Starts, Stop
from eunomia.model.events import Event, JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment, PairsEstimated
from eunomia.model.job import Job
from eunomia.model.topology import Topology
from eunomia.setup.belief_estimate import EstimatedSpeeds
from eunomia.throughputs.estimators.judging import beliefs_from_references
from eunomia.throughputs.estimators.matching import GrowingMatches, ReferenceSet

Pair = tuple[int, int, int]  # job type, accelerator type, partner
COMPARED = 32  # pairs that are compared by what they would teach: the least known ones
AT_ONCE = 0.1  # share of the accelerators that measure at most, but at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerSettings:
    """How much is measured: a share of the accelerators' time, in slices of so many seconds, chosen by `telling`.

    A pair is believed anew where its estimate has moved by more than the share `tolerance`.
    """

    budget: float
    slice_s: float
    telling: bool = True
    matching: str = ""  # solver of the published estimator; empty = ours
    caution: float = 0.0
    tolerance: float = 0.02
    seed: int = 0


class PairProfiling:
    """Submits jobs that measure pairs of the job types present, and reports what follows as `PairsEstimated`.

    Each measurement is the one that teaches most of the pairs of job types present that are no references, after those
    under way. A pair of jobs that shares one accelerator for as long as a measurement takes counts as measured, for
    free. `measuring` has the job for each pair that may be measured; the world has them all, and they are held back
    until they are wanted.
    """

    def __init__(
        self, world: Backend, believed: EstimatedSpeeds, measuring: Mapping[Pair, Job], topology: Topology,
        settings: ProfilerSettings,
    ):  # fmt: skip
        self._world, self._settings, self._topology = world, settings, topology
        self._pairs, self._believed = believed.pairs, believed.kept.copy()
        self._number = {name: m for m, name in enumerate(self._pairs.job_types)}
        self._is_new = np.ones(len(self._number), dtype=np.bool_)
        self._is_new[believed.references] = False
        self._rng = np.random.default_rng(settings.seed)
        among = np.ix_(believed.references, np.arange(len(self._pairs.types)), believed.references)
        references = ReferenceSet(believed.references, self._pairs.kept[among])
        self._beliefs = beliefs_from_references(self._pairs.features, references, 0.0, self._rng)
        self._plan = self._beliefs.copy()  # as if what is under way were measured
        self._matches = None
        if settings.matching:
            shape = len(self._pairs.types), len(self._number)
            self._matches = GrowingMatches(*shape, references, settings.matching, settings.seed)
        self._wanted = dict(measuring)  # pairs not yet asked for
        self._pair_of = {job.job_id: pair for pair, job in measuring.items()}
        self._running: dict[str, Pair] = {}  # jobs that measure, submitted
        self._present: dict[str, int] = {}  # job types of users' jobs that wait or run, -1 = without pairs
        self._sharing: dict[str, tuple[str, float, Pair]] = {}  # by both jobs of a pair: partner, since when, pair
        self._seen: Bools = np.zeros(len(self._number), dtype=np.bool_)  # job types submitted so far
        self._news = False
        self._at, self._spent_s = 0.0, 0.0
        self._measured = 0  # slices that came to their end
        self._shared = 0  # pairs that were learnt because they ran anyway

    def moments(self) -> Iterator[Moment]:
        """Yield the moments of the world with what is measured in them."""
        for moment in self._world.moments():
            self._at = moment.at
            events = [event for event in moment.events if not self._held_back(event)]
            for event in events:
                self._take(event)
            self._learn_from_sharing()
            events += self._ask()
            events += self._moved()
            if events:
                yield Moment.of(self._at, events)

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision; note which jobs share an accelerator."""
        match decision:
            case Refuse(name) | GiveUp(name):
                self._leave(name)
            case Stop(names):
                for name in names:
                    self._part(name)
            case Start():
                self._share(decision)
            case Starts() if (decision.partners.rows >= 0).any():
                for start in decision.each():
                    self._share(start)
        self._world.carry_out(decision)

    def note(self) -> str:
        """Return what was measured."""
        return (
            f"The profiler measured {self._measured:,} pairs in {self._spent_s / 3600:,.1f} accelerator-hours; "
            f"{self._shared:,} more were learnt as their jobs shared an accelerator anyway."
        )

    # ---- what happens ----------------------------------------------------------------------------------------

    def _held_back(self, event: Event) -> bool:
        return isinstance(event, JobSubmitted) and event.job.job_id in self._pair_of

    def _take(self, event: Event) -> None:
        match event:
            case JobSubmitted(job):
                kind = self._present[job.job_id] = self._number.get(job.job_type, -1)
                if kind >= 0:
                    self._news |= not self._seen[kind]
                    self._seen[kind] = True
            case JobFinished(name) if name in self._running:
                self._learn(self._running.pop(name), planned=True)
                self._measured += 1
            case JobFinished(name) | JobCancelled(name):
                self._leave(name)
            case JobFailed(name):
                self._part(name)

    def _leave(self, name: str) -> None:
        self._part(name)
        self._present.pop(name, None)
        self._running.pop(name, None)

    def _share(self, start: Start) -> None:
        mate = start.partner_id
        self._part(start.job_id)
        if mate is not None:
            self._part(mate)
            one, other = self._present.get(start.job_id, -1), self._present.get(mate, -1)
            if one >= 0 and other >= 0 and len(start.seats) == 1:
                pair = one, int(self._topology.type[start.seats[0]]), other
                self._sharing[start.job_id] = mate, self._at, pair
                self._sharing[mate] = start.job_id, self._at, pair

    def _part(self, name: str) -> None:
        mate, _, _ = self._sharing.pop(name, ("", 0.0, None))
        self._sharing.pop(mate, None)

    def _learn_from_sharing(self) -> None:
        """Learn the pairs that have run for as long as a measurement takes."""
        due = [name for name, (_, since, _) in self._sharing.items() if self._at - since >= self._settings.slice_s]
        for name in due:
            if name in self._sharing:
                _, _, pair = self._sharing[name]
                self._part(name)
                if self._wanted.pop(self._key(pair), None) is not None:
                    self._learn(pair, planned=False)
                    self._shared += 1

    def _key(self, pair: Pair) -> Pair:
        """Return a pair as `measuring` names it."""
        i, w, k = pair
        return pair if pair in self._wanted else (k, w, i)

    def _learn(self, pair: Pair, *, planned: bool) -> None:
        i, w, k = pair
        for one, other in ((i, k), (k, i)):
            value = float(self._pairs.kept[one, w, other])
            self._beliefs.observe(one, w, other, value)
            if self._matches is not None:
                self._matches.observe(one, w, other, value)
            if not planned:
                self._plan.observe(one, w, other, value)
        self._news = True

    # ---- what is asked for -----------------------------------------------------------------------------------

    def _ask(self) -> list[Event]:
        """Submit what teaches most, as far as the budget goes."""
        devices, events = len(self._topology.type), list[Event]()
        present = np.flatnonzero(np.isin(np.arange(len(self._number)), list(self._present.values())))
        about = present[self._is_new[present]].tolist()
        while (
            about
            and self._spent_s + self._settings.slice_s <= self._settings.budget * devices * self._at
            and len(self._running) < max(1.0, AT_ONCE * devices)
        ):
            pair = self._next(about)
            if pair is None:
                break
            job = replace(self._wanted.pop(pair), submitted=self._at)
            self._running[job.job_id] = pair
            self._spent_s += self._settings.slice_s
            i, w, k = pair
            for one, other in ((i, k), (k, i)):
                self._plan.expect(one, w, other)
            events.append(JobSubmitted(job))
        return events

    def _next(self, about: list[int]) -> Pair | None:
        """Return the pair to measure next; None where none of these job types' is known badly enough."""
        concerned = set(about)
        pairs = [pair for pair in self._wanted if pair[0] in concerned or pair[2] in concerned]
        pairs = self._plan.least_known(pairs, COMPARED if self._settings.telling else len(pairs)) if pairs else []
        if not pairs:
            return None
        if not self._settings.telling:
            return pairs[int(self._rng.integers(len(pairs)))]
        return self._plan.most_telling(pairs, *about)

    # ---- what is believed ------------------------------------------------------------------------------------

    def _moved(self) -> list[Event]:
        """Return the pairs of job types seen so far whose estimates have moved by more than the tolerance."""
        if not self._news:
            return []
        self._news = False
        kept, names = self._estimate(), self._pairs.job_types
        far = np.abs(kept - self._believed) > self._settings.tolerance * self._believed
        i, k = np.nonzero(far.any(axis=1) & self._seen[:, None] & self._seen)
        if not len(i):
            return []
        self._believed[i, :, k] = kept[i, :, k]
        of, partners = (tuple(names[m] for m in each.tolist()) for each in (i, k))
        return [PairsEstimated(of, partners, kept[i, :, k], self._measured + self._shared)]

    def _estimate(self) -> Floats:
        """Return what is believed of all pairs; those of references are known."""
        if self._matches is None:
            found = self._beliefs.estimate()
            kept = found.median - self._settings.caution * (found.median - found.low)
        else:
            kept = self._matches.estimate()
        kept = np.clip(kept, 1e-3, 1.0)
        known = ~self._is_new
        fixed = (known[:, None] & known)[:, None, :] | (self._pairs.kept == 0)
        return np.where(fixed, self._pairs.kept, kept)
