"""What became of the jobs of a run that did not finish, and why, for whoever reads its averages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eunomia.model.arrays import Array
from eunomia.model.decisions import Decision, Refuse
from eunomia.model.events import Moment
from eunomia.report.completion_text import other_outcomes

MOST_TOLD = 3  # reasons
ASK = "simulate --record, then eunomia explain JOB, says why one waits"


class Refusals:
    """An observer that keeps why jobs were refused."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}  # by job id

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note the reason of every job that is refused."""
        for decision in decisions:
            if isinstance(decision, Refuse):
                self.why.setdefault(decision.job_id, decision.why)


def endings(
    summary: Mapping[str, float | int | None], jobs: Mapping[str, Array], why: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the sentences; none when every job finished. `jobs` are the columns of jobs.csv."""
    others = other_outcomes(summary.get)
    if not others:
        return ()
    told = f"{summary['jobs_finished']:,} of {summary['jobs_submitted']:,} jobs finished; {others}"
    return (told, *_rejected(jobs, why), *_unfinished(jobs))


def _rejected(jobs: Mapping[str, Array], why: Mapping[str, str]) -> Iterator[str]:
    """Yield the commonest reasons of those that were rejected."""
    rejected = jobs["job_id"][jobs["status"] == "rejected"]
    reasons = Counter(why.get(name, "no reason was given") for name in rejected.tolist())
    for reason, times in reasons.most_common(MOST_TOLD):
        yield f"rejected: {reason} ({times:,})"
    if len(reasons) > MOST_TOLD:
        yield f"rejected: for {len(reasons) - MOST_TOLD:,} reasons more"


def _unfinished(jobs: Mapping[str, Array]) -> Iterator[str]:
    """Yield how far those came that the run left behind."""
    first = jobs["first_started_s"][jobs["status"] == "unfinished"]
    never, begun = int(np.isnan(first).sum()), int((~np.isnan(first)).sum())
    if never or begun:
        yield f"unfinished when the run ended: {never:,} never started, {begun:,} had run for a while; {ASK}"
