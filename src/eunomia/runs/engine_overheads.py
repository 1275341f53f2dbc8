"""Measures what a real backend's starts and stops cost, so that a simulation can charge the same."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, cast

from eunomia.backends.inputs import RealBackend
from eunomia.inputs.problems import InvalidInput
from eunomia.model.decisions import SetTimer, Start, Stop
from eunomia.model.events import JobFailed, JobFinished, Moment, Progressed
from eunomia.model.job import Job
from eunomia.runs.local_run import GRACE_S
from eunomia.scenario import Scenario
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import backend_inputs

STEPS, STEP_S = 8, 0.25  # of a trial that runs to its end; each step is saved
LONG_STEPS = 16  # of one that is stopped before
FAR_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOverheads:
    """Medians of trials, in s, as [overheads] names them."""

    start_s: float  # a job's time from its start to its reported end, beyond its steps
    checkpoint_s: float  # to save: a trial's time beyond its steps, for each of them
    restore_s: float  # from its last save until a trial goes on that is stopped and started again at once
    trials: int


def measure_overheads(scenario: Scenario, workdir: Path, trials: int) -> MeasuredOverheads:
    """Run that many gangs to their end, and as many that are stopped and started again, one after the other.

    Raises InvalidInput if the scenario's backend is a simulation, or if a trial fails.
    """
    setup = set_up(scenario)
    if not setup.backend.real_time:
        rule, fix = (
            "a simulation has the overheads that it is given",
            'set backend = "local" or an engine, such as "slurm"',
        )
        raise scenario.refused(("world", "backend"), rule, fix, scenario.world.backend)
    workdir.mkdir(parents=True, exist_ok=True)
    ledger = workdir.resolve() / "trials.jsonl"
    jobs = [_trial(f"trial-{n}", ledger, STEPS if n < trials else LONG_STEPS) for n in range(2 * trials)]
    inputs = backend_inputs(setup, workdir=workdir / "jobs", grace_s=GRACE_S, settings=None, clock=None, wait_s=0.0)
    inputs = replace(inputs, jobs=jobs)
    setup.backend.check(inputs)
    starts, saves, restores = [], [], []
    with cast(RealBackend, setup.backend.build(inputs)) as world:
        bench = _Bench(scenario, world, ledger)
        poll_s = float(inputs.options.get("poll_s", 0.0))
        for n, job in enumerate(jobs):
            bench.late_s = poll_s * (n % trials + 0.5) / trials
            if n < trials:
                starts.append(bench.whole(job))
            else:
                save_s, restore_s = bench.stopped(job)
                saves.append(save_s)
                restores.append(restore_s)
    return MeasuredOverheads(
        start_s=round(median(starts), 3), checkpoint_s=round(median(saves), 3), restore_s=round(median(restores), 3),
        trials=trials,
    )  # fmt: skip


def with_overheads(scenario: Scenario, measured: MeasuredOverheads) -> Scenario:
    """Return the scenario with these overheads."""
    values = {"start_s": measured.start_s, "checkpoint_s": measured.checkpoint_s, "restore_s": measured.restore_s}
    return scenario.model_copy(update={"overheads": scenario.overheads.model_copy(update=values)})


def _trial(name: str, ledger: Path, steps: int) -> Job:
    program = str(files("eunomia").joinpath("testing", "recording_job.py"))
    work = {"steps": steps, "step_s": STEP_S, "exit_code": 0, "ignores_term": False, "has_child": False}
    command = (sys.executable, program, str(ledger), json.dumps(work))
    return Job(job_id=name, total_steps=float(steps), command=command)


class _Bench:
    """Drives a backend by hand."""

    def __init__(self, scenario: Scenario, world: RealBackend, ledger: Path) -> None:
        self._scenario, self._world, self._ledger = scenario, world, ledger
        self.late_s = 0.0  # of an order after a poll; else all trials would meet the polls at the same phase
        world.carry_out(SetTimer(FAR_S))  # so that the world waits for the next trial
        self._moments: Iterator[Moment] = world.moments()
        next(self._moments)  # the submissions

    def whole(self, job: Job) -> float:
        """Run a trial to its end; return the time beyond its steps."""
        time.sleep(self.late_s)
        begun = time.monotonic()
        self._world.carry_out(Start(job.job_id, 1, (0,), math.inf))
        self._wait(job, lambda event: isinstance(event, JobFinished))
        return time.monotonic() - begun - STEPS * STEP_S

    def stopped(self, job: Job) -> tuple[float, float]:
        """Stop a trial that has saved some steps and start it again; return what saving and going on cost.

        The report of its end is not part of it: a job pays for that once, however often it is stopped.
        """
        self._world.carry_out(Start(job.job_id, 1, (0,), math.inf))
        self._wait(job, lambda event: isinstance(event, Progressed))
        time.sleep(self.late_s)
        self._world.carry_out(Stop((job.job_id,), (1,)))
        self._world.carry_out(Start(job.job_id, 2, (0,), math.inf))
        self._wait(job, lambda event: isinstance(event, JobFinished))
        lines = self._lines(job)
        first, *later = [line for line in lines if line["what"] == "start"]
        if not later:
            raise self._failed("a trial ended before it could be stopped", "let the engine be asked more often: poll_s")
        saved = [line for line in lines if line["what"] == "step" and line["epoch"] == 1][-1]
        save_s = (saved["at"] - first["at"]) / saved["step"] - STEP_S
        return max(save_s, 0.0), later[0]["at"] - saved["at"]

    def _wait(self, job: Job, awaited: Callable[[Any], bool]) -> None:
        for moment in self._moments:
            for event in moment.events:
                if isinstance(event, JobFailed):
                    raise self._failed(f"a trial failed: {event.reason}", f"see {self._world.log(job.job_id)}")
            if any(awaited(event) for event in moment.events):
                return
        raise AssertionError("the backend ended before its trials")

    def _failed(self, rule: str, fix: str) -> InvalidInput:
        return InvalidInput([self._scenario.problem(("world", "backend"), rule, fix)])

    def _lines(self, job: Job) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._ledger.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line["job_id"] == job.job_id]
