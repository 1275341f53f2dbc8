"""Builds the tuners of a scenario, one for each app, and the losses of simulated trials."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from eunomia.backends.protocol import Backend, TunableBackend
from eunomia.inputs.install_hint import install_command
from eunomia.model.curves import Curve, curve_of
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import TUNERS
from eunomia.scenario.section_rules import TUNERS_OF_PACKAGES
from eunomia.scenario.source_locations import refused_at
from eunomia.setup.plugins import PluginLoader
from eunomia.tuners.checked_tuner import CheckedTuner, LossReporting
from eunomia.tuners.halving import Halving
from eunomia.tuners.hyperdrive import HyperDrive
from eunomia.tuners.late_promotion import LatePromotion
from eunomia.tuners.optuna_search import OptunaSearch
from eunomia.tuners.tuner import Trials, Tuner
from eunomia.tuners.tuner_backend import Loss, TunerBackend

METHODS = ("begin", "ask", "settings", "submitted", "measured", "ended")


def _is_tuner(value: object) -> bool:
    return isinstance(value, type) and all(callable(getattr(value, name, None)) for name in METHODS)


PLUGINS = PluginLoader(
    noun="tuner",
    key=("apps", "tuner"),
    group=TUNERS_OF_PACKAGES,
    fits=_is_tuner,
    fix=f"give a class with the methods {', '.join(METHODS)}, or a subclass of eunomia.tuners.tuner.Trials",
)


def is_searching(scenario: Scenario) -> bool:
    """Whether apps have tuners."""
    return scenario.apps.tuner != "off"


def observes_losses(policy: Policy) -> bool:
    """Whether a policy reads the losses that jobs report."""
    return "losses" in policy.info.needs


def with_tuners(
    world: TunableBackend, jobs: Sequence[Job], tuners: dict[str, Tuner], loss: Loss, *, reports: bool = False
) -> Backend:
    """Return the backend with tuners; with `reports` every job reports its loss while it runs."""
    reporting: TunableBackend = LossReporting(world, jobs, loss) if reports else world
    return TunerBackend(reporting, jobs, tuners, loss) if tuners else reporting


def tuners_of(scenario: Scenario, jobs: Sequence[Job], accelerators: int) -> dict[str, Tuner]:
    """Return a tuner for every app of at least two jobs, by app; `accelerators` are those of the cluster.

    Raises InvalidInput for an unknown tuner.
    """
    if not is_searching(scenario):
        return {}
    if scenario.apps.tuner not in TUNERS:
        _plugin_class(scenario)  # refuse an unknown tuner even if no job belongs to an app
    trials: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.app:
            trials[job.app].append(job)
    searches = [(app, number, own) for number, (app, own) in enumerate(trials.items()) if len(own) > 1]
    return {app: _tuner(scenario, number, own, accelerators) for app, number, own in searches}


def _tuner(scenario: Scenario, number: int, trials: Sequence[Job], accelerators: int) -> Tuner:
    apps = scenario.apps
    parallel, most = apps.parallel, apps.max_trials
    match apps.tuner:
        case "halving":
            return Halving(apps.eta, pauses=apps.pause, parallel=parallel, most=most)
        case "hyperband":
            return Halving(apps.eta, brackets=True, pauses=apps.pause, parallel=parallel, most=most)
        case "asha" if apps.promotion == "later":
            return LatePromotion(apps.eta, parallel=parallel, most=most)
        case "asha":
            return Halving(apps.eta, waits=False, parallel=parallel, most=most)
        case "hyperdrive":
            curves = [_curve(scenario.seed, job.job_id) for job in trials[:most]]
            target = min(float(curve.loss(apps.target)) for curve in curves)
            return HyperDrive(target, slots=apps.slots, accelerators=accelerators, parallel=parallel, most=most)
        case "optuna":
            try:
                return OptunaSearch(apps.space, scenario.seed + number, parallel=parallel, most=most)
            except ImportError as error:
                rule, fix = (
                    "the package optuna is not installed",
                    f"type {install_command('tuners')}, or choose another tuner",
                )
                raise scenario.refused(("apps", "tuner"), rule, fix, "optuna") from error
        case "all":
            return Trials(parallel=parallel, most=most)
    return _plugin_tuner(scenario, number)


def _plugin_class(scenario: Scenario) -> Callable[..., Tuner]:
    """Return the plug-in class that the scenario names. Raises InvalidInput if there is none or it is no tuner."""
    return PLUGINS.find(scenario.apps.tuner, scenario.base, scenario.where, TUNERS)


def _plugin_tuner(scenario: Scenario, number: int) -> Tuner:
    """Return the plug-in tuner of the app with this number, built with `seed` and the scenario's parameters.

    Raises InvalidInput for an unknown name, for parameters that its class does not take, and for any exception that the
    class raises.
    """
    apps = scenario.apps
    cls = _plugin_class(scenario)
    try:
        inspect.signature(cls).bind(seed=scenario.seed + number, **apps.parameters)
        tuner: Tuner = cls(seed=scenario.seed + number, **apps.parameters)
    except Exception as error:
        place = scenario.where(("apps", "parameters") if apps.parameters else ("apps", "tuner"))
        taken = ", ".join(name for name in inspect.signature(cls).parameters if name != "seed") or "no other"
        rule = f"{apps.tuner}: {type(error).__name__}: {error}"
        fix = f"its class is made with seed = and with [apps.parameters]; it takes {taken}"
        raise refused_at(place, "apps.parameters", None, rule, fix) from error
    return CheckedTuner(tuner, apps.tuner)


@lru_cache(maxsize=100_000)
def _curve(seed: int, job_id: str) -> Curve:
    return curve_of(seed, job_id)


def drawn_loss(seed: int) -> Loss:
    """Return the loss of simulated jobs: learning curves drawn by the seed."""
    return lambda job, steps: float(_curve(seed, job.job_id).loss(steps / job.total_steps))


def settings_of(jobs: Sequence[Job], tuners: Mapping[str, Tuner]) -> Callable[[str], Mapping[str, Any]]:
    """Return a function from a job id to the settings that its tuner chose."""
    app = {job.job_id: job.app for job in jobs}
    return lambda job_id: tuners[app[job_id]].settings(job_id) if app[job_id] in tuners else {}
