"""What a policy may say: shares, an order, or grants, each naming its candidates sparsely."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eunomia.model.arrays import NO_INTS, Array, Floats, Ints
from eunomia.model.certificate import Certificate

Misfit = Literal["skip", "stop", "reserve"]
ANYWHERE, ONE_MACHINE = -1, 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Candidates: what could run. Named by the answer, one entry a candidate; rows of the view it answers."""

    job: Ints  # (row,)
    type: Ints  # (row,)
    partner: Ints | None = None  # (row,) second job on the same accelerators, -1 = none; left out: none has one
    shape: Ints | None = None  # (row,) 0 = as asked; left out: all as asked
    within: Ints | None = None  # (row,) ANYWHERE or ONE_MACHINE (the fewest machines if none is big enough)

    def __len__(self) -> int:
        return len(self.job)

    def filled(self) -> tuple[Ints, Ints, Ints]:
        """Return partner, shape and within with what was left out filled in, each (row,)."""
        n = len(self.job)
        return (
            np.full(n, -1) if self.partner is None else self.partner,
            np.zeros(n, dtype=np.int64) if self.shape is None else self.shape,
            np.full(n, ANYWHERE) if self.within is None else self.within,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the three doors have in common. Job numbers are rows of the view that was asked about."""

    again_at: float = field(default=math.inf, kw_only=True)  # ask again then at the latest
    memory: Mapping[str, Array] = field(default_factory=dict, kw_only=True)  # comes back in the next view
    refuse: Mapping[int, str] = field(default_factory=dict, kw_only=True)  # job -> reason; never one that ran
    why: Mapping[int, str] = field(default_factory=dict, kw_only=True)  # job -> why it waits
    late: tuple[int, ...] = field(default=(), kw_only=True)  # jobs whose deadlines cannot be met beside the others'
    certificate: Certificate | None = field(default=None, kw_only=True)  # of an optimised answer


@dataclass(frozen=True, slots=True)
class Shares(Answer):
    """What share of time each should get.

    x is (job, type), or (row,) with `rows`; `fill` lets spare time go to candidates with no share.
    """

    x: Floats
    rows: Rows | None = None
    fill: bool = True


@dataclass(frozen=True, slots=True)
class Order(Answer):
    """Who is next: best first; several rows of one job are its preferences and stand together.

    A gang that does not fit is skipped, stops the pass, or has seats kept for it while others may run only where
    they do not delay it ("reserve").
    """

    rows: Rows
    misfit: Misfit = "skip"


@dataclass(frozen=True, slots=True)
class Grants(Answer):
    """Who sits where: changes only. A job that is not named keeps its seats while its lease lasts."""

    rows: Rows
    row: Ints  # (seat,) entry of `rows` that gets the seat
    device: Ints  # (seat,)
    until: Floats  # (row,) end of the lease; nan = as the mechanism says
    stop: Ints = field(default_factory=lambda: NO_INTS)  # (k,) jobs to stop before their lease ends


class InvalidAnswer(ValueError):
    """A policy's answer that cannot be carried out whole; it names the policy's mistake."""
