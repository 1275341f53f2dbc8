"""The worked example of each policy: a problem of two jobs, and what the policy really answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import eunomia
from eunomia.model.certificate import IN_TREE
from eunomia.policies import POLICIES

ROOT = Path(__file__).parents[2]
TWO_JOBS = ROOT / "examples" / "two_jobs.json"
BY_JOB = (
    "throughput",
    "steps_remaining",
    "elapsed_s",
    "isolated_time_s",
    "attained_service",
    "deadline_s",
    "job_type",
    "entity",
)


@dataclass(frozen=True, kw_only=True)
class Example:
    """What is asked of a policy: spellings that are compared, about the shared problem with some fields changed."""

    spellings: tuple[str, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    changed: str = ""  # the changes in words


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a job's time: on a type, alone or beside another job."""

    type: int
    share: float
    beside: str = ""


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What becomes of one job under an answer."""

    job: str
    parts: tuple[Part, ...]
    speed: float  # steps/s
    fastest: float  # steps/s on its fastest type, alone and all the time


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a policy answered, in the words of the pages."""

    spelling: str
    types: tuple[str, ...]
    fates: tuple[Fate, ...]
    posed: str  # what there is, and how fast the jobs are
    proof: str


ONE_V100: Mapping[str, Any] = {"capacity": [1, 0]}
FOUR_JOBS: Mapping[str, Any] = {"job_ids": ["text", "image", "image 2", "text 2"], "capacity": [2, 4]}

EXAMPLES: Mapping[str, Example] = {
    "max_min_fairness": Example(
        spellings=(
            "max_min_fairness",
            "max_min_fairness?types=agnostic",
            "max_min_fairness?space_sharing=true",
        )
    ),
    "water_filling": Example(
        spellings=("water_filling",),
        changes={"throughput": [[0, 1], [4, 1]]},
        changed="text does not fit into the memory of the v100",
    ),
    "hierarchical": Example(
        spellings=("hierarchical", "hierarchical?space_sharing=true"),
        changes={"entity_weight": {"speech": 1, "vision": 2}},
        changed="text belongs to the tenant speech of weight 1, image to vision of weight 2",
    ),
    "throughput_per_cost": Example(spellings=("throughput_per_cost", "throughput_per_cost?deadlines=true")),
    "proportional_fairness": Example(spellings=("proportional_fairness", "proportional_fairness?space_sharing=true")),
    "proportional": Example(
        spellings=("proportional",),
        changes={**ONE_V100, "weight": [3, 1]},
        changed="the k80s are away, and text weighs 3",
    ),
    "fifo_packed": Example(spellings=("fifo_packed",), changes=ONE_V100, changed="the k80s are away"),
    "gandiva": Example(spellings=("gandiva",), changes=ONE_V100, changed="the k80s are away"),
    "gandiva_fair": Example(
        spellings=("stride", "gandiva_fair"),
        changes={**FOUR_JOBS, "capacity": [1, 1]},
        changed="speech has two texts and vision two images, and there is one k80",
    ),
    "pop": Example(
        spellings=("max_min_fairness", "pop?parts=2"),
        changes=FOUR_JOBS,
        changed="everything is there twice",
    ),
    "locality": Example(
        spellings=("locality",),
        changes={"capacity": [4, 4], "accelerators_per_node": [3, 4], "scale_factor": [2, 2]},
        changed="both jobs are gangs of two; the v100s stand on machines of 3 and 1, the k80s on one of 4",
    ),
}


def example(name: str) -> Example:
    """Return the example of a policy; most take the shared problem as it is."""
    return EXAMPLES.get(name, Example(spellings=(name,)))


def problem(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shared problem with its changes; where it names four jobs, the second two mirror the first."""
    plain: dict[str, Any] = json.loads(TWO_JOBS.read_text(encoding="utf-8"))
    changed = {**plain, **changes}
    if len(changed["job_ids"]) == len(plain["job_ids"]):
        return changed
    return {**changed, **{name: changed[name] + changed[name][::-1] for name in BY_JOB}}


def answers(name: str) -> list[Answered]:
    """Ask the policy, in each spelling of its example."""
    asked = example(name)
    return [_answered(eunomia.solve(spelling, problem(asked.changes)), spelling) for spelling in asked.spellings]


def all_answers() -> dict[str, list[Answered]]:
    """Ask every policy of ours about its example."""
    return {name: answers(name) for name in POLICIES}


def _answered(found: Any, spelling: str) -> Answered:
    posed = found.problem
    fates = tuple(
        Fate(
            job=posed.job_ids[m],
            parts=tuple(_parts(found, m)),
            speed=float(found.effective_throughput[m]),
            fastest=float(posed.throughput[m].max()),
        )
        for m in range(posed.jobs)
    )
    return Answered(spelling=spelling, types=posed.types, fates=fates, posed=_posed(posed), proof=_proof(found))


def _posed(posed: Any) -> str:
    """Say what there is, and how fast the jobs are."""
    there = " and ".join(f"{count:g} × {name}" for name, count in _each(posed.types, posed.capacity))
    fast = (
        f"{posed.job_ids[m]} does "
        + " and ".join(f"{speed:g} on a {name}" for name, speed in _each(posed.types, speeds))
        for m, speeds in enumerate(posed.throughput[:2])
    )
    return f"{there}. In steps/s, {', '.join(fast)}."


def _each(types: Sequence[str], values: Iterable[float]) -> list[tuple[str, float]]:
    """Return the types with their values, those of value 0 left out."""
    return [(name, value) for name, value in zip(types, values, strict=True) if value]


def _parts(found: Any, m: int) -> list[Part]:
    """Return the parts of a job's time, by type, alone before beside another."""
    if found.rows is None:
        return [Part(type=j, share=float(share)) for j, share in enumerate(found.share[m]) if share > 1e-9]
    partner, _, _ = found.rows.filled()
    parts = []
    for job, type, mate, share in zip(found.rows.job, found.rows.type, partner, found.share, strict=True):
        if m in (job, mate) and share > 1e-9:
            other = mate if m == job else job
            parts.append(
                Part(type=int(type), share=float(share), beside=found.problem.job_ids[other] if mate >= 0 else "")
            )
    return sorted(parts, key=lambda part: (part.type, part.beside))


def _proof(found: Any) -> str:
    """Return the certificate in words, where there is one."""
    proof = found.certificate
    if proof is None:
        return ""
    worth = f"; {proof.exchange_rates(found.problem.types)}" if proof.price is not None else ""
    if proof.point.startswith(IN_TREE):
        return f"lowest level {number(proof.objective)}, in the one answer that is best tenant by tenant{worth}"
    return f"objective {number(proof.objective)}, and no answer can do better than {number(proof.bound)}{worth}"


def number(value: float) -> str:
    """Return four digits of a number; the last bits of a solution must not move them."""
    return f"{round(value, 9):.4g}"


def percent(share: float) -> str:
    """Return a share in percent, with a digit after the point where it is not whole."""
    return f"{round(share * 100, 7):.1f}".removesuffix(".0") + " %"
