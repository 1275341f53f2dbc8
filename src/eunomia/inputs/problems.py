"""Problems of an input: where, what, and how to fix it.

Every reader collects all problems of its input, so that one run shows them all.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

SHOWN = 20  # most problems that a message lists; the rest are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong at one place. In a TOML file `row` is the line and `column` the key."""

    file: str
    row: int | None = None  # 1-based line of the file, the header being line 1
    column: str | None = None
    value: str | None = None  # as written in the file
    rule: str  # rule that the value breaks
    fix: str  # how to fix it

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}:{self.row}"
        column = "" if self.column is None else f" {self.column}"
        value = ":" * bool(column) if self.value is None else f" is {self.value!r}:"
        return f"{place}:{column}{value} {self.rule}; {self.fix}"


class InvalidInput(ValueError):
    """Input that cannot be used. Nothing was changed."""

    def __init__(self, problems: list[Problem] | tuple[Problem, ...], count: int | None = None):
        self.problems = tuple(problems[:SHOWN])
        self.count = len(problems) if count is None else count
        super().__init__(str(self))

    def __str__(self) -> str:
        more = self.count - len(self.problems)
        lines = [str(problem) for problem in self.problems]
        return "\n".join([*lines, f"… and {more} more"] if more > 0 else lines)

    def as_dict(self) -> dict[str, object]:
        """Return the JSON that every command prints with `--json`."""
        return {"error": {"count": self.count, "problems": [asdict(p) for p in self.problems]}}


@dataclass(slots=True)
class Problems:
    """Collects problems: stores the first `SHOWN` and counts the rest."""

    file: str
    count: int = 0
    kept: list[Problem] = field(default_factory=list)

    def add(
        self, rule: str, fix: str, *, row: int | None = None, column: str | None = None, value: object = None
    ) -> None:
        """Add one problem; `value` is shown as written."""
        self.count += 1
        if len(self.kept) < SHOWN:
            shown = None if value is None else str(value)
            self.kept.append(Problem(file=self.file, row=row, column=column, value=shown, rule=rule, fix=fix))

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
