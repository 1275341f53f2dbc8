"""Gavel's estimator of pair throughputs: a new job is taken for the reference job that it resembles most.

The new job runs beside some reference jobs, which gives a sparse fingerprint; matrix completion fills it, and the
nearest reference row (cosine distance) stands for the job. D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling
Policies for Deep Learning Workloads", OSDI 2020, section 6; the idea is that of Paragon and Quasar (C. Delimitrou and
C. Kozyrakis, ASPLOS 2013 and 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import row_dots
from eunomia.throughputs.estimators.completion import complete
from eunomia.throughputs.estimators.pair_table import PairTable


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """What was measured of one new job: `kept` (type, reference), meaningful where `known`."""

    kept: Floats
    known: Bools


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceSet:
    """The jobs that new jobs are compared with, and what is known of their pairs."""

    jobs: Ints  # rows of the table
    kept: Floats  # (reference, type, reference)

    @property
    def rows(self) -> Floats:
        """One row a reference job, columns by type, then by reference."""
        return self.kept.reshape(len(self.jobs), -1)

    def match(self, seen: Fingerprint, solver: str, rng: np.random.Generator) -> tuple[int, Floats]:
        """Return the index of the nearest reference and the completed fingerprint, (type · reference,).

        A random reference where the fingerprint is 0 or the solver fails.
        """
        rows = self.rows
        matrix = np.concatenate((rows, seen.kept.reshape(1, -1)))
        known = np.ones(matrix.shape, dtype=np.bool_)
        known[-1] = seen.known.ravel()
        try:
            row = complete(np.where(known, matrix, 0.0), known, solver, rng)[-1]
        except ArithmeticError:
            return int(rng.integers(len(self.jobs))), np.zeros(rows.shape[1])
        distance = cosine_distances(row, rows)
        if not np.isfinite(distance).all():
            return int(rng.integers(len(self.jobs))), row
        return int(np.argmin(np.round(distance, 12))), row


def cosine_distances(row: Floats, rows: Floats) -> Floats:
    """Return 1 − cos of the angle between a row and each of `rows`; nan where one of them is 0."""
    sizes = np.sqrt(row_dots(rows, rows)) * np.sqrt(row_dots(row, row))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 - row_dots(rows, np.broadcast_to(row, rows.shape)) / sizes)


def draw_references(table: PairTable, count: int, rng: np.random.Generator) -> ReferenceSet:
    """Draw reference jobs without replacement. Raises InvalidInput for more than the table has."""
    if not 2 <= count <= len(table.job_types):
        rule = f"reference jobs are drawn from the {len(table.job_types)} job types that run on every type of the table"
        fix = f"give 2 to {len(table.job_types)}, or measure the others where they are missing"
        raise refused(table.name, "references", count, rule, fix)
    jobs = np.sort(rng.choice(len(table.job_types), count, replace=False))
    kept = table.kept[np.ix_(jobs, np.arange(len(table.types)), jobs)]
    return ReferenceSet(jobs, np.where(np.isnan(kept), 0.0, kept))


def draw_profile(types: int, references: int, share: float, rng: np.random.Generator) -> Bools:
    """Return which pairs are measured, (type, reference): each independently with probability `share`."""
    return np.asarray(rng.random((types, references)) < share)


def take_fingerprint(
    table: PairTable, job: int, refs: ReferenceSet, asked: Bools, *, legacy: bool = False
) -> Fingerprint:
    """Measure a job beside the references where `asked`.

    `legacy` reads column w · r + j of the job's whole row, as the public code does, instead of that of reference j on
    type w: right only if all jobs are references.
    """
    row = table.kept[job]
    if legacy:
        types, r = asked.shape
        place = np.arange(types)[:, None] * r + np.arange(r)[None, :]
        kept = row.ravel()[place]
    else:
        kept = row[:, refs.jobs]
    return Fingerprint(np.where(np.isnan(kept), 0.0, kept), asked & ~np.isnan(kept))


class GrowingMatches:
    """The published estimator as its fingerprints grow, one measured pair at a time.

    A job without a measured pair is taken for a reference drawn by the seed.
    """

    def __init__(self, types: int, jobs: int, refs: ReferenceSet, solver: str, seed: int):
        self._refs, self._solver, self._seed = refs, solver, seed
        self._column = {int(job): m for m, job in enumerate(refs.jobs)}
        self._prints = {
            job: Fingerprint(np.zeros((types, len(refs.jobs))), np.zeros((types, len(refs.jobs)), dtype=np.bool_))
            for job in range(jobs)
            if job not in self._column
        }
        self._matches = dict(self._column)
        self._stale = set(self._prints)

    def observe(self, job: int, type: int, partner: int, kept: float) -> None:
        """Learn the normalised throughput of a job beside a partner; that of a new job beside a reference counts."""
        if job in self._prints and partner in self._column:
            seen = self._prints[job]
            seen.kept[type, self._column[partner]], seen.known[type, self._column[partner]] = kept, True
            self._stale.add(job)

    def estimate(self) -> Floats:
        """Return the normalised throughputs of all pairs, (job, type, partner)."""
        for job in sorted(self._stale):
            rng = np.random.default_rng((self._seed, job))
            self._matches[job], _ = self._refs.match(self._prints[job], self._solver, rng)
        self._stale.clear()
        order = [self._matches[job] for job in range(len(self._matches))]
        return matched_rates(self._refs, order)


def matched_rates(refs: ReferenceSet, matches: list[int]) -> Floats:
    """Return the normalised throughputs of all pairs of jobs by their matches, (job, type, partner)."""
    return refs.kept[matches][:, :, matches]
