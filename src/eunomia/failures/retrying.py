"""Decides by the reason of a failure whether a retry can succeed.

Reasons in the job itself (its inputs, its code, the memory it requests) recur in every run; reasons in its environment
may not. Philly retried all failures a fixed number of times. Where tenants are users, a reason of the user (category U)
for which a job of the same user failed before recurs too.

Reference: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC
2019, sections 4.2 and 5. The classification of reasons is this project's.
"""

from __future__ import annotations

from eunomia.failures.classifier import CATEGORY, classify

RECURRING = frozenset({"Incorrect inputs", "Syntax error", "Semantic error", "Import error", "CPU out of memory"})
BY_MACHINE = frozenset({"GPU ECC error"})  # faults of the machine, which needs repair
USER = "U"


class Adaptive:
    """Predicts for each failure of a run whether it recurs; `by_tenant` uses earlier failures of the tenant."""

    def __init__(self, *, by_tenant: bool = False):
        self._by_tenant = by_tenant
        self._seen: set[tuple[str, str]] = set()  # tenant, reason

    def __call__(self, tenant: str, reason: str) -> bool:
        """Return whether a job of this tenant that failed for this would fail again; call it per failure, in order.

        `reason` is a name of Table 7, or text of a log. A failure with an unknown reason may be retried.
        """
        name = reason if reason in CATEGORY else classify(reason).reason
        if not (self._by_tenant and tenant and USER in CATEGORY[name].split(",")):
            return name in RECURRING
        failed_before = (tenant, name) in self._seen
        self._seen.add((tenant, name))
        return failed_before or name in RECURRING
