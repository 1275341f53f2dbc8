"""What the forecast process answers: when a job starts, what a change would do, and what is to be recorded."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eunomia.forecasts.changed_state import moved_to, with_job, without_nodes
from eunomia.forecasts.comparison import StateComparison, compare_states
from eunomia.forecasts.futures import Futures, PresentState, play_futures
from eunomia.forecasts.intervals import IntervalCorrection, TimeInterval, quantiles
from eunomia.forecasts.start_conditions import start_conditions
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.records.queue_position import position_behind
from eunomia.service.changed_site import changed_setup
from eunomia.service.core_job import core_job, estimated_event
from eunomia.service.followed_state import FollowedState
from eunomia.service.job_row import JobRow
from eunomia.service.site import Site

BUDGET_S = 4.0  # CPU time of the futures of one answer
WHAT_IF_S = 1.6  # of one comparison
FRESH_S = 30.0  # for so long futures of one moment are used again
NOTED = 1_000  # jobs of one part of what is recorded: the writer stores it in one turn
MOST_SHOWN = 200  # jobs of one comparison
START, FINISH = 0, 1


@dataclass(frozen=True, slots=True)
class _Played:
    """Futures of one moment, and their quantiles (what, point, row)."""

    seq: int
    now: float
    arrivals: bool
    futures: Futures
    points: Floats


@dataclass(slots=True)
class _Noting:
    """What is being recorded of one moment: its futures, and the jobs, with their rows, that are not recorded yet."""

    played: _Played
    corrections: tuple[IntervalCorrection, IntervalCorrection]
    jobs: list[tuple[Job, int]]


class ForecastAnswers:
    """Answers about one site; everything is read from its store."""

    def __init__(self, site: Site, budget_s: float = BUDGET_S) -> None:
        self._site, self._budget_s = site, budget_s
        self._state = FollowedState(site)
        self._played: _Played | None = None
        self._noting: _Noting | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer one question. Raises InvalidInput for a change that cannot be made, SiteChanged for another site."""
        if asked["ask"] == "next note":
            lost = {"error": "the process was started again before all jobs were recorded", "code": "busy"}
            return lost if self._noting is None else self._next_note()
        present = self._state.present(float(asked["now"]), arrivals=bool(asked.get("arrivals")))
        match asked["ask"]:
            case "when":
                return self._when(present, asked["job"], bool(asked.get("arrivals")))
            case "note":
                return self._note(present)
            case "whatif":
                return self._what_if(present, asked)
            case "why":
                return self._why(present, asked)
        raise ValueError(f"there is no question {asked['ask']!r}")

    # ---- when ------------------------------------------------------------------------------------------------

    def _futures(self, present: PresentState, arrivals: bool) -> _Played:
        kept, seq = self._played, self._state.seq
        if kept is None or (kept.seq, kept.arrivals) != (seq, arrivals) or present.at > kept.now + FRESH_S:
            played = play_futures(present, seed=seq, arrivals=arrivals, budget_s=self._budget_s)
            points = np.stack((quantiles(played.start), quantiles(played.finish)))
            kept = self._played = _Played(seq, present.at, arrivals, played, points)
        return kept

    def _corrections(self) -> tuple[IntervalCorrection, IntervalCorrection]:
        """Return what earlier forecasts of starts and of finishes teach."""
        found = IntervalCorrection(), IntervalCorrection()
        for said, outcome in self._state.reader.outcomes():
            for one, raw, came in zip(found, said["raw"], (outcome.started, outcome.finished), strict=True):
                if came is not None:
                    one.learn(said["at"], TimeInterval(*raw), came)
        return found

    def _interval(self, played: _Played, what: int, row: int) -> TimeInterval:
        return TimeInterval(*(float(value) for value in played.points[what, :, row]))

    def _when(self, present: PresentState, job_id: str, arrivals: bool) -> dict[str, Any]:
        row = present.scheduler.state.row_of.get(job_id)
        if row is None:
            return {"at": present.at, "start": None, "finish": None, "futures": 0, "assumes": []}
        played = self._futures(present, arrivals)
        found: dict[str, Any] = {"at": played.futures.at, "futures": len(played.futures)}
        runs = present.scheduler.state.jobs.stage[row] == Stage.RUNNING
        for name, what, correction in zip(("start", "finish"), (START, FINISH), self._corrections(), strict=True):
            one = self._interval(played, what, row)
            one = one if runs and what == START else correction.apply(played.futures.at, one)
            found[name] = [_or_none(value) for value in (one.p10, one.p50, one.p90)]
        return {**found, "assumes": self._assumes(present, played, row)}

    def _assumes(self, present: PresentState, played: _Played, row: int) -> list[str]:
        scheduler = present.scheduler
        texts = ["run times are as long as declared, or drawn from those of like jobs where they are not"]
        if played.arrivals:
            texts.append("tenants go on submitting jobs as they did before")
        else:
            texts.append("no further job is submitted")
        texts.append("no node is lost, and no job fails, is held or is cancelled")
        if scheduler.state.jobs.stage[row] == Stage.PAUSED and row not in (*present.resumes_at, *present.follows):
            texts.append("it stays held, so it never starts")
        elif scheduler.state.jobs.stage[row] == Stage.PAUSED and row in present.follows:
            texts.append(
                "it starts after the jobs that it waits for have ended, also where a limit or a priority holds it"
            )
        if not played.futures.complete:
            texts.append("what happens after the futures were cut for time is not known: such a time is null")
        return texts

    def _note(self, present: PresentState) -> dict[str, Any]:
        """Return the first part of what is to be recorded now; see `_next_note`."""
        state = present.scheduler.state
        waiting = [int(row) for row in state.active if state.jobs.stage[row] == Stage.WAITING]
        jobs = sorted(((state.submitted[row], row) for row in waiting), key=lambda one: one[0].sequence)
        self._noting = None if not jobs else _Noting(self._futures(present, arrivals=False), self._corrections(), jobs)
        return self._next_note()

    def _next_note(self) -> dict[str, Any]:
        """Return forecasts of waiting jobs that have none yet, and the median starts of those that have one.

        That is of the next jobs of one moment; `more` says whether there are further ones.
        """
        noting, new, moved = self._noting, list[Any](), list[Any]()
        if noting is None:
            return {"new": new, "moved": moved, "more": False}
        jobs, noting.jobs = noting.jobs[:NOTED], noting.jobs[NOTED:]
        known = self._state.reader.forecasts(jobs[0][0].sequence, jobs[-1][0].sequence)
        for job, row in jobs:
            raw = [self._interval(noting.played, what, row) for what in (START, FINISH)]
            if not all(math.isfinite(one.p90) for one in raw):
                continue
            if job.job_id not in known:
                at = noting.played.futures.at
                shown = [one.apply(at, said) for one, said in zip(noting.corrections, raw, strict=True)]
                said = {"at": at, "raw": [_points(one) for one in raw], "shown": [_points(one) for one in shown]}
                new.append([job.sequence, job.job_id, job.tenant, said])
            elif raw[START].p50 > known[job.job_id]:
                moved.append([job.sequence, raw[START].p50])
        if not noting.jobs:
            self._noting = None
        return {"new": new, "moved": moved, "more": self._noting is not None}

    # ---- why -------------------------------------------------------------------------------------------------

    def _why(self, present: PresentState, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what would let a waiting job start, and the jobs ahead; those of the asker's tenant by name."""
        tenant = asked["tenant"]  # None: the asker may see all
        smaller = [
            (core_job(row), estimated_event(row) if row.estimate else None) for row in map(JobRow.of, asked["smaller"])
        ]

        def may_see(other: str) -> bool:
            return tenant is None or other == tenant

        found = start_conditions(present, asked["job"], smaller=smaller, first=may_see)
        state = present.scheduler.state
        behind = None if found.ahead is None else position_behind(present.scheduler, found.ahead, may_see)
        tenants = {name: state.submitted[state.row_of[name]].tenant for one in found.conditions for name in one.jobs}
        return {
            "unchanged": _or_none(found.unchanged),
            "changes": found.changes,
            "position": None if behind is None else asdict(behind),
            "conditions": [
                {
                    **asdict(one),
                    "tenants": [tenants[name] for name in one.jobs],
                    "starts": None if one.starts <= present.at else one.starts,
                }
                for one in found.conditions
            ],
        }

    # ---- what if ---------------------------------------------------------------------------------------------

    def _what_if(self, present: PresentState, asked: dict[str, Any]) -> dict[str, Any]:
        new = ""
        if (job := asked.get("job")) is not None:
            row = JobRow.of(job["row"])
            new, estimate = row.id, estimated_event(row) if row.estimate else None
            after = with_job(present, core_job(row), estimate)
        else:
            after = self._changed(present, asked)
        found = compare_states(present, after, seed=self._state.seq, budget_s=WHAT_IF_S)
        return _shown(found, present, new)

    def _changed(self, present: PresentState, asked: dict[str, Any]) -> PresentState:
        """Return the state with another policy, or with other nodes."""
        policy, nodes = asked.get("policy"), dict[str, int](asked.get("nodes") or {})
        fewer = {kind: -count for kind, count in nodes.items() if count < 0}
        more = {kind: count for kind, count in nodes.items() if count > 0}
        gone = self._nodes_to_leave(present, fewer)
        after = without_nodes(present, gone) if gone else present
        if policy is None and not more:
            return after
        setup = changed_setup(self._site, policy, more)
        fresh = setup.scheduler()
        return moved_to(after, fresh, setup.policy)

    def _nodes_to_leave(self, present: PresentState, fewer: dict[str, int]) -> list[int]:
        """Return the last nodes in service of each type."""
        topology, up = present.scheduler.state.topology, present.scheduler.state.floor.up
        found = []
        for kind, count in fewer.items():
            here = [n for n in range(topology.nodes) if topology.types[int(topology.node_type[n])] == kind and up[n]]
            if count > len(here):
                rule = f"the cluster has {len(here)} nodes of that type in service"
                raise refused("what-if", "nodes", f"{kind}=-{count}", rule, "take fewer away")
            found += here[len(here) - count :]
        if len(found) == int(up.sum()):
            raise refused("what-if", "nodes", None, "no node would be left", "take fewer away")
        return found


def _points(one: TimeInterval) -> list[float]:
    return [one.p10, one.p50, one.p90]


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(found: StateComparison, present: PresentState, new: str) -> dict[str, Any]:
    changed = found.changed()
    return {
        "at": present.at,
        "futures": found.futures,
        "complete": found.complete,
        "until": _or_none(found.until),
        "jobs_compared": len(found.jobs),
        "new_job": new or None,
        "changed": [
            {
                "id": one.job_id,
                "tenant": one.tenant,
                "before": None if one.before is None else [_or_none(value) for value in one.before],
                "after": [_or_none(value) for value in one.after],
            }
            for one in changed[:MOST_SHOWN]
        ],
        "changed_count": len(changed),
        "tenants": [
            {"tenant": tenant, "sooner": sooner, "later": later, "unchanged": same, "mean_later_s": mean}
            for tenant, sooner, later, same, mean in found.tenants()
        ],
    }
