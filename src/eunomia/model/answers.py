"""Answers of a policy: shares, an order, or grants over the candidates that the answer lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eunomia.model.arrays import NO_INTS, Array, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.wait_reason import Reason

Misfit = Literal["skip", "stop", "reserve"]
ANYWHERE, ONE_MACHINE = -1, 0


@dataclass(frozen=True, slots=True)
class Rows:
    """Candidates, one entry each: a job on a type, perhaps with a partner; jobs and types are rows of the view.

    job, type: (row,) integers.
    partner: (row,) second job on the same accelerators, −1 = none; None: all −1.
    shape: (row,) which of the sizes that the gang may have, 0 = as submitted; None: all 0.
    within: (row,) ANYWHERE (−1) or ONE_MACHINE (0: the fewest machines if none is big enough); None: ANYWHERE.
    """

    job: Ints  # (row,)
    type: Ints  # (row,)
    partner: Ints | None = None  # (row,) second job on the same accelerators, -1 = none; None: all -1
    shape: Ints | None = None  # (row,) 0 = as submitted; None: all 0
    within: Ints | None = None  # (row,) ANYWHERE or ONE_MACHINE (the fewest machines if none is big enough)

    def __len__(self) -> int:
        return len(self.job)

    def filled(self) -> tuple[Ints, Ints, Ints]:
        """Return partner, shape and within, each (row,), with defaults where they are None."""
        n = len(self.job)
        return (
            np.full(n, -1) if self.partner is None else self.partner,
            np.zeros(n, dtype=np.int64) if self.shape is None else self.shape,
            np.full(n, ANYWHERE) if self.within is None else self.within,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Fields of all three answer types. Job numbers are rows of the view that is answered.

    again_at: latest time of the next ask, seconds since the run began; inf = only when jobs or machines change.
    memory: what `memory` of the next view holds; columns of `memory_columns` have one entry for each job.
    refuse: job → reason; only jobs that never ran.
    why: job → why it waits: a reason, or a text, which may begin with `fair share` or `fragmentation`.
    late: jobs whose deadlines cannot all be met.
    certificate: proof of an optimised answer.
    """

    again_at: float = field(default=math.inf, kw_only=True)  # latest time of the next ask
    memory: Mapping[str, Array] = field(default_factory=dict, kw_only=True)  # `memory` of the next view
    refuse: Mapping[int, str] = field(default_factory=dict, kw_only=True)  # job -> reason; only jobs that never ran
    why: Mapping[int, Reason | str] = field(default_factory=dict, kw_only=True)  # job -> why it waits
    late: tuple[int, ...] = field(default=(), kw_only=True)  # jobs whose deadlines cannot all be met
    certificate: Certificate | None = field(default=None, kw_only=True)  # of an optimised answer


@dataclass(frozen=True, slots=True)
class Shares(Answer):
    """The share of time of each candidate.

    x: (job, type), or (row,) with `rows`; between 0 and 1, a job's sum at most 1, within each type's capacity.
    rows: the candidates of a sparse x; None: every pair of job and type.
    fill: whether spare time may go to candidates without a share.
    """

    x: Floats
    rows: Rows | None = None
    fill: bool = True


@dataclass(frozen=True, slots=True)
class Order(Answer):
    """Candidates, best first; several rows of one job are adjacent and in order of its preference.

    rows: the candidates.
    misfit: a gang that does not fit is skipped ("skip"), stops the pass ("stop"), or gets a reservation: later gangs
        run only where they do not delay it ("reserve").
    """

    rows: Rows
    misfit: Misfit = "skip"


@dataclass(frozen=True, slots=True)
class Grants(Answer):
    """Changes of seats. A job without an entry keeps its seats until its lease ends.

    rows: the gangs that get seats.
    row: (seat,) entry of `rows` that gets the seat.
    device: (seat,) the accelerator, a row of the topology.
    until: (row,) end of the lease, seconds since the run began; nan = the mechanism decides.
    stop: (k,) jobs to stop before their lease ends.
    """

    rows: Rows
    row: Ints  # (seat,) entry of `rows` that gets the seat
    device: Ints  # (seat,)
    until: Floats  # (row,) end of the lease; nan = the mechanism decides
    stop: Ints = field(default_factory=lambda: NO_INTS)  # (k,) jobs to stop before their lease ends


class InvalidAnswer(ValueError):
    """A policy's answer that cannot be carried out: which rule it breaks, and what to change. Nothing was changed.

    `policy` is its name and `at` the moment of the ask in seconds; "" and nan where they are not known.
    """

    def __init__(self, rule: str, fix: str = "", policy: str = "", at: float = math.nan) -> None:
        super().__init__(rule, fix, policy, at)  # all of them, so that the error can be sent to another process
        self.rule, self.fix, self.policy, self.at = rule, fix, policy, at

    @property
    def place(self) -> str:
        """Which policy, and when."""
        when = "" if math.isnan(self.at) else f"at {self.at:,.9g} s"
        return " ".join(part for part in (f"policy {self.policy!r}" * bool(self.policy), when) if part)

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.rule}{f'; {self.fix}' if self.fix else ''}"
