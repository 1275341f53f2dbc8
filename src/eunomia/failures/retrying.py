"""Which failures are worth another try, by their reason.

Reasons that lie in what a job is (its inputs, its code, the memory that it asks for) come again whenever it is run;
what its surroundings did to it may not. Philly tried all of them a fixed number of times. Where tenants are users, a
reason that is the user's (category U) and for which another job of theirs, or this one, failed before comes again too.

Reference: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC
2019, sections 4.2 and 5. Which reasons stand here is this project's reading of them.
"""

from __future__ import annotations

from eunomia.failures.classifier import CATEGORY, classify

RECURRING = frozenset({"Incorrect inputs", "Syntax error", "Semantic error", "Import error", "CPU out of memory"})
TRANSIENT = frozenset({"MPI runtime failure", "Model ckpt error", "GPU ECC error", "Job preempted"})
BY_MACHINE = frozenset({"GPU ECC error"})  # what lies in the machine, which is to be fixed
USER = "U"


class Adaptive:
    """Says of each failure of a run whether it comes again; `by_tenant` it remembers what tenants' jobs failed for."""

    def __init__(self, *, by_tenant: bool = False):
        self._by_tenant = by_tenant
        self._seen: set[tuple[str, str]] = set()  # tenant, reason

    def __call__(self, tenant: str, reason: str) -> bool:
        """Say whether a job of this tenant that failed for this would fail again. Every failure is told, in order.

        `reason` is what the world told: a name of Table 7, or words of a log. What is unknown may be tried again.
        """
        name = reason if reason in CATEGORY else classify(reason).reason
        if not (self._by_tenant and tenant and USER in CATEGORY[name].split(",")):
            return name in RECURRING
        before = (tenant, name) in self._seen
        self._seen.add((tenant, name))
        return before or name in RECURRING
