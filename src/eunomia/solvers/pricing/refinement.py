"""From a box of prices to the few rows that decide them, box in box, until an exact program proves that all are right.

In a box most rows have a certain answer; they are settled, and a look at the others gives a smaller box. What few rows
are left are solved exactly, with prices held inside the last box. Whether boxes were wide enough is not trusted: where
the exact prices press against one, it is drawn anew around them, twice as wide, and the boxes after it as well.
Levels and totals are searched for in this way; what a box is of, and how rows are settled in it, they say themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from eunomia.solvers.program import NoOptimum

_WIDER = 2.0  # of a box that was missed

PartT = TypeVar("PartT", bound=Any)  # the rows open in `part.box`
RowsT = TypeVar("RowsT")  # what stands for the rows of a part
CentreT = TypeVar("CentreT")  # where prices seem to be
FoundT = TypeVar("FoundT")  # an optimum


class BoxesMissed(NoOptimum):
    """Prices have left their boxes again and again."""


class BoxSearch(ABC, Generic[PartT, RowsT, CentreT, FoundT]):
    """How one kind of program is searched for, and the search itself.

    A box has the relative half width `spread` that it is meant to have, and says of a centre: whether it `misses` one
    known to within a spread, that is, surely or too close to a side to tell; whether the centre `touches` a side beyond
    which others are possible, or lies beyond; and where it left the box, `nearest`.
    """

    @abstractmethod
    def merged(self, part: PartT) -> RowsT:
        """Return what stands for the rows of a part: themselves, or one for all that are alike."""

    @abstractmethod
    def done(self, part: PartT, rows: RowsT, before: RowsT | None) -> bool:
        """Return whether the exact program may take these rows, or the box left nearly as many as the one before."""

    @abstractmethod
    def look(self, part: PartT, rows: RowsT, attempt: int) -> tuple[PartT, CentreT, float] | None:
        """Return the part, where its prices seem to be, and how far off that may be; None where nothing is known."""

    @abstractmethod
    def box(self, centre: CentreT, spread: float, within: Any) -> Any:
        """Return the box of relative half width `spread` around a centre, cut off where it leaves the box `within`."""

    @abstractmethod
    def settle(self, part: PartT, box: Any) -> PartT:
        """Return a part without the rows whose answer is certain in the box; keep their answers."""

    @abstractmethod
    def finish(self, part: PartT) -> tuple[FoundT, CentreT | None]:
        """Return the optimum, and where its prices are if outside the box."""

    def refined(self, stack: list[PartT], tries: int) -> tuple[FoundT, PartT]:
        """Return the optimum and the last part, beginning with the parts on the stack, each in the one before.

        The first part is all rows, in a box that no price leaves. Raises BoxesMissed where prices have left boxes so
        many times.
        """
        for attempt in range(tries):
            met = self.descend(stack, attempt)
            if met is None:
                found, met = self.finish(stack[-1])
                if met is None:
                    return found, stack[-1]
            centre = stack[-1].box.nearest(met)
            while len(stack) > 2 and stack[-2].box.touches(centre):
                stack.pop()
            spread = min(_WIDER * stack.pop().box.spread, 1.0)
            stack.append(self.settle(stack[-1], self.box(centre, spread, stack[-1].box)))
        raise BoxesMissed(f"prices still leave their boxes after {tries} tries; check the data for ties of many rows")

    def descend(self, stack: list[PartT], attempt: int = 0) -> CentreT | None:
        """Put smaller and smaller parts on the stack until few rows are open, or no box helps.

        Returns a centre that is outside the last part's box, if one is met.
        """
        rows, before = self.merged(stack[-1]), None
        while not self.done(stack[-1], rows, before):
            seen = self.look(stack[-1], rows, attempt)
            if seen is None:
                return None
            stack[-1], centre, spread = seen
            if stack[-1].box.misses(centre, spread):
                return centre
            stack.append(self.settle(stack[-1], self.box(centre, spread, stack[-1].box)))
            before, rows = rows, self.merged(stack[-1])
        return None
