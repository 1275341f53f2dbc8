"""How large the cluster of a case was, and how the artifact was started: no file tells either.

The cases that are known by name come first. Of others the size is looked for: under the right one every job of a run
ends when it did there, and jobs are dropped that were dropped there. So many accelerators as worked at once are the
least; a cluster of the artifact is made of machines of 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.peers.astraea.inputs import ArtifactOptions, ArtifactWorkload, options
from eunomia_reproduction.peers.astraea.ticks import Ticks
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read

KNOWN = {"fake500": (4 * 8 * 8, True), "a400": (16 * 8, False), "a400h": (16 * 8, False)}
MACHINE, MOST = 8, 4096  # accelerators
TRIED = 48  # sizes that are tried, the least first
RESULT = ("end_time", "duration", "resume_cnt", "preempt_cnt")


@dataclass(frozen=True, slots=True)
class ClusterSetting:
    """One way in which a case may have been run; equal: how many jobs end as there, of how many."""

    accelerators: int
    upstream: bool  # started without options
    equal: int
    of: int

    @property
    def fits(self) -> bool:
        """Say whether every job ends as there."""
        return self.equal == self.of


def setting(case: Path, jobs: ArtifactWorkload, runs: Sequence[Path]) -> ClusterSetting:
    """Return the first way under which the first of the runs is equal, else that which is nearest.

    A case known by name is looked into no further when most of its jobs are equal. Raises InvalidInput where no size
    drops as many jobs as were dropped there.
    """
    path = runs[0]
    sheet = read(path, numbers=RESULT, texts=("job_id",))
    of = len(sheet.texts["job_id"])
    best = ClusterSetting(0, False, -1, of)
    for accelerators, upstream in _ways(case.name, jobs, sheet):
        equal = _equal(replace(jobs, accelerators=accelerators), options(path, upstream=upstream), sheet)
        best = max(best, ClusterSetting(accelerators, upstream, equal, of), key=lambda one: one.equal)
        if best.fits or (case.name in KNOWN and 2 * equal > of):
            return best
    if best.equal < 0:
        rule = f"it has results of {of} jobs, and no cluster of up to {MOST} accelerators admits so many of the trace"
        raise InvalidInput([Problem(file=str(path), column="job_id", rule=rule, fix="give the whole file of one run")])
    return best


def _ways(name: str, jobs: ArtifactWorkload, sheet: PeerSheet) -> Iterator[tuple[int, bool]]:
    """Yield accelerators, and whether the artifact was started without options."""
    if name in KNOWN:
        yield KNOWN[name]
    least = -(-at_once(jobs, sheet) // MACHINE) * MACHINE
    admitting = [
        size
        for size in range(least, MOST + 1, MACHINE)
        if int(replace(jobs, accelerators=size).admitted().sum()) == len(sheet.texts["job_id"])
    ]
    for size in admitting[:TRIED]:
        yield from ((size, False), (size, True))


def at_once(jobs: ArtifactWorkload, sheet: PeerSheet) -> int:
    """Return how many accelerators worked at once, of jobs that ran without a break; at least one."""
    width = dict(zip(jobs.names, jobs.size.tolist(), strict=True))
    whole = (np.array(sheet.numbers["resume_cnt"]) == 0) & (np.array(sheet.numbers["preempt_cnt"]) == 0)
    end, lasts = (np.array(sheet.numbers[name])[whole] for name in ("end_time", "duration"))
    size = np.array([width.get(name, 0) for name in sheet.texts["job_id"]])[whole]
    at = np.concatenate((end, end - lasts))
    change = np.concatenate((-size, size))
    order = np.lexsort((change, at))  # ends before starts
    return max(int(np.cumsum(change[order]).max(initial=0)), 1)


def _equal(jobs: ArtifactWorkload, asked: ArtifactOptions, sheet: PeerSheet) -> int:
    """Return how many jobs end when they do there."""
    end = dict(zip(jobs.names, Ticks(jobs, asked).run().end.tolist(), strict=True))
    return sum(
        end.get(name) == theirs for name, theirs in zip(sheet.texts["job_id"], sheet.numbers["end_time"], strict=True)
    )
