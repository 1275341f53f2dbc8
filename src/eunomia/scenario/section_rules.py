"""Checks of faults, [physics], [belief] and [apps]: no run would end, keys without effect or in contradiction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from eunomia.backends.registry import BACKENDS, runs_processes
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario.schema_models import TUNERS, AppsSection, BeliefSection, PhysicsSection, Section, WorldSection
from eunomia.scenario.source_locations import Finding, KeyPath

OPTIONS_OF_ESTIMATES = (
    "references", "profiled", "choose", "caution", "profile_s", "charge", "budget", "method", "solver",
)  # fmt: skip
OPTIONS_OF_MEASURING = ("measure_s", "explore")
REAL_RULE = "pairs are measured in simulated runs only: on real accelerators no job measures any"
REAL_FIX = 'leave profile_s and charge out, or set backend = "simulated" in [world]'
MOST_PER_HOUR = 60.0  # failures of one job, machine or rack
LEAST_IN_SERVICE = 0.01  # fraction of the time
HOUR_S = 3600.0
RATES: Mapping[KeyPath, KeyPath | None] = {  # failures per hour, and the repair time of each
    ("world", "job_failures_per_hour"): None,
    ("world", "node_failures_per_hour"): ("world", "node_repair_s"),
    ("physics", "rack_failures_per_hour"): ("physics", "rack_repair_s"),
}
_SECTIONS: Mapping[str, type[Section]] = {"world": WorldSection, "physics": PhysicsSection}
# key → (key that enables it, value that disables it, example that enables it)
ENABLED_BY: dict[str, tuple[str, object, str]] = {
    "accelerators_per_slot": ("placement", "off", 'placement = "themis"'),
    "failing": ("fates", "off", 'fates = "philly"'),
    "killed": ("fates", "off", 'fates = "philly"'),
    "retries": ("fates", "off", 'fates = "philly"'),
    "rack_repair_s": ("rack_failures_per_hour", 0, "rack_failures_per_hour"),
    "reconcile_s": ("report_lost", 0, "report_lost"),
}
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


def belief_findings(belief: dict[str, Any], physics: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield keys of [belief] that have no effect beside the others or with this backend, or contradict them."""
    kind, slices = belief.get("kind", "oracle"), belief.get("charge") == "slices"
    if kind == "oracle" and belief.get("error"):
        fix = 'write kind = "noisy" beside it, or leave error out'
        yield Finding(("belief", "error"), belief["error"], "an oracle makes no error", fix)
    moves = slices or kind == "measured" or belief.get("duration", "declared") == "history"
    if belief.get("tolerance") is not None and not moves:
        rule, fix = "run times are not estimated from history", 'write duration = "history", or leave tolerance out'
        yield Finding(("belief", "tolerance"), belief["tolerance"], rule, fix)
    for key in OPTIONS_OF_MEASURING if kind != "measured" else ():
        if belief.get(key, _default_of_belief(key)) != _default_of_belief(key):
            fix = f'write kind = "measured" beside it, or leave {key} out'
            yield Finding(("belief", key), belief[key], "it is an option of measured throughputs", fix)
    if kind != "estimated":
        for key in OPTIONS_OF_ESTIMATES:
            if belief.get(key, _default_of_belief(key)) != _default_of_belief(key):
                fix = f'write kind = "estimated" beside it, or leave {key} out'
                yield Finding(("belief", key), belief[key], "it is an option of estimated throughputs", fix)
        return
    if runs_processes(backend):
        yield from measured_findings(belief)
    if slices and belief.get("profile_s", 0.0) == 0.0:
        fix = "write profile_s = 60 beside it"
        yield Finding(("belief", "charge"), "slices", "jobs that measure hold an accelerator for some time", fix)
    if slices and physics.get("fates", "off") != "off":
        rule = "physics.fates draws how jobs end over all jobs, those that measure included"
        fix = 'write charge = "job", or leave it out'
        yield Finding(("belief", "charge"), "slices", rule, fix)


def measured_findings(belief: dict[str, Any]) -> Iterator[Finding]:
    """Yield the keys by which something would be measured during a run, which no real accelerator is."""
    for key in ("charge", "profile_s"):
        if belief.get(key, _default_of_belief(key)) != _default_of_belief(key):
            yield Finding(("belief", key), belief[key], REAL_RULE, REAL_FIX)


def _default_of_belief(key: str) -> Any:
    return BeliefSection.model_fields[key].default


def outage_findings(data: dict[str, Any]) -> Iterator[Finding]:
    """Yield the failure rates that are too high and the repairs that are too slow for a run to end."""
    for rate, repair in RATES.items():
        per_hour = _read_number(data, rate)
        repair_s = 0.0 if repair is None else _read_number(data, repair)
        if per_hour > MOST_PER_HOUR:
            rule = f"must be at most {MOST_PER_HOUR:g}: what breaks more often than once a minute gets nothing done"
            yield Finding(rate, per_hour, rule, "give a lower rate")
        elif repair is not None and 1.0 / (1.0 + per_hour * repair_s / HOUR_S) < LEAST_IN_SERVICE:
            rule = (
                f"with {per_hour:g} losses an hour that leaves less than {LEAST_IN_SERVICE:.0%} of the time in service"
            )
            yield Finding(repair, repair_s, rule, f"give a shorter time, or a lower {rate[-1]}")


def _read_number(data: dict[str, Any], path: KeyPath) -> float:
    """Return a number of the scenario; 0 for an invalid one, which has its own finding."""
    section, key = (str(part) for part in path)
    table = data.get(section)
    value = table.get(key, _SECTIONS[section].model_fields[key].default) if isinstance(table, dict) else 0.0
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    return float(value) if is_valid else 0.0


def overheads_findings(table: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield what a preemption saves where jobs really run: what they write is theirs to say."""
    if runs_processes(backend) and table.get("saves", "checkpoint") != "checkpoint":
        rule = "real processes save what their program saves"
        fix = 'leave it out, or set backend = "simulated" in [world]'
        yield Finding(("overheads", "saves"), table["saves"], rule, fix)


def physics_findings(table: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield keys of [physics] that have no effect with this backend or beside the others, or contradict them."""
    if runs_processes(backend):
        for key in (key for key in PhysicsSection.model_fields if table.get(key, _default(key)) not in _nothing(key)):
            fix = 'leave it out, or set backend = "simulated" in [world]'
            yield Finding(("physics", key), table[key], "real processes are not simulated", fix)
    for key, (needs, off, example) in ENABLED_BY.items():
        if table.get(key, _default(key)) != _default(key) and table.get(needs, off) == off:
            fix = f"write {example} beside it, or leave {key} out"
            yield Finding(("physics", key), table[key], f"does nothing without {needs}", fix)
    shares = [table.get(key, _default(key)) for key in ("failing", "killed")]
    if all(isinstance(share, int | float) for share in shares) and sum(shares) > 1:
        rule = "fractions of jobs that fail and that are killed add up to at most 1"
        yield Finding(("physics", "failing"), shares[0], rule, "lower one of them")


def _nothing(key: str) -> tuple[Any, ...]:
    """Return the values of a key that simulate nothing."""
    return (_default(key), "off") if key == "placement" else (_default(key),)


def _default(key: str) -> Any:
    return PhysicsSection.model_fields[key].default


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
