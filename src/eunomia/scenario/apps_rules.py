"""Checks of [apps]: keys without effect, or in contradiction."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from eunomia.backends.registry import BACKENDS, runs_processes
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario.schema_models import TUNERS, AppsSection
from eunomia.scenario.source_locations import Finding

_SYNCHRONOUS = ("halving", "hyperband")
_TUNERS_BY_KEY = {
    "eta": (*_SYNCHRONOUS, "asha"),
    "pause": _SYNCHRONOUS,
    "promotion": ("asha",),
    "parallel": ("all", "asha", "hyperdrive", "optuna"),
    "max_trials": ("all", *_SYNCHRONOUS, "asha", "hyperdrive", "optuna"),
    "slots": ("hyperdrive",),
    "target": ("hyperdrive",),
    "space": ("optuna",),
}
TUNERS_OF_PACKAGES = "eunomia.tuners"  # entry points of packages' tuners


def apps_findings(table: dict[str, Any], world: dict[str, Any], mechanism: dict[str, Any]) -> Iterator[Finding]:
    """Yield keys of [apps] that are wrong beside the others, or with this world and mechanism."""
    tuner, backend = table.get("tuner", "off"), world.get("backend", "simulated")
    for key, tuners in _TUNERS_BY_KEY.items():
        default = AppsSection.model_fields[key].get_default(call_default_factory=True)  # may be written out
        if table.get(key, default) != default and tuner not in tuners:
            rule = f"does nothing with tuner = {tuner!r}"
            if key == "parallel" and tuner in _SYNCHRONOUS:
                rule = f"with tuner = {tuner!r} trials wait on a rung for all others, so all must be submitted"
            yield Finding(("apps", key), table[key], rule, f"leave it out, or set tuner to {' or '.join(tuners)}")
    yield from _check_name(table, tuner)
    if tuner == "optuna" and backend in BACKENDS and not runs_processes(backend):
        fix = 'set backend = "local" in [world], or another tuner'
        yield Finding(("apps", "tuner"), tuner, "it searches among real trials, which a simulation does not have", fix)
    if tuner == "optuna" and not table.get("space"):
        fix = "write [apps.space] and a range below it, such as lr = { low = 1e-4, high = 0.1, log = true }"
        yield Finding(("apps", "tuner"), tuner, "it needs something to search", fix)
    if tuner == "hyperdrive" and runs_processes(backend):
        rule, fix = "the best trial's loss is not known beforehand in real runs", "choose halving, hyperband or asha"
        yield Finding(("apps", "tuner"), tuner, rule, fix)
    if mechanism.get("name") == "gavel":
        yield from _check_gavel_rounds(table, tuner)
    if tuner != "off" and mechanism.get("name") == "ideal":
        rule, fix = "the ideal mechanism reports no losses of trials", "leave [apps] out"
        yield Finding(("apps", "tuner"), tuner, rule, fix)


def _check_name(table: dict[str, Any], tuner: Any) -> Iterator[Finding]:
    """Yield an unknown tuner, and parameters without a tuner of the user's own."""
    if tuner in TUNERS:
        if table.get("parameters"):
            rule, fix = f"does nothing with tuner = {tuner!r}", "leave it out, or set tuner to path.py:Class"
            yield Finding(("apps", "parameters"), table["parameters"], rule, fix)
    elif isinstance(tuner, str) and ".py" not in tuner:
        known = [*TUNERS, *(point.name for point in entry_points(group=TUNERS_OF_PACKAGES))]
        if tuner not in known:
            yield Finding(("apps", "tuner"), tuner, "there is no such tuner", nearest(tuner, known))


def _check_gavel_rounds(table: dict[str, Any], tuner: str) -> Iterator[Finding]:
    """Yield what Gavel's rounds do not support."""
    if tuner in _SYNCHRONOUS and table.get("pause", True):
        rule = "trials pause on rungs, and Gavel's rounds have no pause"
        fix = "set pause = false in [apps], or choose asha or another mechanism"
        yield Finding(("apps", "tuner"), tuner, rule, fix)
    if tuner == "asha" and table.get("promotion") == "later":
        rule = "trials that are promoted later pause, and Gavel's rounds have no pause"
        fix = 'set promotion = "once" in [apps], or choose another mechanism'
        yield Finding(("apps", "promotion"), "later", rule, fix)
    for key in ("parallel", "max_trials"):
        if tuner != "off" and table.get(key) is not None:
            rule = "Gavel's rounds need the number of jobs to come, and here the search decides it"
            yield Finding(("apps", key), table[key], rule, "leave it out, or choose another mechanism")
