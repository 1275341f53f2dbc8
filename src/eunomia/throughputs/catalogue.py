"""The built-in accelerator types, with published facts and prices, and slices of them (MIG).

Reference: NVIDIA, "Multi-Instance GPU User Guide", supported profiles: an A30 has four slices of compute, others seven.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest

FILE = "accelerators.toml"
_BRANDS = ("nvidia", "amd", "tesla", "instinct", "geforce", "quadro", "accelerator")
_OTHERS = {"ada", "super", "ti", "max"}  # words that make another model of one
_SLICE = re.compile(r"\bmig\b|\d+g\.\d+gb")
_MEMORY = re.compile(r"\d+gb")
_NAME = re.compile(r"^(?P<device>.*?)[-_.:/ ]*(?:mig[-_.]?)?(?P<compute>\d)g\.(?P<memory>\d+)gb", re.IGNORECASE)
_PARTS, _PARTS_OF_A30 = 7, 4  # of the compute
_MEMORY_PARTS = {3: 4, 7: 8}  # of eight, where they are not as many as those of the compute
_DEVICE_BY_GIB = {5: "a100-40gb", 10: "a100-80gb", 17: "h200", 18: "h200"}  # of a part, where the device is not named
_A30_GIB = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator type; the head of `accelerators.toml` explains each field and its unit."""

    name: str
    vendor: str
    memory_gb: float
    fp32_tflops: float
    bandwidth_gb_s: float
    link: str
    link_gb_s: float
    source: str
    aliases: tuple[str, ...] = ()
    fp16_tflops: float | None = None
    network_gbit_s: float | None = None
    network_source: str = ""
    efficiency: float = 1.0
    price_usd_per_hour: float | None = None
    price_terms: str = ""
    price_date: str = ""
    price_region: str = ""
    price_source: str = ""
    note: str = ""


@cache
def accelerators() -> dict[str, Accelerator]:
    """Return the built-in accelerator types by name, oldest first."""
    text = files("eunomia.throughputs").joinpath(FILE).read_text(encoding="utf-8")
    known = {field.name for field in fields(Accelerator)}
    by_name = {}
    for name, facts in tomllib.loads(text).items():
        assert set(facts) <= known, f"{FILE}: {name} has {set(facts) - known}"
        by_name[name] = Accelerator(name=name, **{**facts, "aliases": tuple(facts.get("aliases", ()))})
    return by_name


@cache
def _name_by_spelling() -> dict[str, str]:
    spelled = {name: name for name in accelerators()}
    for accelerator in accelerators().values():
        spelled |= dict.fromkeys(accelerator.aliases, accelerator.name)
    return spelled


def find(type_name: str) -> Accelerator | None:
    """Return the accelerator type of a name or alias, in any case and with spaces or underscores; None if unknown."""
    spelling = type_name.strip().casefold().replace("_", "-").replace(" ", "-")
    name = _name_by_spelling().get(spelling)
    return None if name is None else accelerators()[name]


def recognise(device_name: str) -> Accelerator | None:
    """Return the accelerator type that a driver or cluster manager names, as NVIDIA-A100-SXM4-80GB; None if unknown.

    A slice of an accelerator (MIG), such as 1g.10gb, is no type of the catalogue.
    """
    spelling = device_name.strip().casefold().replace("_", "-").replace(" ", "-")
    words = [word for word in spelling.split("-") if word not in _BRANDS]
    if _SLICE.search(spelling) or not words:
        return None
    plain = "-".join(words)
    memory = next((word for word in words if _MEMORY.fullmatch(word)), "")
    guesses = (spelling, plain, f"{words[0]}-{memory}" if memory else "", "" if _OTHERS & set(words) else words[0])
    return next((found for guess in guesses if guess and (found := find(guess)) is not None), None)


def resolve(types: tuple[str, ...]) -> tuple[Accelerator, ...]:
    """Return the built-in accelerator types of these names. Raises InvalidInput with every unknown name."""
    by_name = {name: find(name) for name in types}
    problems = Problems("the catalogue")
    for name, accelerator in by_name.items():
        if accelerator is None:
            known = f"{nearest(name, _name_by_spelling())} (types: {', '.join(accelerators())})"
            fix = f'{known}; or give a table of throughputs, or one speed for all types: source = "uniform"'
            problems.add("this accelerator type is not in the catalogue", fix, column="type", value=name)
    problems.raise_if_any()
    return tuple(accelerator for accelerator in by_name.values() if accelerator is not None)


def price_usd_per_hour(type_name: str) -> float | None:
    """Return the price of one accelerator for an hour; None if the catalogue has none."""
    accelerator = find(type_name)
    return None if accelerator is None else accelerator.price_usd_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorSlice:
    """A part of one accelerator."""

    device: Accelerator | None  # None = not recognised
    compute: float  # part of the device's compute, at most 1


@cache
def slice_of(name: str) -> AcceleratorSlice | None:
    """Return the slice that a name of a type stands for; None for whole accelerators."""
    found = _NAME.match(name.strip())
    if found is None:
        return None
    compute = int(found["compute"])
    gib = int(found["memory"]) // _MEMORY_PARTS.get(compute, max(compute, 1))
    device = recognise(found["device"]) if found["device"] else None
    whole = find(_DEVICE_BY_GIB.get(gib, ""))
    same_name = device is not None and whole is not None and device.name.split("-")[0] == whole.name.split("-")[0]
    parts = _PARTS_OF_A30 if gib == _A30_GIB else _PARTS
    return AcceleratorSlice(device=whole if device is None or same_name else device, compute=min(compute / parts, 1.0))
