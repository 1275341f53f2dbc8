"""Small scenarios, as text in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import Scenario, load_scenario

TINY = '[cluster]\naccelerators = { v100 = 4 }\n[workload]\ntrace = "jobs.csv"\n'


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Scenario]:
    """Return what loads a text as a file named tiny.toml."""

    def load_text(text: str, overrides: Sequence[str] = ()) -> Scenario:
        path = tmp_path / "tiny.toml"
        path.write_text(text, encoding="utf-8")
        return load_scenario(path, overrides)

    return load_text


@pytest.fixture
def tiny(load: Callable[..., Scenario]) -> Callable[..., Scenario]:
    """Return what loads the smallest scenario with overrides."""
    return lambda *overrides: load(TINY, overrides)


@pytest.fixture
def complaints(load: Callable[..., Scenario]) -> Callable[..., tuple[Problem, ...]]:
    """Return what loads a text that is wrong and gives its problems."""

    def refused(text: str, overrides: Sequence[str] = ()) -> tuple[Problem, ...]:
        with pytest.raises(InvalidInput) as refusal:
            load(text, overrides)
        return refusal.value.problems

    return refused
