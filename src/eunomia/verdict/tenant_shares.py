"""What tenants got of what they were owed, and sentences about those that got too little."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.verdict.seed_groups import SeedGroup

OWED_ENOUGH = 0.9  # a tenant that gets a smaller part of what it is owed is named
OWED_LEAST = 0.005  # of all that is owed: a smaller tenant is not named
MOST_TENANTS = 3  # named in the verdict
BETTER = 0.02  # part of what is owed by which another policy has to be better to be named


def all_parts(setting: SeedGroup) -> dict[str, tuple[float, float]]:
    """Return what each tenant got and was owed, accelerator-seconds, over all replications; none for one tenant."""
    owed: dict[str, float] = {}
    got: dict[str, float] = {}
    for run in setting.replications:
        if run.tenants is not None and len(run.tenants.names) > 1:
            for u, name in enumerate(run.tenants.names):
                owed[name] = owed.get(name, 0.0) + float(run.tenants.deserved[u])
                got[name] = got.get(name, 0.0) + float(run.tenants.received[u])
    return {name: (got[name], amount) for name, amount in owed.items() if amount > 0}


def tenant_parts(setting: SeedGroup) -> dict[str, float]:
    """Return what each tenant got of what it was owed; small tenants are left out."""
    every = all_parts(setting)
    least = OWED_LEAST * sum(owed for _, owed in every.values())
    return {name: got / owed for name, (got, owed) in every.items() if owed > least}


def short_tenants(setting: SeedGroup) -> list[tuple[str, float]]:
    """Return the tenants that got less than 90 % of what they were owed, the worst first."""
    short = [(name, part) for name, part in tenant_parts(setting).items() if part < OWED_ENOUGH]
    return sorted(short, key=lambda pair: (pair[1], pair[0]))


def least_part(setting: SeedGroup) -> float:
    """Return the least that a tenant got of what it was owed, at most 1."""
    return min((1.0, *tenant_parts(setting).values()))


def treats_best(setting: SeedGroup, group: Sequence[SeedGroup]) -> bool:
    """Whether the worst-off tenant gets most under `setting`, and clearly less under another of `group`."""
    parts = [least_part(other) for other in group]
    return least_part(setting) == max(parts) and max(parts) - min(parts) > 1 - OWED_ENOUGH


def shortfall(setting: SeedGroup) -> tuple[str, ...]:
    """Return the warning that tenants get too little."""
    short = short_tenants(setting)
    return (f"Some tenants do not get what they are owed: {_named(short)}.",) if short else ()


def tenant_price(group: Sequence[SeedGroup], chosen: SeedGroup) -> list[str]:
    """Return a sentence about the tenants that get too little under the recommended policy."""
    short = short_tenants(chosen)
    if not short:
        return []
    text = f"tenant{'s' * (len(short) > 1)} {_named(short)}"
    fairest = max(group, key=least_part)
    if least_part(fairest) > least_part(chosen) + BETTER:
        below = any(got < least_part(fairest) * owed for got, owed in all_parts(fairest).values())
        none = "no larger tenant" if below else "none"
        text += f" (under {fairest.label} {none} gets less than {_percent(least_part(fairest))})"
    return [text]


def _named(short: Sequence[tuple[str, float]]) -> str:
    """Return `bio gets 57 % of what it is owed, vision 80 % and 2 more less than 90 %`."""
    (first, part), *rest = short[:MOST_TENANTS]
    named = [f"{first} gets {_percent(part)} of what it is owed", *(f"{name} {_percent(p)}" for name, p in rest)]
    left = len(short) - MOST_TENANTS
    return ", ".join(named) + (f" and {left} more less than {100 * OWED_ENOUGH:.0f} %" if left > 0 else "")


def _percent(part: float) -> str:
    """Return whole per cent, rounded down, so that what is below 90 % is shown so; 0.57 itself is 57 %."""
    return f"{math.floor(100 * part + 1e-9)} %"
