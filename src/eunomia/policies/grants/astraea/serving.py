"""Phase 2: tenant by tenant, job by job: who gets seats, and which fresh leases end for a job that never ran.

    for each tenant u, for each of its jobs m in line:
        while m never ran, its budget is short and u has fresh leases:  the most over-served of them ends
        m sits down if h[u] + z[m] fits the budget of u and z[m] seats of a type that it wishes are free
        else it waits; if u has starving jobs left or lines are blocked, everybody behind it in u waits too

h accelerators that u holds.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Ints


@kernel()
def serve(
    size: Ints,
    first: Ints,
    wishes: Ints,
    never_ran: Bools,
    starving: Ints,
    free: Ints,
    held: Ints,
    budget: Ints,
    fresh_size: Ints,
    fresh_type: Ints,
    fresh_first: Ints,
    block: bool,
) -> tuple[Ints, Ints]:
    """Return the type on which each job of the line sits down, -1 = it waits, and by tenant how many fresh leases end.

    `wishes` (job, rank) are types, the best first, -1 = no more. `free` (type,) and `held` (tenant,) are used up. Fresh
    leases fresh_first[u] … are those of tenant u, the first to end first.
    """
    seated = np.full(len(size), -1)
    ended = np.zeros(len(held), dtype=np.int64)
    for u in range(len(held)):
        hungry, fresh = starving[u], fresh_first[u]
        for m in range(first[u], first[u + 1]):
            while never_ran[m] and held[u] + size[m] > budget[u] and fresh < fresh_first[u + 1]:
                held[u] -= fresh_size[fresh]
                free[fresh_type[fresh]] += fresh_size[fresh]
                fresh += 1
            if held[u] + size[m] <= budget[u]:
                for j in wishes[m]:
                    if j >= 0 and size[m] <= free[j]:
                        free[j] -= size[m]
                        held[u] += size[m]
                        seated[m] = j
                        break
            if seated[m] >= 0:
                hungry = max(hungry - 1, 0)
            elif hungry > 0 or block:
                break
        ended[u] = fresh - fresh_first[u]
    return seated, ended
