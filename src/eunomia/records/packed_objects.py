"""Objects as bytes: a view or an answer for another process, and the whole state of a scheduler, a snapshot.

With a snapshot a service restarts without handling all earlier moments again. The graph of objects is written as JSON
with one binary part for arrays. Only instances of this package's own classes, arrays and plain values can be written or
read: classes are found by name below `eunomia.`, and no constructor or other code is called. Functions, methods, paths
of files and the policy's card are not state: a restored object keeps those of the fresh scheduler, which must have been
built from the same inputs.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import types
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.arrays import Array
from eunomia.model.job import Job
from eunomia.model.policy import PolicyInfo
from eunomia.records.long_lists import (
    BY_FIELD,
    LONG,
    PLAIN,
    LongList,
    Written,
    WrittenParts,
    columns,
    encode,
    from_columns,
    is_same,
    kind_of,
    written,
)
from eunomia.records.record import from_json, to_json

ROOM = "eunomia."
MOVED = {  # modules whose classes stood elsewhere in snapshots that are read
    "eunomia.core.losses": "eunomia.core.training_losses",
    "eunomia.setup.belief_noise": "eunomia.setup.run_speeds",
    "eunomia.mechanisms.fluid.fluid_allocation": "eunomia.mechanisms.fluid.current_shares",
    "eunomia.throughputs.jobs": "eunomia.throughputs.job_type_facts",
    "eunomia.throughputs.measured": "eunomia.throughputs.measured_table",
}
_SKIPPED = frozenset({"_history"})  # of the scheduler: for messages only
_PLAIN_TYPES = {kind.__name__: kind for kind in (np.int64, np.float64, np.bool_, int, float, bool)}  # of columns


class CannotSnapshot(ValueError):
    """The state holds something that a snapshot cannot; the whole log is replayed instead."""


def capture(scheduler: Scheduler) -> Captured:
    """Return the state as it is now. Raises CannotSnapshot for a mechanism or policy whose state it cannot write."""
    return Captured(scheduler)


class Captured:
    """A state as it was, to be written later and by any thread: it shares nothing with the scheduler that changes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._writer = _Writer(has_long=True)
        self._root = self._writer.value(scheduler)

    def content(self, parts: WrittenParts | None = None) -> bytes:
        """Return the bytes of a snapshot; `parts` has the long lists of the one before.

        They are texts and arrays compressed one after the other, which `pack` writes in one piece.
        """
        lists = {number: one for number, one in enumerate(self._writer.objects) if isinstance(one, LongList)}
        copies = {
            number: first
            for number, one in lists.items()
            for first, other in lists.items()
            if first < number and is_same(one.values, other.values)
        }
        found = iter((parts or WrittenParts()).write([lists[number] for number in lists if number not in copies]))
        texts, open_text = list[Written](), [f'{{"root":{encode(self._root)},"objects":[']
        for number, one in enumerate(self._writer.objects):
            open_text.append("," * (number > 0))
            if number in copies or number not in lists:
                open_text.append(encode(["C", copies[number]] if number in copies else one))
                continue
            open_text.append(f'["Q","{one.kind}",[' if one.kind else '["L",[')
            for place, part in enumerate(next(found)):
                open_text.append("," * (place > 0))
                texts += [written("".join(open_text)), part]
                open_text = []
            open_text.append("]]")
        texts.append(written("".join([*open_text, f'],"arrays":{encode(self._writer.arrays)}}}'])))
        size = sum(length for length, _ in texts)
        packer = zlib.compressobj(1)
        arrays = [packer.compress(blob) for blob in self._writer.blobs]
        return b"".join([zlib.compress(size.to_bytes(8, "big")), *(text for _, text in texts), *arrays, packer.flush()])


def restore(fresh: Scheduler, content: bytes) -> None:
    """Give a fresh scheduler, built from the same inputs, the captured state. Raises ValueError for anything else."""
    parts = list[bytes]()
    while content:
        part = zlib.decompressobj()
        try:
            parts.append(part.decompress(content))
        except zlib.error as error:
            raise ValueError(f"it is not compressed as a snapshot is: {error}") from None
        if not part.eof:
            raise ValueError("its end is missing")
        content = part.unused_data
    _reader(b"".join(parts)).fill(fresh)


def pack(value: Any) -> bytes:
    """Return a value as bytes: a scheduler, a view, an answer. Raises CannotSnapshot for what it cannot write."""
    writer = _Writer()
    root = writer.value(value)
    text = json.dumps({"root": root, "objects": writer.objects, "arrays": writer.arrays}, separators=(",", ":"))
    head = text.encode()
    return len(head).to_bytes(8, "big") + head + b"".join(writer.blobs)


