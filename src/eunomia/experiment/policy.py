"""Finds a policy by its name: one of ours, one of an installed package, or a class in a file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from eunomia.model.nearest import nearest
from eunomia.model.policy import Policy, PolicyInfo, check_values
from eunomia.model.problems import InvalidInput, Problem
from eunomia.policies import POLICIES, load
from eunomia.policies.presets import PRESETS

GROUP = "eunomia.policies"  # entry points of other packages
A_POLICY = "give a class with an `info: ClassVar[PolicyInfo]` and a method `decide`"
Where = Callable[[tuple[str, ...]], tuple[str, int | None]]


def nowhere(path: tuple[str, ...]) -> tuple[str, int | None]:
    """Return the place of what was not written in a file."""
    return "policy", None


def known_policies(*, presets: bool = True) -> list[str]:
    """Return the names of our policies and presets, then of those that installed packages announce."""
    return list(
        dict.fromkeys(
            [*POLICIES, *(PRESETS if presets else ()), *sorted(point.name for point in entry_points(group=GROUP))]
        )
    )


def policy_class(name: str) -> Callable[..., Policy]:
    """Return the class behind a name. Raises InvalidInput for one that is not known."""
    return _class_of(PRESETS.get(name, (name,))[0], Path(), nowhere)


def find_policy(name: str, parameters: Mapping[str, Any], base: Path, where: Where = nowhere) -> Policy:
    """Return the policy with its parameters set; a preset brings some, and its user may say more or otherwise.

    Raises InvalidInput for a name or parameter that is not known.
    """
    name, preset = PRESETS.get(name, (name, {}))
    parameters = {**preset, **parameters}
    cls = _class_of(name, base, where)
    known: list[str] = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    problems = []
    for parameter in parameters:
        if parameter not in known:
            file, row = where(("policy", parameter))
            mend = nearest(parameter, known) if known else f"{name} has no parameters"
            problems.append(
                Problem(
                    file=file, row=row, column=f"policy.{parameter}", rule=f"{name} has no such parameter", mend=mend
                )
            )
    if problems:
        raise InvalidInput(problems)
    try:
        if isinstance(cls, type):
            check_values(cls, parameters)
        return cls(**parameters)
    except (TypeError, ValueError) as error:
        file, row = where(("policy", next(iter(parameters), "name")))
        problem = Problem(file=file, row=row, column="policy", rule=str(error), mend=f"see eunomia policies {name}")
        raise InvalidInput([problem]) from error


def _class_of(name: str, base: Path, where: Where) -> Callable[..., Policy]:
    if name in POLICIES:
        return load(name)
    if name.endswith(".py") or ".py:" in name:
        return _from_file(name, base, where)
    outside = {point.name: point for point in entry_points(group=GROUP)}
    if name not in outside:
        raise _refusal(where, name, "there is no such policy", nearest(name, known_policies()))
    found: Callable[..., Policy] | None = _loaded(outside[name].load, name, where)
    if found is None or not _is_policy(found):
        rule = f"what its package announces, {outside[name].value}, is no policy"
        raise _refusal(where, name, rule, A_POLICY)
    return found


def _from_file(name: str, base: Path, where: Where) -> Callable[..., Policy]:
    file, _, attribute = name.rpartition(":") if ".py:" in name else (name, "", "")
    path = next((path for path in (base / file, Path(file)) if path.is_file()), None)
    if path is None:
        raise _refusal(where, name, f"there is no file {file!r}", "give path.py:Class, from here or from the scenario")
    module: ModuleType = _loaded(lambda: _import_file(path), name, where)
    found = getattr(module, attribute, None)
    if not _is_policy(found):
        classes = [key for key, value in vars(module).items() if _is_policy(value)]
        mend = nearest(attribute, classes) if classes else A_POLICY
        raise _refusal(where, name, f"{path} has no policy {attribute!r}", mend)
    policy: Callable[..., Policy] = found  # type: ignore[assignment]
    return policy


def _is_policy(found: object) -> bool:
    fits = isinstance(getattr(found, "info", None), PolicyInfo) and callable(getattr(found, "decide", None))
    return isinstance(found, type) and fits


def _loaded(loading: Callable[[], Any], name: str, where: Where) -> Any:
    """Run code of others, which may fail in any way; say where it did."""
    try:
        return loading()
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        file, row = last.filename, last.lineno
        if isinstance(error, SyntaxError) and error.filename:
            file, row = error.filename, error.lineno
        rule = f"loading policy {name} failed: {type(error).__name__}: {error}"
        raise InvalidInput([Problem(file=file, row=row, rule=rule, mend="mend this line")]) from error


def _import_file(path: Path) -> ModuleType:
    name = f"eunomia_outside_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _refusal(where: Where, name: str, rule: str, mend: str) -> InvalidInput:
    file, row = where(("policy", "name"))
    return InvalidInput([Problem(file=file, row=row, column="policy.name", value=name, rule=rule, mend=mend)])
