"""Trained models: those that ship with the package, and files of one's own."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from eunomia.learning.model_file import ModelFile, read_model

FOLDER = Path(__file__).parent / "models"


def load_model(path: str, shipped: str) -> ModelFile:
    """Return the model of a path; for "" the one that ships under the name `shipped`.

    Raises InvalidInput for a file that is missing, truncated, altered or of another version.
    """
    place = Path(path).expanduser() if path else FOLDER / f"{shipped}.safetensors"
    return _read(place, place.stat().st_mtime_ns if place.is_file() else 0)


@lru_cache(maxsize=16)
def _read(place: Path, changed_ns: int) -> ModelFile:
    """Return the model of a file in its present version."""
    return read_model(place)
