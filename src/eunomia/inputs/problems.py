"""Problems of an input: where, what, and how to fix it.

Every reader collects all problems of its input, so that one run shows them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, islice, zip_longest

SHOWN = 20  # most problems that a message lists; the rest are counted
ALSO = 5  # further places of equal problems that one line names
_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong at one place. In a TOML file `row` is the line and `column` the key."""

    file: str
    row: int | None = None  # 1-based line of the file, the header being line 1
    column: str | None = None
    value: str | None = None  # as written in the file
    rule: str  # rule that the value breaks
    fix: str  # how to fix it

    @property
    def kind(self) -> tuple[str, str | None, str, str]:
        """What problems at several places have in common: all but row, value and quoted names."""
        return self.file, self.column, _QUOTED.sub("''", self.rule), _QUOTED.sub("''", self.fix)

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}:{self.row}"
        column = "" if self.column is None else f" {self.column}"
        value = ":" * bool(column) if self.value is None else f" is {self.value!r}:"
        return f"{place}:{column}{value} {self.rule}; {self.fix}"


class InvalidInput(ValueError):
    """Input that cannot be used. Nothing was changed."""

    def __init__(self, problems: list[Problem] | tuple[Problem, ...], count: int | None = None):
        self.problems = _sample(problems)
        self.count = len(problems) if count is None else count
        super().__init__(str(self))

    def __str__(self) -> str:
        more, kinds = self.count - len(self.problems), _by_kind(self.problems)
        if len(kinds) == 1:  # all that is not kept is of this kind
            return f"{kinds[0][0]}{_also(kinds[0][1:], more)}"
        lines = [f"{same[0]}{_also(same[1:])}" for same in kinds]
        return "\n".join([*lines, f"… and {more} more"] if more > 0 else lines)

    def as_dict(self) -> dict[str, object]:
        """Return the JSON that every command prints with `--json`."""
        return {"error": {"count": self.count, "problems": [asdict(p) for p in self.problems]}}


def _by_kind(problems: Sequence[Problem]) -> list[list[Problem]]:
    """Return problems of one kind together, the kinds in order of their first."""
    found: dict[object, list[Problem]] = {}
    for problem in problems:
        found.setdefault(problem.kind, []).append(problem)
    return list(found.values())


def _sample(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return at most `SHOWN` problems, of every kind the first ones, in order: many of one kind hide no other."""
    if len(problems) <= SHOWN:
        return tuple(problems)
    places = _by_kind(problems)
    taken = islice(filter(None, chain.from_iterable(zip_longest(*places))), SHOWN)
    chosen = {id(problem) for problem in taken}
    return tuple(problem for problem in problems if id(problem) in chosen)


def _also(others: Sequence[Problem], not_kept: int = 0) -> str:
    """Return where else a problem is: ` (also in rows 4, 5 and 17 more)`; `not_kept` more are only counted."""
    if not others:
        return f" (and {not_kept} more of this kind)" if not_kept > 0 else ""
    rows = [str(one.row) for one in others if one.row is not None]
    values = [repr(one.value) for one in others if one.value is not None]
    names = [name for one in others for name in _QUOTED.findall(one.rule)[:1]]
    what, places = next(
        (found for found in (("in rows", rows), ("for", values), ("for", names)) if len(found[1]) == len(others)),
        ("", []),
    )
    more = len(others) + max(0, not_kept) - min(len(places), ALSO)
    if not places:
        return f" (and {more} more of this kind)"
    return f" (also {what} {', '.join(places[:ALSO])}{f' and {more} more' if more > 0 else ''})"


@dataclass(slots=True)
class Problems:
    """Collects problems: stores the first `SHOWN` of each kind, for as many kinds, and counts the rest."""

    file: str
    count: int = 0
    kept: list[Problem] = field(default_factory=list)
    _by_kind: dict[object, int] = field(default_factory=dict)

    def add(
        self, rule: str, fix: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> None:
        """Add one problem; `value` is shown as written."""
        self.count += 1
        shown = None if value is None else str(value)
        problem = Problem(file=self.file, row=row, column=column, value=shown, rule=rule, fix=fix)
        same = self._by_kind.get(problem.kind, 0)
        if same < SHOWN and (same or len(self._by_kind) < SHOWN):
            self._by_kind[problem.kind] = same + 1
            self.kept.append(problem)

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` if there are problems."""
        if self.count:
            raise InvalidInput(self.kept, self.count)


def refused(
    file: str, column: str | None, value: object, rule: str, fix: str, *, row: int | None = None
) -> InvalidInput:
    """Return the error for one problem; `value` is shown as written."""
    shown = None if value is None else str(value)
    return InvalidInput([Problem(file=file, row=row, column=column, value=shown, rule=rule, fix=fix)])


class Together:
    """Collects the problems of several checks of one command, so that one message has them all."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._count = 0

    @contextmanager
    def check(self) -> Iterator[None]:
        """Keep the problems of a block of code instead of raising them."""
        try:
            yield
        except InvalidInput as error:
            self._problems += error.problems
            self._count += error.count

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` if there are problems."""
        if self._problems:
            raise InvalidInput(self._problems, self._count)