def unpack(content: bytes) -> Any:
    """Invert `pack`; functions and paths become None. Raises ValueError for anything that it does not write."""
    return _reader(content).value()


def _reader(content: bytes) -> _Reader:
    size = int.from_bytes(content[:8], "big")
    return _Reader(json.loads(content[8 : 8 + size]), content[8 + size :])


class _Writer:
    """Writes values; each object and array once, by number."""

    def __init__(self, has_long: bool = False) -> None:
        self._has_long = has_long  # long lists stay lists, to be written later
        self.objects: list[Any] = []
        self.arrays: list[Any] = []
        self.blobs: list[bytes] = []
        self._size = 0
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def value(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return {"e": [_path(type(value)), value.value]}
        if type(value) in PLAIN:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"f": str(value)}
        if isinstance(value, np.generic):
            return {"s": [value.dtype.str, self.value(value.item())]}
        if isinstance(value, np.ndarray):
            return {"w": _texts(value)} if value.dtype.hasobject else {"a": self._array(value)}
        if isinstance(value, Job):
            return {"j": to_json(value)}
        if isinstance(value, type):
            return {"c": _path(value)}
        if isinstance(value, PurePath | PolicyInfo):
            return {"k": 1}
        if callable(value) and isinstance(
            value, types.FunctionType | types.MethodType | types.BuiltinFunctionType | types.LambdaType
        ):
            return {"k": 1}
        return {"o": self._object(value)}

    def _object(self, value: Any) -> int:
        number = self._seen.get(id(value))
        if number is not None:
            return number
        number = self._seen[id(value)] = len(self.objects)
        self._kept.append(value)
        self.objects.append(None)
        self.objects[number] = self._written(value)
        return number

    def _written(self, value: Any) -> Any:
        match value:
            case list():
                kind = kind_of(value)
                if kind is not None and self._has_long and len(value) >= LONG:
                    return LongList(kind, value.copy())
                if kind == "":
                    return ["L", value.copy()]
                if kind is not None:
                    return ["Q", kind, [[len(value), columns(value)]]]
                return ["l", [self.value(part) for part in value]]
            case tuple() if type(value) is tuple:
                is_plain = set(map(type, value)) <= PLAIN
                return ["t", list(value) if is_plain else [self.value(part) for part in value]]
            case tuple():
                return ["n", _path(type(value)), [self.value(part) for part in value]]
            case deque():
                return ["d", value.maxlen, [self.value(part) for part in value]]
            case set() | frozenset():
                parts = sorted(value, key=repr)
                return ["S" if isinstance(value, set) else "z", [self.value(part) for part in parts]]
            case dict() if self._has_long and len(value) >= LONG and kind_of(list(value)) == "":
                return ["D", self._object(list(value)), self._object(list(value.values()))]
            case Mapping() if not type(value).__module__.startswith(ROOM):
                return ["m", [[self.value(key), self.value(part)] for key, part in value.items()]]
        if not type(value).__module__.startswith(ROOM):
            raise CannotSnapshot(f"a snapshot cannot hold a {_path(type(value))}")
        return ["i", _path(type(value)), {name: self.value(part) for name, part in _attributes(value).items()}]

    def _array(self, array: Array) -> int:
        number = self._seen.get(id(array))
        if number is not None:
            return number
        base = array.base
        if isinstance(base, np.ndarray) and base.flags.c_contiguous and base.dtype == array.dtype:
            owner = self._array(base)
            offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            entry = {"of": owner, "at": offset, "shape": list(array.shape), "strides": list(array.strides)}
        else:
            raw = np.ascontiguousarray(array).tobytes()
            entry = {"dtype": array.dtype.str, "shape": list(array.shape), "from": self._size, "size": len(raw)}
            self._size += len(raw)
            self.blobs.append(raw)
        number = self._seen[id(array)] = len(self.arrays)
        self._kept.append(array)
        self.arrays.append(entry)
        return number


def _texts(array: Array) -> list[str]:
    """Return the entries of an array of texts. Raises CannotSnapshot for other objects."""
    found: list[str] = array.tolist()
    if array.ndim != 1 or not all(type(one) is str for one in found):
        raise CannotSnapshot("a snapshot cannot hold an array of objects that are not texts")
    return found


