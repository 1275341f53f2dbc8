"""Checks scenarios without running them; results that several runs share are computed once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.arrays import Floats
from eunomia.policies.order.fifo import Fifo
from eunomia.runs.as_it_was import AS_IT_WAS, check_past
from eunomia.runs.measurement_window import measured_rows
from eunomia.scenario import Scenario
from eunomia.scenario.load import AUTO
from eunomia.scenario.source_locations import KeyPath, Place, dotted
from eunomia.setup.plugins import find_backend
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.stated_throughputs import resolved, stated_throughputs, true_throughputs
from eunomia.setup.workload import Workload, read_trace, submissions
from eunomia.throughputs import SYNTHETIC, Throughputs
from eunomia.traces.sampling import LOAD

NO_JOBS = Workload(jobs=(), notes=())
# Keys that can make the setup, the trace or the jobs of a run invalid, the likeliest cause first. A problem of a policy
# or a mechanism has its own line, and a load causes none.
SETUP_KEYS = ("cluster", "throughputs")
TRACE_KEYS = ("workload",)
JOB_KEYS = ("cluster", "throughputs", "workload")
LOAD_KEY = ("workload", "load")

Cached = TypeVar("Cached")
Settings = Sequence[tuple[KeyPath, Place]]  # keys that the sweep sets in a run, with their places


class Checker:
    """Checks scenarios one after another, and caches what they share."""

    def __init__(self) -> None:
        self._setups: dict[str, RunConfig] = {}
        self._speeds: dict[str, Throughputs] = {}
        self._draws: dict[str, bool] = {}
        self._jobs: dict[str, Floats] = {}
        self._refused: dict[
            str, tuple[InvalidInput, tuple[str, ...]]
        ] = {}  # by workload: its error, and keys that may be the cause

    def check(self, scenario: Scenario, settings: Settings) -> int:
        """Return the number of jobs of the run. Raises InvalidInput with problems at their place in the sweep file."""
        _check_backend(scenario)
        _check_load(scenario)
        scenario = _resolved(scenario)
        if scenario.policy.name == AS_IT_WAS:
            check_past(scenario, read_trace(scenario).started_s)
        data = scenario.as_dict()
        setup = self._setup(scenario, data, settings)
        submitted_s = self._submitted(scenario, data, setup, settings) / scenario.workload.load
        measured_rows(scenario, submitted_s)
        return len(submitted_s)

    def _setup(self, scenario: Scenario, data: dict[str, Any], settings: Settings) -> RunConfig:
        """Return the configuration of the run without jobs."""
        policy = Fifo() if scenario.policy.name == AS_IT_WAS else None  # which has none
        shared = {key: value for key, value in data.items() if key not in ("seed", "workload", "measure")}
        try:
            return _once(self._setups, _key(shared), lambda: set_up(scenario, NO_JOBS, policy))
        except InvalidInput as error:
            raise _placed(error, scenario, settings, SETUP_KEYS) from error

    def _submitted(self, scenario: Scenario, data: dict[str, Any], setup: RunConfig, settings: Settings) -> Floats:
        """Return submission times at load 1, (job,), after checking that all jobs can run."""
        plain = scenario.model_copy(update={"workload": scenario.workload.model_copy(update={"load": 1.0})})
        work = {**data["workload"], "load": 1.0}
        parts = [work, data["cluster"], data["throughputs"]]
        shared = _key([data["cluster"], data["throughputs"]])
        stated = _once(self._speeds, shared, lambda: stated_throughputs(scenario, setup.topology))
        speeds = true_throughputs(scenario, stated)
        key = _key(parts)
        drawn = False
        if key not in self._refused:
            try:
                drawn = self._draws_jobs(plain, work)
                key = _key([*parts, scenario.seed]) if drawn else key
                if key not in self._refused:
                    return _once(self._jobs, key, lambda: submissions(plain, setup.topology, speeds))
            except InvalidInput as error:
                self._refused[key] = error, (*_possible_causes(plain), *(("seed",) if drawn else ()))
        refusal, causes = self._refused[key]
        raise _placed(refusal, scenario, settings, causes) from refusal

    def _draws_jobs(self, scenario: Scenario, work: dict[str, Any]) -> bool:
        """Whether the jobs depend on the seed; those of a trace with job types do not, unless throughputs are drawn."""
        if scenario.throughputs.draw or scenario.workload.resample is not None:
            return True
        if scenario.workload.generator is not None or scenario.throughputs.source in SYNTHETIC:
            return scenario.workload.generator is not None
        return _once(self._draws, _key(work), lambda: read_trace(scenario).job_type is None)


def _resolved(scenario: Scenario) -> Scenario:
    """Return the scenario with its source of throughputs; a trace that cannot be read is refused later."""
    if scenario.throughputs.source == AUTO:
        with suppress(InvalidInput):
            return resolved(scenario, read_trace(scenario))
    return scenario


def _possible_causes(scenario: Scenario) -> tuple[str, ...]:
    """Return the keys that may make the jobs invalid."""
    try:
        read_trace(scenario)
    except InvalidInput:
        return TRACE_KEYS
    return JOB_KEYS


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _once(cache: dict[str, Cached], key: str, compute: Callable[[], Cached]) -> Cached:
    """Return the cached value, or compute it."""
    if key not in cache:
        cache[key] = compute()
    return cache[key]


def _placed(error: InvalidInput, scenario: Scenario, settings: Settings, order: Sequence[str]) -> InvalidInput:
    """Return the error; if it names other files only, first the key of the sweep that is its likeliest cause."""
    causes = [(at, place) for name in order for at, place in settings if at[0] == name and at != LOAD_KEY]
    own_files = {scenario.where(())[0], *(place[0] for _, place in causes)}
    if not causes or any(problem.file in own_files for problem in error.problems):
        return error
    path, (file, row) = causes[0]
    rule = f"this run cannot be made: {error.problems[0].rule}"
    first = Problem(file=file, row=row, column=dotted(path), rule=rule, fix=error.problems[0].fix)
    return InvalidInput([first, *error.problems], error.count + 1)


def _check_backend(scenario: Scenario) -> None:
    if find_backend(scenario).real_time:
        fix = 'write backend = "simulated", or leave it out'
        raise scenario.refused(("world", "backend"), "a sweep simulates", fix, scenario.world.backend)


def _check_load(scenario: Scenario) -> None:
    load = scenario.workload.load
    if not LOAD.least <= load <= LOAD.most:
        raise scenario.refused(LOAD_KEY, f"must be {LOAD.what}", LOAD.fix, f"{load:g}")
