"""The built-in job types, with the facts that the analytic model needs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

FILE = "jobs.toml"
GAVEL_FAMILIES = ("ResNet-18", "ResNet-50", "Transformer", "A3C", "LM", "Recommendation", "CycleGAN")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """One job type; the head of `jobs.toml` explains each field and its unit."""

    name: str
    family: str
    batch_size: int
    kind: str
    flops_per_sample: float
    gradient_bytes: float
    memory_gb: float
    source: str
    distributed: bool = False
    precision: str = "fp32"
    bytes_per_sample: float = 0.0
    step_bytes: float = 0.0
    step_overhead_s: float = 0.0
    host_s_per_sample: float = 0.0
    memory_gb_per_sample: float = 0.0
    fitted: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


@cache
def job_types() -> dict[str, JobFacts]:
    """Return the built-in job types by name, in the order of the file."""
    text = files("eunomia.throughputs").joinpath(FILE).read_text(encoding="utf-8")
    return {job.name: job for family, facts in tomllib.loads(text).items() for job in _build_family(family, facts)}


def gavel_job_types() -> tuple[str, ...]:
    """Return the names of the 26 job types of Gavel's table."""
    return tuple(name for name, job in job_types().items() if job.family in GAVEL_FAMILIES)


def _build_family(family: str, facts: dict[str, Any]) -> list[JobFacts]:
    known = {field.name for field in fields(JobFacts)} | {"batch_sizes"}
    assert set(facts) <= known, f"{FILE}: {family} has {set(facts) - known}"
    batch_sizes = facts.pop("batch_sizes", None)
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    sizes = batch_sizes or [1]
    names = [f"{family} (batch size {size})" if batch_sizes else family for size in sizes]
    return [
        JobFacts(name=name, family=family, batch_size=size, **facts) for name, size in zip(names, sizes, strict=True)
    ]
