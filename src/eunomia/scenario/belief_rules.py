"""Checks of the keys of [belief] against each other, against [physics], and against the backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eunomia.backends.registry import runs_processes
from eunomia.scenario.schema_models import BeliefSection
from eunomia.scenario.source_locations import Finding

OPTIONS_OF_ESTIMATES = (
    "references", "profiled", "choose", "caution", "profile_s", "charge", "budget", "method", "solver",
)  # fmt: skip
OPTIONS_OF_MEASURING = ("measure_s", "explore")
REAL_RULE = "pairs are measured in simulated runs only: on real accelerators no job measures any"
REAL_FIX = 'leave profile_s and charge out, or set backend = "simulated" in [world]'


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
        if belief.get(key, _default(key)) != _default(key):
            fix = f'write kind = "measured" beside it, or leave {key} out'
            yield Finding(("belief", key), belief[key], "it is an option of measured throughputs", fix)
    if kind != "estimated":
        for key in OPTIONS_OF_ESTIMATES:
            if belief.get(key, _default(key)) != _default(key):
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
        if belief.get(key, _default(key)) != _default(key):
            yield Finding(("belief", key), belief[key], REAL_RULE, REAL_FIX)


def _default(key: str) -> Any:
    return BeliefSection.model_fields[key].default
