"""Checks of what a caller may say to a reader or a generator: by name, with a value of the right kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.problems import Problems, refused
from eunomia.model.arrays import Bools
from eunomia.model.spelling_suggestions import nearest


def known(file: str, given: Mapping[str, object], names: Iterable[str]) -> None:
    """Raise InvalidInput for each given name that is not among `names`."""
    problems, names = Problems(file), list(names)
    for name in given:
        if name not in names:
            problems.add("this option is not known", nearest(name, names) if names else "leave it out", column=name)
    problems.raise_if_any()


def flag(file: str, name: str, value: object) -> None:
    """Raise InvalidInput unless the value is true or false."""
    if not isinstance(value, bool):
        raise refused(file, name, value, "must be true or false", "write it without quotes")


def one_of(file: str, name: str, value: object, words: Sequence[str]) -> None:
    """Raise InvalidInput unless the value is one of the words."""
    if value not in words:
        raise refused(file, name, value, f"must be one of {', '.join(words)}", nearest(str(value), words))


def chosen(file: str, name: str, value: object, column: Sequence[str]) -> Bools:
    """Return (row,): True where the column has the value; everywhere for "". Raises InvalidInput if nowhere."""
    if not isinstance(value, str):
        raise refused(file, name, value, "must be text", "write it in quotes")
    keep = np.array([not value or cell == value for cell in column], dtype=np.bool_)
    if not keep.any():
        raise refused(file, name, value, f"no row of the file has this {name}", nearest(value, set(column)))
    return keep


def number(file: str, name: str, value: object, rule: Rule) -> None:
    """Raise InvalidInput unless the value is a number under `rule`; a whole one must be written as one."""
    kind = int if rule.whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or not rule.allows(value):
        raise refused(file, name, value, f"must be {rule.what}", rule.fix)
