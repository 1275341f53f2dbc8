"""Model files: arrays in the safetensors format, with a JSON header that says what the model is.

Our header is the string `eunomia` of the format's metadata, with the SHA-256 of header and arrays: a second string
would stand before or after it by chance. Reading it executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.file_contents import contents
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Array, Floats

VERSION = 1  # of the header
_LENGTH = 8  # bytes of the length of the first part of the file
_COPY_AGAIN = "copy or train the model again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One input of a model: it sees (value − mean) / scale."""

    name: str
    unit: str = ""
    mean: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHeader:
    """What a model is, and what it has learnt from."""

    trained: str  # name in `eunomia train`
    architecture: Mapping[str, Any]  # such as sizes of the layers
    features: tuple[Feature, ...]  # of one input row, in order
    scenario_sha256: str = ""
    seed: int = 0
    steps: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    package: str = ""  # version of eunomia that wrote the file
    version: int = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A header and arrays by name."""

    header: ModelHeader
    arrays: Mapping[str, Array]
    name: str = "model"  # of the file, for messages
    sha256: str = ""  # of header and data, once read or written

    def floats(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return an array in float64. Raises InvalidInput where it is missing or has another shape."""
        found = self.arrays.get(name)
        if found is None or found.shape != shape:
            has = "is missing" if found is None else f"has shape {found.shape}"
            rule = f"the array {name!r} {has}, and the header says {shape}"
            raise refused(self.name, None, None, rule, _COPY_AGAIN)
        return np.ascontiguousarray(found, dtype=np.float64)

    def check_features(self, expected: Sequence[Feature]) -> None:
        """Raise InvalidInput that names the first difference between the model's features and those expected."""
        own, others = self.header.features, tuple(expected)
        names, wanted = [one.name for one in own], [one.name for one in others]
        rule = ""
        if missing := [name for name in wanted if name not in names]:
            rule = f"it was trained without the {_listed(missing)} given here"
        elif more := [name for name in names if name not in wanted]:
            rule = f"it was trained with the {_listed(more)} not given here"
        elif names != wanted:
            k = next(k for k, name in enumerate(names) if name != wanted[k])
            rule = f"its feature {k} is {names[k]!r}, and here it is {wanted[k]!r}"
        elif own != others:
            a, b = next((a, b) for a, b in zip(own, others, strict=True) if a != b)
            part = next(one.name for one in fields(Feature) if getattr(a, one.name) != getattr(b, one.name))
            rule = f"its feature {a.name!r} has {part} {getattr(a, part)!r}, and here it is {getattr(b, part)!r}"
        if rule:
            raise refused(self.name, "features", None, rule, "use a model trained for these features, or train one")


def write_model(path: Path, model: ModelFile) -> None:
    """Write a model, whole or not at all. Raises InvalidInput for a place that cannot be written to."""
    write_output(path, model_bytes(model), column="--out")


def model_bytes(model: ModelFile) -> bytes:
    """Return the bytes of the file: the same model gives the same bytes."""
    values = asdict(model.header)
    # The library writes the memory of an array as it lies, whatever its strides.
    arrays = {name: np.asarray(array, order="C") for name, array in model.arrays.items()}
    digest = _digest(values, save(arrays))
    return save(arrays, metadata={"eunomia": json.dumps({**values, "sha256": digest}, sort_keys=True)})


def read_model(path: Path, name: str = "") -> ModelFile:
    """Return a model. Raises InvalidInput for a file that is missing, truncated, altered or of another version."""
    file = name or str(path)
    return parse_model(contents(path, file), file)


def parse_model(raw: bytes, file: str) -> ModelFile:
    """Return the model in the bytes of a file."""
    try:
        arrays = load(raw)
    except (SafetensorError, KeyError) as error:
        rule = f"it is no model file, or it is truncated ({error})"
        raise refused(file, None, None, rule, _COPY_AGAIN) from None
    try:
        metadata = _index_and_data(raw)[0]["__metadata__"]
        values = json.loads(metadata["eunomia"])
        digest = values.pop("sha256", None) or metadata["sha256"]  # a string of its own in earlier files
    except (ValueError, KeyError, AttributeError) as error:
        rule = "it is a safetensors file without the header of a model of eunomia, or its header is damaged"
        raise refused(file, None, None, rule, "name a model that `eunomia train` wrote") from error
    if _digest(values, raw) != digest:
        raise refused(file, None, None, "it was altered: its SHA-256 is not the recorded one", _COPY_AGAIN)
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise refused(file, key, None, "it holds numbers that are not finite", "train the model again")
    return ModelFile(header=_header(file, values), arrays=arrays, name=file, sha256=digest)


def _header(file: str, values: dict[str, Any]) -> ModelHeader:
    if values.get("version") != VERSION:
        rule = f"its header has version {values.get('version')!r}, and this version of eunomia reads {VERSION}"
        raise refused(file, "version", None, rule, "train it again with this version")
    try:
        values["features"] = tuple(Feature(**one) for one in values["features"])
        return ModelHeader(**values)
    except (TypeError, KeyError) as error:
        raise refused(file, None, None, f"its header is not complete: {error}", _COPY_AGAIN) from error


def _index_and_data(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the first part of a safetensors file, names to types, shapes and places, and the second, the numbers."""
    end = _LENGTH + int.from_bytes(raw[:_LENGTH], "little")
    return json.loads(raw[_LENGTH:end]), raw[end:]


def _digest(header: Mapping[str, Any], raw: bytes) -> str:
    """Return the SHA-256 of a header, of the names, types, shapes and places of arrays, and of their numbers."""
    index, data = _index_and_data(raw)
    index.pop("__metadata__", None)
    digest = hashlib.sha256(json.dumps(header, sort_keys=True, allow_nan=False).encode())
    digest.update(json.dumps(index, sort_keys=True).encode())
    digest.update(data)
    return digest.hexdigest()


def _listed(names: Sequence[str]) -> str:
    """Return "feature 'a', which is", or "features 'a' and 'b', which are"."""
    shown = ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"features {shown}, which are" if len(names) > 1 else f"feature {shown}, which is"
