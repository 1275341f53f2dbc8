"""Checks of what a caller may say to a reader or a generator: by name, with a value of the right kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eunomia.model.nearest import nearest
from eunomia.model.problems import InvalidInput, Problems
from eunomia.traces.rules import Rule


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


def number(file: str, name: str, value: object, rule: Rule) -> None:
    """Raise InvalidInput unless the value is a number under `rule`; a whole one must be written as one."""
    kind = int if rule.whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or not rule.allows(value):
        raise refused(file, name, value, f"must be {rule.what}", rule.mend)


def refused(file: str, name: str | None, value: object, rule: str, mend: str) -> InvalidInput:
    """Return the error for one option."""
    problems = Problems(file)
    problems.add(rule, mend, column=name, value=value)
    return InvalidInput(problems.kept)
