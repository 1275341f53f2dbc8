"""Trained models: those that ship with the package, and files of one's own."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from eunomia.learning.model_file import ModelFile, read_model
from eunomia.model.policy import Policy

FOLDER = Path(__file__).parent / "models"


def load_model(path: str, shipped: str) -> ModelFile:
    """Return the model of a path; for "" the one that ships under the name `shipped`.

    Raises InvalidInput for a file that is missing, truncated, altered or of another version.
    """
    place = Path(path).expanduser() if path else FOLDER / f"{shipped}.safetensors"
    return _read(place, place.stat().st_mtime_ns if place.is_file() else 0)


def tell_training(policy: Policy, model: ModelFile) -> None:
    """Say on the card of this policy instance what its model was trained on. For a `__post_init__`."""
    head = model.header
    metrics = ", ".join(f"{name} {value:.3g}" for name, value in head.metrics.items())
    file = "the shipped model" if Path(model.name).parent == FOLDER else model.name
    text = (
        f"{file}, by eunomia train {head.trained}: scenario {head.scenario_sha256[:12]}, seed {head.seed}, "
        f"step {head.steps:,}, {metrics}"
    )
    object.__setattr__(policy, "info", replace(policy.info, learnt_from=text))


@lru_cache(maxsize=16)
def _read(place: Path, changed_ns: int) -> ModelFile:
    """Return the model of a file in its present version."""
    return read_model(place)
