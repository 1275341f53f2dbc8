"""Keys of [apps] that say nothing beside the others, or contradict them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario.schema_models import TUNERS, AppsSection
from eunomia.scenario.source_locations import Finding

_WAITING = ("halving", "hyperband")
_OF = {
    "eta": (*_WAITING, "asha"),
    "pause": _WAITING,
    "parallel": ("all", "asha", "hyperdrive", "optuna"),
    "max_trials": ("all", *_WAITING, "asha", "hyperdrive", "optuna"),
    "target": ("hyperdrive",),
    "space": ("optuna",),
}
TUNERS_OF_PACKAGES = "eunomia.tuners"  # entry points in which packages announce theirs


def apps_findings(table: dict[str, Any], world: dict[str, Any], mechanism: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the table as a whole, for such a world and mechanism."""
    tuner, backend = table.get("tuner", "off"), world.get("backend", "simulated")
    for key, tuners in _OF.items():
        own = AppsSection.model_fields[key].get_default(call_default_factory=True)  # a scenario written out says it
        if table.get(key, own) != own and tuner not in tuners:
            rule = f"does nothing with tuner = {tuner!r}"
            if key == "parallel" and tuner in _WAITING:
                rule = f"with tuner = {tuner!r} trials wait on a rung for all others, so all must be there"
            yield Finding(("apps", key), table[key], rule, f"leave it out, or set tuner to {' or '.join(tuners)}")
    yield from _named(table, tuner)
    if tuner == "optuna" and backend != "local":
        fix = 'set backend = "local" in [world], or another tuner'
        yield Finding(("apps", "tuner"), tuner, "it searches among real trials, which a simulation has none of", fix)
    if tuner == "optuna" and not table.get("space"):
        fix = "write [apps.space] and a range below it, such as lr = { low = 1e-4, high = 0.1, log = true }"
        yield Finding(("apps", "tuner"), tuner, "it needs something to search", fix)
    if tuner == "hyperdrive" and backend == "local":
        rule, fix = "nobody knows the best trial's loss of real ones beforehand", "choose halving, hyperband or asha"
        yield Finding(("apps", "tuner"), tuner, rule, fix)
    if mechanism.get("name") == "gavel":
        yield from _in_gavels_rounds(table, tuner)
    if tuner != "off" and mechanism.get("name") == "ideal":
        rule, fix = "the fluid of the ideal mechanism has no trials that are watched", "leave [apps] out"
        yield Finding(("apps", "tuner"), tuner, rule, fix)


def _named(table: dict[str, Any], tuner: Any) -> Iterator[Finding]:
    """Yield a tuner that nobody knows, and parameters that belong to nobody."""
    if tuner in TUNERS:
        if table.get("parameters"):
            rule, fix = f"does nothing with tuner = {tuner!r}", "leave it out, or set tuner to path.py:Class"
            yield Finding(("apps", "parameters"), table["parameters"], rule, fix)
    elif isinstance(tuner, str) and ".py" not in tuner:
        known = [*TUNERS, *(point.name for point in entry_points(group=TUNERS_OF_PACKAGES))]
        if tuner not in known:
            yield Finding(("apps", "tuner"), tuner, "there is no such tuner", nearest(tuner, known))


def _in_gavels_rounds(table: dict[str, Any], tuner: str) -> Iterator[Finding]:
    """Yield what Gavel's clock cannot do."""
    if tuner in _WAITING and table.get("pause", True):
        rule = "trials rest on rungs, and Gavel's rounds give seats until they end and know no pause"
        fix = "set pause = false in [apps], or choose asha or another mechanism"
        yield Finding(("apps", "tuner"), tuner, rule, fix)
    for key in ("parallel", "max_trials"):
        if tuner != "off" and table.get(key) is not None:
            rule = "Gavel's rounds count the jobs that are still to come, and here the search says which those are"
            yield Finding(("apps", key), table[key], rule, "leave it out, or choose another mechanism")
