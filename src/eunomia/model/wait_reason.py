"""Why a job waits, as a value: a code, and the jobs and numbers that it is about.

Whatever finds a reason makes a `Reason`: a policy, a mechanism, the diagnosis of a state. Only what shows a reason
makes words of it, those of `model.wait_texts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Array, Bools, Ints
from eunomia.model.wait_texts import TEXTS

# How a text begins that a policy states, and the code that this stands for.
_STATED_CAUSES = {"fair share": "stated_quota", "quota:": "stated_quota", "fragmentation": "stated_fragmentation"}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one job waits.

    code: a key of `TEXTS`, which says what the other fields hold.
    jobs: ids that the words name; for a reader who may not see a job, its id is left out or replaced here.
    numbers: what the words count, in accelerators or seconds.
    names: types of accelerators and policies.
    text: what a policy, a user or a system said in its own words.

    Raises ValueError for an unknown code.
    """

    code: str
    jobs: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    text: str = ""

    def __post_init__(self) -> None:
        if self.code not in TEXTS:
            raise ValueError(f"{self.code!r} is no reason for waiting; those that there are stand in model.wait_texts")

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return TEXTS[self.code][0]

    def __str__(self) -> str:
        """Return the words."""
        text = TEXTS[self.code][1]
        return text(self) if callable(text) else text.format(*self.numbers, *self.names, text=self.text)

    @classmethod
    def of(cls, said: Reason | str) -> Reason:
        """Return a reason of an answer, in which a policy may also state a text that begins with its cause."""
        if isinstance(said, Reason):
            return said
        causes = (code for prefix, code in _STATED_CAUSES.items() if said.startswith(prefix))
        return cls(next(causes, "stated"), text=said)


@dataclass(frozen=True, slots=True, eq=False)
class WaitReasons(Mapping[int, Reason]):
    """Maps rows to reasons by one byte a row, for answers in which thousands of jobs have few reasons.

    code: (row,) uint8, 0 = it has none, k = `reasons[k - 1]`.

    Raises ValueError for other codes, and for a reason that is none.
    """

    code: Array  # (row,)
    reasons: tuple[Reason, ...]

    def __post_init__(self) -> None:
        code, reasons = self.code, self.reasons
        if code.ndim != 1 or code.dtype != np.uint8 or code.max(initial=0) > len(reasons):
            raise ValueError(f"codes of {code.dtype} up to {code.max(initial=0)} do not name {len(reasons)} reasons")
        if not all(isinstance(reason, Reason) for reason in reasons):
            raise ValueError(f"{reasons!r} are not all reasons")

    @classmethod
    def of(cls, jobs: int, rows: Ints | Bools, reason: Reason) -> Mapping[int, Reason]:
        """Return the one reason of these rows, of so many; nothing where there are none."""
        code = np.zeros(jobs, dtype=np.uint8)
        code[rows] = 1
        return cls(code, (reason,)) if code.any() else {}

    def __getitem__(self, row: int) -> Reason:
        if not 0 <= row < len(self.code) or self.code[row] == 0:
            raise KeyError(row)
        return self.reasons[int(self.code[row]) - 1]

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.code).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.code))
