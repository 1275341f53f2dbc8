"""What a reader of accounting found: lines left out, values assumed or missing, each with a count and an example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.accelerator_hours import NO_HOURS, AcceleratorHours, RowHours
from eunomia.traces.table import Trace

Kind: TypeAlias = Literal["left out", "missing", "assumed", "repaired"]
LONGEST_EXAMPLE = 240  # characters of a line that are repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFinding:
    """One kind of irregularity. `what` continues the count: "12 jobs have no account"."""

    kind: Kind
    count: int
    what: str
    file: str = ""
    line: int | None = None  # of the example
    example: str = ""
    hours: AcceleratorHours | None = None  # that the rows held; None = not known
    change: AcceleratorHours = NO_HOURS  # what it adds to the hours of the source, or takes away

    def __str__(self) -> str:
        return f"{self.count:,} {self.what}"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        place = {"file": self.file, "line": self.line, "example": self.example}
        hours = None if self.hours is None else self.hours.total
        return {"kind": self.kind, "count": self.count, "what": self.what, "accelerator_hours": hours, **place}


@dataclass(slots=True, kw_only=True)
class ImportFindings:
    """Collects findings about rows whose text is known only to their source.

    With `hours`, what each row held, a finding has the accelerator-hours of its rows.
    """

    source: RowSource
    kept: list[ImportFinding] = field(default_factory=list)
    hours: RowHours | None = None

    def add(
        self,
        kind: Kind,
        what: str,
        rows: Ints | Bools,
        *,
        held_by: Ints | Bools | None = None,
        change: AcceleratorHours | None = None,
    ) -> None:
        """Add a finding about these rows of the source, the first of them as the example; none for no rows.

        `held_by` are the rows whose hours it concerns, if others. `change` is what it adds to the hours of the source,
        negative for what it takes away; what is left out takes away its own hours.
        """
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if len(places):
            hours = None if self.hours is None else self.hours.of(places if held_by is None else held_by)
            if change is None and hours is not None and kind == "left out":
                change = -hours
            file, line, text = self.source.row(int(places[0]))
            self.add_line(kind, what, len(places), file, line, text, hours=hours, change=change)

    def add_line(
        self,
        kind: Kind,
        what: str,
        count: int,
        file: str,
        line: int | None,
        text: str,
        *,
        hours: AcceleratorHours | None = None,
        change: AcceleratorHours | None = None,
    ) -> None:
        """Add a finding with this example."""
        shown = text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "…"
        self.kept.append(
            ImportFinding(
                kind=kind,
                count=count,
                what=what,
                file=file,
                line=line,
                example=shown,
                hours=hours,
                change=NO_HOURS if change is None else change,
            )
        )

    def notes(self) -> tuple[str, ...]:
        """Return the findings as sentences."""
        return tuple(map(str, self.kept))


class RowSource:
    """Where rows come from; finds the text of a row for an example."""

    def row(self, m: int) -> tuple[str, int | None, str]:
        """Return file, line and text of a row."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """A trace read from accounting, the schedule as it was, and what the reader found. Axes: job, as in the trace."""

    trace: Trace
    started_s: Floats  # first start, counted like submitted_s; nan = not known
    ended_s: Floats  # last end; nan = still running, or not known
    ran_on: tuple[str, ...]  # accelerator type as the engine names it; "" = not named
    asked_for: tuple[str, ...]  # accelerator type that the request names; "" = any
    machines: tuple[tuple[str, ...], ...]  # names of the machines of the last run; () = not known
    findings: tuple[ImportFinding, ...]
    hours: AcceleratorHours | None = None  # of all rows of the source, by the types of `ran_on`; None = not added up
    columns: Mapping[str, str] = field(default_factory=dict)  # of the file, by field; {} = the format says which
    assumed: tuple[str, ...] = ()  # about the whole history, in sentences

    def take(self, keep: Ints) -> History:
        """Return the jobs at these positions, with the findings of all."""
        return History(
            trace=self.trace.take(keep),
            started_s=self.started_s[keep],
            ended_s=self.ended_s[keep],
            ran_on=pick(self.ran_on, keep),
            asked_for=pick(self.asked_for, keep),
            machines=tuple(self.machines[m] for m in keep.tolist()),
            findings=self.findings,
            hours=self.hours,
            columns=self.columns,
            assumed=self.assumed,
        )


def pick(words: Sequence[str], rows: Iterable[int] | Ints) -> tuple[str, ...]:
    """Return the words at these positions."""
    places = rows.tolist() if isinstance(rows, np.ndarray) else rows
    return tuple(map(words.__getitem__, places))
