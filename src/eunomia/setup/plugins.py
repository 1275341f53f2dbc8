"""Loads a plug-in class: one that an installed package announces as an entry point, or `path.py:Class`."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from eunomia.backends.inputs import BackendClass
from eunomia.backends.registry import BACKENDS, BACKENDS_OF_PACKAGES
from eunomia.inputs.problems import InvalidInput, refused
from eunomia.model.registry import Registry
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario import Scenario
from eunomia.scenario.source_locations import refused_at

Where = Callable[[tuple[str, ...]], tuple[str, int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLoader:
    """Finds the classes of one kind, such as policies: built-in ones and plug-ins."""

    noun: str  # in messages
    key: tuple[str, str]  # the scenario key that names the class
    group: str  # of entry points
    fits: Callable[[object], bool]
    fix: str  # of a class that does not fit
    built_in: Registry[Any] = field(default_factory=Registry)

    def announced(self) -> list[str]:
        """Return the names that installed packages announce, sorted."""
        return sorted({point.name for point in entry_points(group=self.group)})

    def find(self, name: str, base: Path, where: Where, known: Iterable[str] = ()) -> Callable[..., Any]:
        """Return the class of that name; a file is searched for below `base`, then in the current folder.

        Raises InvalidInput with the nearest of these and the `known` names, or with the line at which loading failed.
        """
        if name in self.built_in:
            found: Callable[..., Any] = self.built_in.load(name)
            return found
        if is_file_spec(name):
            return self._from_file(name, base, where)
        points = {point.name: point for point in entry_points(group=self.group)}
        if name not in points:
            names, parts = [*self.built_in, *known, *points], name.split(",")
            fix = nearest(name, names) if names else self.fix
            if len(parts) > 1 and set(parts) <= set(names):
                fix = f"give one at a time: {' '.join(f'--{self.noun} {part}' for part in parts)}"
            raise self._refusal(where, name, f"there is no such {self.noun}", fix)
        cls: Callable[..., Any] | None = self._load(points[name].load, name)
        if cls is None or not self.fits(cls):
            rule = f"what its package announces, {points[name].value}, is no {self.noun}"
            raise self._refusal(where, name, rule, self.fix)
        return cls

    def _from_file(self, name: str, base: Path, where: Where) -> Callable[..., Any]:
        file, _, attribute = name.rpartition(":") if ".py:" in name else (name, "", "")
        path = next((path for path in (base / file, Path(file)) if path.is_file()), None)
        if path is None:
            fix = "give path.py:Class, from here or from the scenario"
            raise self._refusal(where, name, f"there is no file {file!r}", fix)
        module: ModuleType = self._load(lambda: _import_file(path), name)
        cls: Any = getattr(module, attribute, None)
        if not self.fits(cls):
            classes = [key for key, value in vars(module).items() if self.fits(value)]
            fix = nearest(attribute, classes) if classes else self.fix
            raise self._refusal(where, name, f"{path} has no {self.noun} {attribute!r}", fix)
        fitting: Callable[..., Any] = cls
        return fitting

    def _load(self, load: Callable[[], Any], name: str) -> Any:
        """Run plug-in code. Raises InvalidInput with the line at which it raised any exception."""
        try:
            return load()
        except (Exception, SystemExit) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            file, row = last.filename, last.lineno
            if isinstance(error, SyntaxError) and error.filename:
                file, row = error.filename, error.lineno
            rule = f"loading {self.noun} {name} failed: {type(error).__name__}: {error}"
            raise refused(file, None, None, rule, "fix this line", row=row) from error

    def _refusal(self, where: Where, name: str, rule: str, fix: str) -> InvalidInput:
        return refused_at(where(self.key), ".".join(self.key), name, rule, fix)


def is_file_spec(name: str) -> bool:
    """Whether a name means a class in a file."""
    return name.endswith(".py") or ".py:" in name


def _import_file(path: Path) -> ModuleType:
    name = f"eunomia_outside_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


METRICS = PluginLoader(
    noun="metric",
    key=("measure", "metrics"),
    group="eunomia.metrics",
    fits=callable,
    fix="give a function of the tables of a run that returns numbers by name",
)
_BACKENDS = PluginLoader(
    noun="backend",
    key=("world", "backend"),
    group=BACKENDS_OF_PACKAGES,
    fits=lambda value: isinstance(value, type) and issubclass(value, BackendClass) and value is not BackendClass,
    fix="give a class derived from eunomia.backends.inputs.BackendClass",
    built_in=BACKENDS,
)


def find_backend(scenario: Scenario) -> type[BackendClass]:
    """Return the class of the scenario's backend. Raises InvalidInput for an unknown one."""
    return cast(type[BackendClass], _BACKENDS.find(scenario.world.backend, scenario.base, scenario.where))
