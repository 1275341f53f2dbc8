"""The searches of a scenario: which apps have a tuner, and how good their trials turn out to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from eunomia.backends.protocol import Backend, TunableBackend
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.curves import Curve, curve_of
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import TUNERS
from eunomia.setup.tuner_plugins import outside_tuner, tuner_class
from eunomia.tuners.halving import Halving
from eunomia.tuners.hyperdrive import HyperDrive
from eunomia.tuners.loss_reporting import LossReporting
from eunomia.tuners.optuna_search import INSTALL, OptunaSearch
from eunomia.tuners.trials import Trials
from eunomia.tuners.tuner import Tuner
from eunomia.tuners.tuner_backend import Loss, TunerBackend


def is_searching(scenario: Scenario) -> bool:
    """Say whether apps have tuners."""
    return scenario.apps.tuner != "off"


def observes_losses(policy: Policy) -> bool:
    """Say whether a policy goes by what jobs tell of how good they are."""
    return "losses" in policy.info.needs


def with_tuners(
    world: TunableBackend, jobs: Sequence[Job], tuners: dict[str, Tuner], loss: Loss, *, reports: bool = False
) -> Backend:
    """Return the world with users in it; with `reports` every job tells its loss as it goes on."""
    told: TunableBackend = LossReporting(world, jobs, loss) if reports else world
    return TunerBackend(told, jobs, tuners, loss) if tuners else told


def tuners_of(scenario: Scenario, jobs: Sequence[Job]) -> dict[str, Tuner]:
    """Return a tuner for every app of at least two jobs. Raises InvalidInput for one that is not there."""
    if not is_searching(scenario):
        return {}
    if scenario.apps.tuner not in TUNERS:
        tuner_class(scenario)  # though no job may belong to an app
    trials: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.app:
            trials[job.app].append(job)
    return {app: _tuner(scenario, number, mine) for number, (app, mine) in enumerate(trials.items()) if len(mine) > 1}


def _tuner(scenario: Scenario, number: int, trials: Sequence[Job]) -> Tuner:
    said = scenario.apps
    parallel, most = said.parallel, said.max_trials
    match said.tuner:
        case "halving":
            return Halving(said.eta, pauses=said.pause, parallel=parallel, most=most)
        case "hyperband":
            return Halving(said.eta, brackets=True, pauses=said.pause, parallel=parallel, most=most)
        case "asha":
            return Halving(said.eta, waits=False, parallel=parallel, most=most)
        case "hyperdrive":
            curves = [_curve(scenario.seed, job.job_id) for job in trials[:most]]
            return HyperDrive(min(float(curve.loss(said.target)) for curve in curves), parallel=parallel, most=most)
        case "optuna":
            try:
                return OptunaSearch(said.space, scenario.seed + number, parallel=parallel, most=most)
            except ImportError as error:
                file, row = scenario.where(("apps", "tuner"))
                rule, fix = "the package optuna is not installed", f"type {INSTALL}, or choose another tuner"
                problem = Problem(file=file, row=row, column="apps.tuner", value="optuna", rule=rule, fix=fix)
                raise InvalidInput([problem]) from error
        case "all":
            return Trials(parallel=parallel, most=most)
    return outside_tuner(scenario, number)


@lru_cache(maxsize=100_000)
def _curve(seed: int, job_id: str) -> Curve:
    return curve_of(seed, job_id)


def drawn_loss(seed: int) -> Loss:
    """Return how good simulated jobs are: by curves drawn by the seed."""
    return lambda job, steps: float(_curve(seed, job.job_id).loss(steps / job.total_steps))


def settings_of(jobs: Sequence[Job], tuners: Mapping[str, Tuner]) -> Callable[[str], Mapping[str, Any]]:
    """Return what tells a real world what a trial is to be run with."""
    app = {job.job_id: job.app for job in jobs}
    return lambda job_id: tuners[app[job_id]].settings(job_id) if app[job_id] in tuners else {}
