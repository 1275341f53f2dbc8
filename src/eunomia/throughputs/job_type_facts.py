"""The built-in job types, with the facts that the analytic model needs, and the model that any job type trains.

A few big tensors keep the network busy in bursts when a gang spreads over machines. Sizes in MB: J. Gu et al.,
"Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, table 2.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

Kind: TypeAlias = tuple[str, int]  # job type, accelerators of the gang

# Published tables name some models by their data set.
MODEL_BY_ALIAS = {"imagenet": "resnet50", "cifar10": "resnet18", "inception3": "inceptionv3", "languagemodel": "lm"}
LARGEST_OF_MB = {  # model → largest tensor, all tensors
    "vgg19": (392.0, 548.1),
    "vgg16": (392.0, 527.8),
    "vgg11": (392.0, 506.8),
    "alexnet": (144.0, 235.9),
    "resnet152": (9.0, 230.2),
    "resnet101": (9.0, 170.4),
    "resnet50": (9.0, 97.7),
    "inception4": (5.9, 162.9),
    "inceptionv3": (7.8, 91.0),
    "googlenet": (3.9, 26.7),
}
_ALIAS = {"inceptionv4": "inception4"}
FILE = "jobs.toml"
GAVEL_FAMILIES = ("ResNet-18", "ResNet-50", "Transformer", "A3C", "LM", "Recommendation", "CycleGAN")


def model_of(job_type: str) -> str:
    """Return the model's name in lower-case letters and digits: resnet50 for "ResNet-50 (batch size 64)"."""
    plain = re.sub(r"[^a-z0-9]", "", job_type.split(" (batch size", 1)[0].casefold())
    return MODEL_BY_ALIAS.get(plain, plain)


def largest_tensor(job_type: str) -> float:
    """Return the largest tensor's fraction of all parameters, such as 0.7; nan for a model that is not in the table."""
    model = model_of(job_type)
    largest, total = LARGEST_OF_MB.get(_ALIAS.get(model, model), (math.nan, 1.0))
    return largest / total


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
