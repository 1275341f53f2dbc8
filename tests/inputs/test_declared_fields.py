"""What a field declares is what it takes; what it does not take is named with the rule and the nearest choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pytest

from eunomia.inputs.declared_fields import check_fields, declared_rules, wrong_values
from eunomia.inputs.field_rules import Rule


@dataclass(frozen=True, slots=True)
class Oven:
    heat: Annotated[float, Rule(above=0.0, what="a finite heat above 0")] = 180.0
    part: Annotated[float, Rule(least=0.0, below=1.0, what="from 0 to below 1")] = 0.5
    until: Annotated[float, Rule(above=0.0, endless=True, what="above 0")] | None = None
    trays: Annotated[int, Rule(least=1, what="at least 1")] = 1
    fan: bool = False
    mode: Literal["bake", "grill"] = "bake"
    limit: float | str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("heat", 1), ("heat", np.float64(1.5)), ("heat", Fraction(1, 3)), ("part", 0.0), ("until", math.inf),
        ("until", None), ("trays", np.int64(2)), ("mode", "grill"), ("limit", 3), ("limit", "x"), ("words", 7),
    ],
)  # fmt: skip
def test_a_value_that_keeps_the_rule_is_taken(field: str, value: object) -> None:
    assert getattr(Oven(**{field: value}), field) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("heat", 0.0, "heat is 0.0; it is a finite heat above 0"),
        ("heat", math.inf, "heat is inf; it is a finite heat above 0"),
        ("heat", math.nan, "heat is nan; it is a finite heat above 0"),
        ("heat", "hot", "heat is 'hot'; it is a number"),
        ("heat", True, "heat is True; it is a number"),
        ("part", 1.0, "part is 1.0; it is from 0 to below 1"),
        ("until", 0.0, "until is 0.0; it is above 0"),
        ("trays", 0, "trays is 0; it is at least 1"),
        ("trays", 2.5, "trays is 2.5; it is a whole number"),
        ("fan", 1, "fan is 1; it is true or false"),
        ("mode", "gril", "mode is 'gril'; it is one of bake, grill: did you mean 'grill'?"),
        ("mode", ["bake"], "mode is ['bake']; it is one of bake, grill"),
        ("limit", None, "limit is None; it is a number or a text"),
    ],
)
def test_another_value_is_named_with_the_rule(field: str, value: object, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        Oven(**{field: value})  # type: ignore[arg-type]
    assert str(refused.value) == said


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(ValueError) as refused:
        Oven(heat=-1, trays=0)
    assert str(refused.value).splitlines() == [
        "heat is -1; it is a finite heat above 0",
        "trays is 0; it is at least 1",
    ]


def test_only_given_values_are_checked_and_a_field_of_another_kind_is_not() -> None:
    assert [one.name for one in wrong_values(Oven, {"words": 3, "fan": "yes"})] == ["fan"]
    assert "words" not in declared_rules(Oven)
