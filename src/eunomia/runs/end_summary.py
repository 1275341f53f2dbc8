"""Says in sentences how many jobs of a run did not finish, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eunomia.model.arrays import Array
from eunomia.model.decisions import Decision, Refuse
from eunomia.model.events import Moment
from eunomia.model.moment_batch import MomentBatch
from eunomia.verdict.completion_text import other_outcomes

SHOWN_REASONS = 3
HINT = "simulate --record, then eunomia explain JOB, says why one waits"


class Refusals:
    """An observer that keeps the reasons of refused jobs."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}  # by job id

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note the reason of every refused job."""
        for decision in decisions:
            if isinstance(decision, Refuse):
                self.why.setdefault(decision.job_id, decision.why)

    def observe_batch(self, batch: MomentBatch) -> None:
        """No job of a batch is refused."""


def completion_sentences(
    summary: Mapping[str, float | int | None], jobs: Mapping[str, Array], why: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the sentences; none when every job finished. `jobs` are the columns of jobs.csv, `why` is by job id."""
    others = other_outcomes(summary.get)
    if not others:
        return ()
    counts = f"{summary['jobs_finished']:,} of {summary['jobs_submitted']:,} jobs finished; {others}"
    return (counts, *_rejected(jobs, why), *_unfinished(jobs))


def _rejected(jobs: Mapping[str, Array], why: Mapping[str, str]) -> Iterator[str]:
    """Yield the commonest reasons of rejected jobs."""
    rejected = jobs["job_id"][jobs["status"] == "rejected"]
    reasons = Counter(why.get(name, "no reason was given") for name in rejected.tolist())
    for reason, times in reasons.most_common(SHOWN_REASONS):
        yield f"rejected: {reason} ({times:,})"
    if len(reasons) > SHOWN_REASONS:
        yield f"rejected: for {len(reasons) - SHOWN_REASONS:,} reasons more"


def _unfinished(jobs: Mapping[str, Array]) -> Iterator[str]:
    """Yield how many unfinished jobs never started, and how many ran for a while."""
    first = jobs["first_started_s"][jobs["status"] == "unfinished"]
    never, begun = int(np.isnan(first).sum()), int((~np.isnan(first)).sum())
    if never or begun:
        yield f"unfinished when the run ended: {never:,} never started, {begun:,} had run for a while; {HINT}"
