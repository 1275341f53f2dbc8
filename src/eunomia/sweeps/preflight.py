"""Whether a scenario can be run, found out without running it; what many runs share is looked at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.arrays import Floats
from eunomia.runs.measurement_window import measured_rows
from eunomia.scenario import Scenario
from eunomia.scenario.source_locations import KeyPath, Place, dotted
from eunomia.setup.run_config import RunConfig, set_up
from eunomia.setup.workload import Workload, read_trace, submissions
from eunomia.throughputs import SYNTHETIC, Throughputs, load
from eunomia.traces.window import LOAD

NO_JOBS = Workload(jobs=(), notes=())
# What decides whether a run can be wired, its trace read, and its jobs run; the likeliest cause first. What a policy or
# a mechanism cannot take is told with its line already, and a load changes none of this.
WIRING = ("cluster", "throughputs")
TRACE = ("workload",)
WORK = ("cluster", "throughputs", "workload")
LOAD_KEY = ("workload", "load")

Kept = TypeVar("Kept")
Settings = Sequence[tuple[KeyPath, Place]]  # keys that the sweep sets in a run, and where


class Checker:
    """Checks one scenario after another, and remembers what it found."""

    def __init__(self) -> None:
        self._setups: dict[str, RunConfig] = {}
        self._speeds: dict[str, Throughputs] = {}
        self._draws: dict[str, bool] = {}
        self._jobs: dict[str, Floats] = {}
        self._refused: dict[str, tuple[InvalidInput, tuple[str, ...]]] = {}  # workloads, and what may be the cause

    def check(self, scenario: Scenario, settings: Settings) -> int:
        """Return how many jobs the run has. Raises InvalidInput with what is wrong, where the sweep said it."""
        _refuse_world(scenario)
        _refuse_load(scenario)
        said = scenario.as_dict()
        setup = self._setup(scenario, said, settings)
        submitted_s = self._submitted(scenario, said, setup, settings) / scenario.workload.load
        measured_rows(scenario, submitted_s)
        return len(submitted_s)

    def _setup(self, scenario: Scenario, said: dict[str, Any], settings: Settings) -> RunConfig:
        """Return the run without its jobs: policy, mechanism, cluster and throughputs fit together."""
        shared = {key: value for key, value in said.items() if key not in ("seed", "workload", "measure")}
        try:
            return _once(self._setups, _key(shared), lambda: set_up(scenario, NO_JOBS))
        except InvalidInput as error:
            raise _placed(error, scenario, settings, WIRING) from error

    def _submitted(self, scenario: Scenario, said: dict[str, Any], setup: RunConfig, settings: Settings) -> Floats:
        """Return the jobs' submissions at load 1; all of them can run."""
        plain = scenario.model_copy(update={"workload": scenario.workload.model_copy(update={"load": 1.0})})
        work = {**said["workload"], "load": 1.0}
        parts = [work, said["cluster"], said["throughputs"]]
        types = setup.topology.types
        source = scenario.throughputs.source
        speeds = _once(self._speeds, _key([source, types]), lambda: load(source, types, base=scenario.base))
        key = _key(parts)
        drawn = False
        if key not in self._refused:
            try:
                drawn = self._draw(plain, work)
                key = _key([*parts, scenario.seed]) if drawn else key
                if key not in self._refused:
                    return _once(self._jobs, key, lambda: submissions(plain, setup.topology, speeds))
            except InvalidInput as error:
                self._refused[key] = error, (*_causes(plain), *(("seed",) if drawn else ()))
        refusal, causes = self._refused[key]
        raise _placed(refusal, scenario, settings, causes) from refusal

    def _draw(self, scenario: Scenario, work: dict[str, Any]) -> bool:
        """Return whether anything of the jobs is drawn by the seed; a trace with job types draws nothing."""
        if scenario.workload.generator is not None or scenario.throughputs.source in SYNTHETIC:
            return scenario.workload.generator is not None
        return _once(self._draws, _key(work), lambda: read_trace(scenario).job_type is None)


def _causes(scenario: Scenario) -> tuple[str, ...]:
    """Return what may be to blame for jobs that are refused."""
    try:
        read_trace(scenario)
    except InvalidInput:
        return TRACE
    return WORK


def _key(said: object) -> str:
    return json.dumps(said, sort_keys=True)


def _once(kept: dict[str, Kept], key: str, find: Callable[[], Kept]) -> Kept:
    """Return what was found before, or find it."""
    if key not in kept:
        kept[key] = find()
    return kept[key]


def _placed(error: InvalidInput, scenario: Scenario, settings: Settings, order: Sequence[str]) -> InvalidInput:
    """Return the refusal, before it the key of the sweep that is its likeliest cause where it names another file."""
    causes = [(at, place) for name in order for at, place in settings if at[0] == name and at != LOAD_KEY]
    here = {scenario.where(())[0], *(place[0] for _, place in causes)}
    if not causes or any(problem.file in here for problem in error.problems):
        return error
    path, (file, row) = causes[0]
    rule = f"this run cannot be made: {error.problems[0].rule}"
    first = Problem(file=file, row=row, column=dotted(path), rule=rule, fix=error.problems[0].fix)
    return InvalidInput([first, *error.problems], error.count + 1)


def _refuse_world(scenario: Scenario) -> None:
    if scenario.world.backend != "simulated":
        file, row = scenario.where(("world", "backend"))
        rule, fix = "a sweep simulates", 'write backend = "simulated", or leave it out'
        value = scenario.world.backend
        raise InvalidInput([Problem(file=file, row=row, column="world.backend", value=value, rule=rule, fix=fix)])


def _refuse_load(scenario: Scenario) -> None:
    said = scenario.workload.load
    if not LOAD.least <= said <= LOAD.most:
        file, row = scenario.where(("workload", "load"))
        rule = f"must be {LOAD.what}"
        problem = Problem(file=file, row=row, column="workload.load", value=f"{said:g}", rule=rule, fix=LOAD.fix)
        raise InvalidInput([problem])
