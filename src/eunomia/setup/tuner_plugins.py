"""A tuner of the user's own: found by its name and made for an app."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import Scenario
from eunomia.scenario.apps_rules import TUNERS_OF_PACKAGES
from eunomia.scenario.schema_models import TUNERS
from eunomia.setup.plugins import PluginLoader
from eunomia.tuners.checked_tuner import CheckedTuner
from eunomia.tuners.tuner import Tuner

METHODS = ("begin", "ask", "settings", "submitted", "measured", "ended")


def _is_tuner(found: object) -> bool:
    return isinstance(found, type) and all(callable(getattr(found, name, None)) for name in METHODS)


OUTSIDE = PluginLoader(
    noun="tuner",
    key=("apps", "tuner"),
    group=TUNERS_OF_PACKAGES,
    fits=_is_tuner,
    give=f"give a class with the methods {', '.join(METHODS)}, or a subclass of eunomia.tuners.trials.Trials",
)


def tuner_class(scenario: Scenario) -> Callable[..., Tuner]:
    """Return the class that the scenario names. Raises InvalidInput for one that is not there or is no tuner."""
    return OUTSIDE.find(scenario.apps.tuner, scenario.base, scenario.where, [*TUNERS, *OUTSIDE.announced()])


def outside_tuner(scenario: Scenario, number: int) -> Tuner:
    """Return the tuner that the scenario names for its app of this number, made with `seed` and its parameters.

    Raises InvalidInput for a name that is not known, for parameters that its class does not take, and for whatever
    fails while it is made.
    """
    said = scenario.apps
    cls = tuner_class(scenario)
    try:
        inspect.signature(cls).bind(seed=scenario.seed + number, **said.parameters)
        made: Tuner = cls(seed=scenario.seed + number, **said.parameters)
    except Exception as error:  # code of others may fail in any way
        file, row = scenario.where(("apps", "parameters") if said.parameters else ("apps", "tuner"))
        taken = ", ".join(name for name in inspect.signature(cls).parameters if name != "seed") or "no other"
        problem = Problem(
            file=file,
            row=row,
            column="apps.parameters",
            rule=f"{said.tuner}: {type(error).__name__}: {error}",
            fix=f"its class is made with seed = and with [apps.parameters]; it takes {taken}",
        )
        raise InvalidInput([problem]) from error
    return CheckedTuner(made, said.tuner)
