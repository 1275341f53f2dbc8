"""Rules of the fields of a dataclass, declared in its annotations and checked from them.

    quantum: Annotated[float, Rule(above=0.0, what="a number of accelerator-seconds above 0")] = 3600.0
    types: Annotated[Literal["fastest", "agnostic"], "'fastest' (by belief) or 'agnostic' (drawn by seed)"] = "fastest"

A text says what the choices are; without one they are listed. Another annotation, such as a class of its own, is not
checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from eunomia.inputs.field_rules import Rule
from eunomia.model.spelling_suggestions import similar

_WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class FieldRule(NamedTuple):
    """What the annotation of one field says."""

    kinds: tuple[type, ...]  # of bool, int, float and str
    choices: tuple[str, ...]
    number: Rule | None
    optional: bool  # None is a value
    what: str  # what the value is, in messages

    def broken_by(self, value: object) -> str:
        """Return what the value is to be instead, in words; "" if it is right."""
        if (self.optional and value is None) or value in self.choices:
            return ""
        if not any(_is_of(value, kind) for kind in self.kinds):
            return self.what if self.number is None else _words(self.kinds)
        checked = self.number if isinstance(value, Real) else None
        return self.what if checked is not None and not checked.allows(cast(float, value)) else ""


class WrongValue(NamedTuple):
    """A value that its field does not take."""

    name: str
    value: object
    rule: str  # that the value breaks
    fix: str  # the nearest choice; "" if none is near

    @property
    def said(self) -> str:
        """The field, its value and the rule."""
        return f"{self.name} is {self.value!r}; it is {self.rule}"

    def __str__(self) -> str:
        return f"{self.said}: {self.fix}" if self.fix else self.said


@cache
def declared_rules(cls: type) -> dict[str, FieldRule]:
    """Return the rules that a class declares, by field; a field without one is left out."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: rule for name, hint in hints.items() if (rule := _rule(hint)) is not None}


def wrong_values(cls: type, values: Mapping[str, object]) -> list[WrongValue]:
    """Return what is wrong with values for fields of a class, in their order."""
    rules, wrong = declared_rules(cls), []
    for name, value in values.items():
        if name in rules and (said := rules[name].broken_by(value)):
            near = similar(value, rules[name].choices) if isinstance(value, str) else ""
            wrong.append(WrongValue(name, value, said, near))
    return wrong


def check_values(cls: type, values: Mapping[str, object]) -> None:
    """Raise ValueError with everything that is wrong with values for fields of a class."""
    if wrong := wrong_values(cls, values):
        raise ValueError("\n".join(map(str, wrong)))


def check_fields(instance: Any) -> None:
    """Check a dataclass by what its fields declare. For a `__post_init__`. Raises ValueError."""
    check_values(type(instance), {field.name: getattr(instance, field.name) for field in fields(instance)})


def _is_of(value: object, kind: type) -> bool:
    """Whether a value is of a basic type; a number of numpy is a number, and true is none."""
    if kind is bool or kind is str:
        return isinstance(value, kind)
    return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)


def _words(kinds: tuple[type, ...]) -> str:
    return " or ".join(_WORDS[kind] for kind in kinds)


def _rule(hint: Any) -> FieldRule | None:
    """Return the rule of an annotation; None for one that is not checked."""
    kinds, choices, number, what, optional = list[type](), list[str](), None, "", False
    parts = [hint]
    while parts:
        part = parts.pop()
        origin = get_origin(part)
        if origin is Annotated:
            base, *notes = get_args(part)
            parts.append(base)
            number = next((note for note in notes if isinstance(note, Rule)), number)
            what = next((note for note in notes if isinstance(note, str)), what)
        elif origin in (Union, UnionType):
            parts += reversed(get_args(part))
        elif origin is Literal:
            choices += get_args(part)
        elif part is NoneType:
            optional = True
        elif part in _WORDS:
            kinds.append(part)
        else:
            return None
    listed = f"one of {', '.join(map(str, choices))}" if choices else _words(tuple(kinds))
    return FieldRule(
        tuple(kinds), tuple(choices), number, optional, what or (listed if number is None else number.what)
    )
