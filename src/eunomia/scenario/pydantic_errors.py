"""What pydantic found, said as where, what and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario.model import Scenario
from eunomia.scenario.schema_models import MechanismSection
from eunomia.scenario.source_locations import Finding, KeyPath, shown

_RULES = {
    "bool_type": ("must be true or false", "write it without quotes"),
    "dict_type": ("must be a table", "write it as in {{ v100 = 8 }}, after --set in quotes"),
    "finite_number": ("must be finite", "give a finite number"),
    "float_type": ("must be a number", "write a number without quotes"),
    "greater_than": ("must be above {gt:g}", "give a number above {gt:g}"),
    "greater_than_equal": ("must be at least {ge:g}", "give {ge:g} or more"),
    "int_type": ("must be a whole number", "write it without quotes and without a point"),
    "job_types": (
        "must be the name of a mix or a table of job types with weights above 0 and below 1e15",
        'write job_types = "mix:default", or {{ "A3C" = 1, "CycleGAN" = 2 }}',
    ),
    "less_than": ("must be below {lt:g}", "give a number below {lt:g}"),
    "less_than_equal": ("must be at most {le:g}", "give {le:g} or less"),
    "space": ("each entry is a range or a list of choices", "write lr = {{ low = 1e-4, high = 0.1, log = true }}"),
    "missing_vc": ("must be spread, spread(seed), drop or own", 'write missing_vc = "spread"'),
    "model_type": ("must be a table", "write [{name}] and its keys below it, or {{ key = value }}"),
    "string_pattern_mismatch": ("must be a whole number of at least 1", "name a number of accelerators"),
    "string_too_short": ("must not be empty", "write a name, or leave the key out"),
    "string_type": ("must be a text", "write it in quotes"),
    "too_short": ("must not be empty", "write at least one entry"),
    "tuple_type": ("must be an array", 'write it as in [{{ type = "v100", count = 2, accelerators = 4 }}]'),
}
_ADD = {
    "cluster": "add [cluster] with nodes, or with accelerators = { v100 = 8 }",
    "workload": 'add [workload] with trace = "jobs.csv", or with generator = "philly-like"',
    "type": 'add type = "v100"',
    "accelerators": "add accelerators = 4",
}


class _Key(NamedTuple):
    """What the model knows of a place: the class that holds the key, and the key if it has one."""

    model: type[BaseModel]
    field: FieldInfo | None


def findings(error: ValidationError) -> Iterator[Finding]:
    """Yield one finding for each key that broke its own rule."""
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and details["input"]:
            continue  # entries that are wrong are not counted, but have been named
        path = tuple(part for part in details["loc"] if part != "[key]")
        key = _key(path)
        value = None if details["type"] == "missing" else details["input"]
        rule, fix = _said(details, path, key)
        yield Finding(path, value, rule, fix)


def _said(details: ErrorDetails, path: KeyPath, key: _Key) -> tuple[str, str]:
    """Return rule and fix."""
    context = details.get("ctx", {})
    name = str(path[-1]) if path else "scenario"
    match details["type"]:
        case "missing":
            return "is missing", _ADD.get(name, f"add {name}")
        case "extra_forbidden":
            return _unknown(name, path, key.model)
        case "literal_error":
            valid = re.findall(r"'([^']*)'", str(context["expected"]))
            return f"must be {context['expected']}", nearest(str(details["input"]), valid)
    rule, fix = _RULES.get(details["type"], (details["msg"], "give a value that obeys the rule"))
    # What a mechanism's key is by default depends on the mechanism.
    left_out = ", or leave it out" if key.model is MechanismSection else _default(key.field)
    return rule.format(**context), fix.format(**context, name=name) + left_out


def _unknown(name: str, path: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    """Answer a key or table that is not known: it may stand in the wrong place, or be misspelt."""
    table = "the scenario" if model is Scenario else f"[{'.'.join(str(part) for part in path[:-1])}]"
    homes = [section for section, field in _sections().items() if name in keys(field)]
    if name in Scenario.model_fields and model is not Scenario:
        return f"is no key of {table}", "it belongs at the top of the scenario, before the first [table]"
    if homes and model is Scenario:
        return f"is no key of {table} itself", f"it belongs below [{homes[0]}]"
    return f"is no key of {table}", nearest(name, keys(model))


def keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys of a table as they are written."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _sections() -> dict[str, type[BaseModel]]:
    held = {name: _held_model(field) for name, field in Scenario.model_fields.items()}
    return {name: model for name, model in held.items() if model is not None}


def _held_model(field: FieldInfo) -> type[BaseModel] | None:
    """Return the class of table that a key holds, be it optional or in an array."""
    for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _key(path: KeyPath) -> _Key:
    """Follow a path through the classes."""
    model: type[BaseModel] = Scenario
    field: FieldInfo | None = None
    for depth, part in enumerate(path):
        if isinstance(part, int):
            continue
        field = keys(model).get(part)
        held = None if field is None else _held_model(field)
        if held is None or depth == len(path) - 1:
            break
        model = held
    return _Key(model, field if field is not None and path[-1] == part else None)


def _default(field: FieldInfo | None) -> str:
    """Say what happens when the key is left out, where that is an answer."""
    if field is None or field.is_required() or field.default_factory is not None or field.default in (None, ""):
        return ""
    if isinstance(field.default, (BaseModel, tuple)):
        return ", or leave it out"
    return f", or leave it out for {shown(field.default)}"
