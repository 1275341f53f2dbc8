"""What a policy promises of its answers, so that many need not be asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eunomia.model.rank import Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Promises of one policy with its parameters; they spare questions, and `eunomia.testing` checks them.

    The first is of grants, the others of an order.

    renews_leases: while no job waits, running jobs keep their seats.
    covers_all_jobs: names every job on every type that holds its gang, the fastest first, without partners, in the
        first shape, anywhere; refuses no job; asks at no set time while all jobs fit at once.
    jobs_independent: covers all jobs, skips what does not fit, and ranks two jobs alike whatever other jobs there are.
    lone_starts: where all jobs fit at once and one of them waits, the others keep their types and it gets its fastest
        type that has room, in its first shape, without a partner; asks at no set time then. It remembers of earlier
        views at most the `service_at_last_ask`. Only gangs whose model has a tensor larger than the part `spread_up_to`
        of all its parameters are consolidated on as few machines as they need.
    rank: covers all jobs and ranks them by this alone, then by submission; asks again when a running job falls behind a
        waiting one by it, and else at no set time; if not `jobs_independent`, a gang that does not fit stops the queue.
    reserves: of a rank: instead of stopping the queue, the first gang that does not fit gets a reservation.
    """

    renews_leases: bool = False
    covers_all_jobs: bool = False
    jobs_independent: bool = False
    lone_starts: bool = False
    spread_up_to: float = math.inf
    rank: Rank | None = None
    reserves: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for promises that contradict each other."""
        narrower = [name for name in ("jobs_independent", "rank", "reserves") if getattr(self, name)]
        if narrower and not self.covers_all_jobs:
            raise ValueError(f"the promise {narrower[0]} holds only with covers_all_jobs: promise both, or neither")
