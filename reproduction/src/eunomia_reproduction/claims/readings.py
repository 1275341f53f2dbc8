"""Themis by three readings of T_id: worst ρ of every policy, who fell short, and which headline holds under which."""

from __future__ import annotations

from collections.abc import Callable

from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import All, number
from eunomia_reproduction.claims.themis import READINGS, RIVALS, WORKLOADS, WORLDS, cheaper, fairer, lowest

BEGIN, END = "<!-- readings, made by make docs: do not edit from here -->", "<!-- readings to here -->"
OURS, BESIDE = "Themis", ("DRF",)
PUBLISHED = {
    "w1": {"Themis": 1.3, "SRSF": 1.75, "SRTF": 2.0, "Tiresias": 2.6, "Gandiva": 2.6, "SLAQ": 3.95, "Optimus": 3.95},
    "w2": {"Themis": 2.15, "SRSF": 2.35, "SRTF": 4.0, "Tiresias": 4.25, "Gandiva": 2.8, "SLAQ": 3.7, "Optimus": 3.2},
}
SHORTFALLS = {
    "apps_behind": "apps behind",
    "apps_behind_by": "by, of T_id",
    "app_jct_mean_s": "time of an app, s",
    "cost_usd": "accelerator-hours",
}
HEADLINES: dict[str, Callable[[str, str, str], All]] = {
    "lowest worst ρ of the seven": lowest,
    "every rival's is 2.25 times as large": fairer,
    "every rival holds 5 % more accelerator-hours": cheaper,
}


def readings(kept: KeptRows) -> str:
    """Return two tables for each workload, and one of the headlines."""
    known = [work for work in WORKLOADS if f"themis-{work}" in kept]
    some = [table(work, kept) for work in known for table in (_worst, _shortfalls)]
    return "\n\n".join([*some, _headlines(kept)])


def _worst(work: str, kept: KeptRows) -> str:
    kind, _ = WORKLOADS[work]
    columns = [(world, ideal) for world in WORLDS for ideal in READINGS]
    head = [kind, "published", *(f"{world}, `{ideal}`" for world, ideal in columns)]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for policy in (OURS, *RIVALS, *BESIDE):
        published = PUBLISHED[work].get(policy, "")
        rows.append([policy, str(published), *(_cell(work, world, ideal, policy, kept) for world, ideal in columns)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(work: str, world: str, ideal: str, policy: str, kept: KeptRows) -> str:
    """Return the worst ρ with half of its interval; of a rival, under how many seeds Themis is not behind it."""
    experiment, name = f"themis-{work}", policy
    if policy == OURS and ideal != "share":
        name = f"{OURS}, ideal={ideal}"
    found = Row(experiment, f"{work}, {world}: {name}", f"rho_{ideal}_max").measured(kept)
    half = "" if found.low is None or found.high is None else f" ± {number((found.high - found.low) / 2)}"
    ahead = kept.get(experiment, (f"{work}, {world}: Themis not behind {policy}", ideal, "seeds"))
    return f"{number(found.value)}{half}{'' if ahead is None else f'; {ahead:g}'}"


def _shortfalls(work: str, kept: KeptRows) -> str:
    """Return how many apps are behind their private part and by how much, and what the schedules take."""
    kind, _ = WORKLOADS[work]
    rows = [[kind, *(f"{world}: {words}" for world in WORLDS for words in SHORTFALLS.values())]]
    rows.append(["---", *["---:"] * (len(rows[0]) - 1)])
    for policy in (OURS, *RIVALS, *BESIDE):
        values = (
            Row(f"themis-{work}", f"{work}, {world}: {policy}", name).measured(kept).value
            for world in WORLDS
            for name in SHORTFALLS
        )
        rows.append([policy, *map(number, values)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _headlines(kept: KeptRows) -> str:
    rows = [["headline", "workload", "trials", *(f"`{ideal}`" for ideal in READINGS)], ["---"] * 6]
    for words, statement in HEADLINES.items():
        for work, (kind, _) in WORKLOADS.items():
            if f"themis-{work}" not in kept:
                continue
            for world in WORLDS:
                verdicts = (str(statement(work, world, ideal).judge(kept).verdict) for ideal in READINGS)
                rows.append([words, kind, world, *verdicts])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
