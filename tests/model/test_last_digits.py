"""One unit in the last place changes no decision: not of what a policy sees, nor of the products that it computes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from eunomia.core import mechanism
from eunomia.model import elementary
from eunomia.model.decisions import Decision
from eunomia.model.policy import Policy
from eunomia.model.products import dot, row_dots
from eunomia.model.view import ROUNDED
from eunomia.policies import POLICIES, load
from eunomia.testing.sample_views import a_view
from eunomia.testing.small_worlds import draw, play

SEEDS = range(6)
MOVED = ROUNDED | {"throughput"}


def nudged(values: Any, rng: np.random.Generator) -> Any:
    """The numbers, each one unit in the last place higher, lower, or as it was; 0 stays 0."""
    values = np.asarray(values, dtype=float)
    toward = rng.choice([-np.inf, np.inf, 0.0], values.shape)
    moved = np.where((toward == 0) | (values == 0), values, np.nextafter(values, toward))
    return moved if moved.ndim else float(moved)


def nudged_columns(columns: dict[str, Any], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: nudged(each, rng) if name in MOVED else each for name, each in columns.items()}


def nudge_results(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let products and elementary functions that policies call be off by one unit in the last place."""
    rng = np.random.default_rng(seed)

    def off(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: nudged(function(*args), rng)

    for name, module in list(sys.modules.items()):
        for each, value in (("dot", dot), ("row_dots", row_dots)):
            if name.startswith("eunomia.policies") and getattr(module, each, None) is value:
                monkeypatch.setattr(module, each, off(value))
    for each in ("exp", "log", "power"):
        monkeypatch.setattr(elementary, each, off(getattr(elementary, each)))


def parts(answer: Any) -> list[bytes]:
    """All numbers of an answer, but for proofs and memories, shares as they are ranked by: to nine digits."""
    found = []
    for each in fields(answer):
        value = getattr(answer, each.name)
        if each.name in ("certificate", "memory"):
            continue
        if is_dataclass(value):
            found += parts(value)
        elif isinstance(value, Mapping):
            found.append(repr(sorted(value.items())).encode())
        elif isinstance(value, np.ndarray) and value.dtype == float:
            found.append((np.round(value, 9) + 0.0).tobytes())
        else:
            found.append(repr(value).encode())
    return found


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_no_decision_depends_on_the_last_digit_of_what_a_policy_sees(name: str) -> None:
    policy = load(name)()
    for seed in SEEDS:
        view = a_view(policy, seed)
        near = replace(view, columns=nudged_columns(dict(view.columns), seed))
        assert parts(policy.decide(near)) == parts(policy.decide(view))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_no_decision_depends_on_the_last_digit_of_a_product_or_logarithm(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load(name)()
    views = [a_view(policy, seed) for seed in SEEDS]
    plain = [parts(policy.decide(view)) for view in views]
    nudge_results(monkeypatch, 1)
    assert [parts(policy.decide(view)) for view in views] == plain


def decided(policy: Policy) -> list[tuple[float, Decision]]:
    """Who was started and stopped when, in a small simulation."""
    return [(at, d) for at, d in play(policy, draw(4), seed=4).decisions if type(d).__name__ in ("Start", "Stop")]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_small_simulation_is_the_same_when_every_view_is_off_by_last_digits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, look = load(name)(), mechanism.build_view
    plain = decided(policy)
    monkeypatch.setattr(mechanism, "build_view", lambda *args: nudged_columns(look(*args), 7))
    assert repr(decided(load(name)())) == repr(plain)