class _Reader:
    """Reads what `_Writer` wrote into the objects of a fresh scheduler, and makes those that it lacks."""

    def __init__(self, data: dict[str, Any], blob: bytes) -> None:
        self._objects, self._entries, self._blob = data["objects"], data["arrays"], blob
        self._root = data["root"]
        self._made: dict[int, Any] = {}
        self._arrays: dict[int, Array] = {}

    def fill(self, fresh: Scheduler) -> None:
        if self._value(self._root, fresh) is not fresh:
            raise ValueError("the snapshot is of something else than a scheduler")

    def value(self) -> Any:
        return self._value(self._root, None)

    def _value(self, written: Any, fresh: Any) -> Any:
        if not isinstance(written, dict):
            return written
        ((kind, body),) = written.items()
        match kind:
            case "f":
                return float(body)
            case "s":
                return np.dtype(body[0]).type(self._value(body[1], None))
            case "a":
                return self._array(body)
            case "w":
                return np.array(body, dtype=object)
            case "j":
                return from_json(body)
            case "c":
                return _found(body)
            case "e":
                return _found(body[0])(body[1])
            case "k":
                return fresh
        return self._object(body, fresh)

    def _object(self, number: int, fresh: Any) -> Any:
        if number in self._made:
            return self._made[number]
        kind, *body = self._objects[number]
        made: Any
        if kind == "i":
            cls = _found(body[0])
            made = self._made[number] = fresh if type(fresh) is cls else object.__new__(cls)
            if cls is PolicyInfo:  # snapshots of before have it with its fields of then
                return made
            for name in () if made is fresh else _defaults(cls).keys() - body[1].keys():  # newer than the snapshot
                object.__setattr__(made, name, _defaults(cls)[name])
            for name, part in body[1].items():
                object.__setattr__(made, name, self._value(part, getattr(fresh, name, None)))
            return made
        if kind == "L":
            made = self._made[number] = list(body[0])
        elif kind == "Q":
            made = self._made[number] = [one for part in body[1] for one in from_columns(BY_FIELD[body[0]], *part)]
        elif kind == "C":
            made = self._made[number] = list(self._object(body[0], None))
        elif kind == "D":
            keys, values = (self._object(part, None) for part in body)
            made = self._made[number] = dict(zip(keys, values, strict=True))
        elif kind == "l":
            made = self._made[number] = []
            made += [self._value(part, None) for part in body[0]]
        elif kind == "m":
            made = self._made[number] = {}
            known = fresh if isinstance(fresh, dict) else {}
            for key, part in body[0]:
                name = self._value(key, None)
                made[name] = self._value(part, known.get(name))
        elif kind == "S":
            made = self._made[number] = set()
            made.update(self._value(part, None) for part in body[0])
        elif kind == "d":
            made = self._made[number] = deque(maxlen=body[0])
            made.extend(self._value(part, None) for part in body[1])
        elif kind == "t":
            parts = fresh if isinstance(fresh, tuple) and len(fresh) == len(body[0]) else (None,) * len(body[0])
            made = tuple(self._value(part, old) for part, old in zip(body[0], parts, strict=True))
        elif kind == "n":
            cls, size = _found(body[0]), len(body[1])
            old = fresh if type(fresh) is cls else (None,) * len(cls._fields)
            values = [self._value(part, one) for part, one in zip(body[1], old[:size], strict=True)]
            made = cls(*values)  # fields that are newer than the snapshot have their defaults
        elif kind == "z":
            made = frozenset(self._value(part, None) for part in body[0])
        else:
            raise ValueError(f"a snapshot has no objects of kind {kind!r}")
        self._made[number] = made
        return made

    def _array(self, number: int) -> Array:
        if number not in self._arrays:
            entry = self._entries[number]
            if "of" in entry:
                base = self._array(entry["of"])
                made: Array = np.ndarray(
                    tuple(entry["shape"]),
                    base.dtype,
                    base,
                    entry["at"],
                    tuple(entry["strides"]),
                )
            else:
                raw = self._blob[entry["from"] : entry["from"] + entry["size"]]
                made = np.frombuffer(raw, np.dtype(entry["dtype"])).reshape(entry["shape"]).copy()
            self._arrays[number] = made
        return self._arrays[number]


def _path(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(path: str) -> Any:
    """Return a class of this package by its name. Raises ValueError for any other."""
    module, _, name = path.partition(":")
    module = MOVED.get(module, module)
    if module in ("numpy", "builtins") and name in _PLAIN_TYPES:
        return _PLAIN_TYPES[name]
    if not module.startswith(ROOM):
        raise ValueError(f"a snapshot names {path!r}, which is not ours")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise ValueError(f"a snapshot names {path!r}, which is no class")
    return found


@functools.cache
def _defaults(cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass that have a default, by name; none of other classes."""
    found = fields(cls) if is_dataclass(cls) else ()
    return {one.name: one.default for one in found if one.default is not MISSING}


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, of its dictionary and its slots."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = f"_{cls.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return {name: part for name, part in found.items() if name not in _SKIPPED}
