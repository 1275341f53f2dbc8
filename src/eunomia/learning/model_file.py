"""Model files: arrays in the safetensors format, with a JSON header that says what the model is.

The format is that of safetensors (8 bytes length, JSON, data); our header is the string `eunomia` of its
`__metadata__`, beside the SHA-256 of header and data. Reading it executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.file_contents import contents
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Array, Floats

VERSION = 1  # of the header
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "|u1"}
_CODES = {np.dtype(code): name for name, code in DTYPES.items()}
_MOST_HEADER = 100_000_000  # bytes; the limit of the format
_LENGTH = 8  # bytes of the length of the header
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
    header = json.dumps(asdict(model.header), sort_keys=True, ensure_ascii=True, allow_nan=False)
    index, blocks, offset = {}, [], 0
    for name in sorted(model.arrays):
        array = np.asarray(model.arrays[name])
        code = _CODES[array.dtype.newbyteorder("<") if array.dtype.itemsize > 1 else array.dtype]
        blocks.append(np.ascontiguousarray(array, dtype=DTYPES[code]).tobytes())
        end = offset + len(blocks[-1])
        index[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    data = b"".join(blocks)
    metadata = {"eunomia": header, "sha256": _digest(header, index, data)}
    text = json.dumps({"__metadata__": metadata, **index}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(_LENGTH, "little") + text + data


def read_model(path: Path, name: str = "") -> ModelFile:
    """Return a model. Raises InvalidInput for a file that is missing, truncated, altered or of another version."""
    file = name or str(path)
    return parse_model(contents(path, file), file)


def parse_model(raw: bytes, file: str) -> ModelFile:
    """Return the model in the bytes of a file."""
    length = int.from_bytes(raw[:_LENGTH], "little")
    if len(raw) < _LENGTH or length > min(len(raw) - _LENGTH, _MOST_HEADER):
        raise refused(file, None, None, "it is no model file, or it is truncated in its header", _COPY_AGAIN)
    data = raw[_LENGTH + length :]
    try:
        index = json.loads(raw[_LENGTH : _LENGTH + length])
        metadata = index.pop("__metadata__")
        text, digest = str(metadata["eunomia"]), str(metadata["sha256"])
        ends = [one["data_offsets"] for one in index.values()]
        size = max((int(end) for _, end in ends), default=0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        rule = "it is a safetensors file without the header of a model of eunomia, or its header is damaged"
        raise refused(file, None, None, rule, "name a model that `eunomia train` wrote") from error
    if len(data) < size:
        raise refused(file, None, None, f"it is truncated: {len(data)} of {size} bytes of data", _COPY_AGAIN)
    if _digest(text, index, data) != digest:
        raise refused(file, None, None, "it was altered: its SHA-256 is not the recorded one", _COPY_AGAIN)
    arrays = {key: _array(file, key, one, data) for key, one in index.items()}
    return ModelFile(header=_header(file, text), arrays=arrays, name=file, sha256=digest)


def _array(file: str, key: str, one: Mapping[str, Any], data: bytes) -> Array:
    begin, end = one["data_offsets"]
    shape, dtype = tuple(one["shape"]), DTYPES.get(one["dtype"])
    if dtype is None:
        raise refused(file, key, one["dtype"], f"the types of arrays are {', '.join(DTYPES)}", _COPY_AGAIN)
    if end - begin != math.prod(shape) * np.dtype(dtype).itemsize:
        raise refused(file, key, None, "its shape does not match its bytes", _COPY_AGAIN)
    array = np.frombuffer(data[begin:end], dtype=dtype).reshape(shape)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise refused(file, key, None, "it holds numbers that are not finite", "train the model again")
    return array


def _header(file: str, text: str) -> ModelHeader:
    values = json.loads(text)
    if values.get("version") != VERSION:
        rule = f"its header has version {values.get('version')!r}, and this version of eunomia reads {VERSION}"
        raise refused(file, "version", None, rule, "train it again with this version")
    try:
        values["features"] = tuple(Feature(**one) for one in values["features"])
        return ModelHeader(**values)
    except (TypeError, KeyError) as error:
        raise refused(file, None, None, f"its header is not complete: {error}", _COPY_AGAIN) from error


def _digest(header: str, index: Mapping[str, Any], data: bytes) -> str:
    digest = hashlib.sha256(header.encode())
    digest.update(json.dumps(index, sort_keys=True).encode())
    digest.update(data)
    return digest.hexdigest()


def _listed(names: Sequence[str]) -> str:
    """Return "feature 'a', which is", or "features 'a' and 'b', which are"."""
    shown = ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"features {shown}, which are" if len(names) > 1 else f"feature {shown}, which is"
