"""Which failures are worth another try, by their reason.

Reasons that lie in what a job is (its inputs, its code, the memory that it asks for) come again whenever it is run;
what its surroundings did to it may not. Philly tried all of them a fixed number of times.

Reference: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC
2019, sections 4.2 and 5. Which reasons stand here is this project's reading of them.
"""

from __future__ import annotations

from eunomia.failures.classifier import CATEGORY, classify

RECURRING = frozenset({"Incorrect inputs", "Syntax error", "Semantic error", "Import error", "CPU out of memory"})
TRANSIENT = frozenset({"MPI runtime failure", "Model ckpt error", "GPU ECC error", "Job preempted"})


def comes_again(reason: str) -> bool:
    """Say whether a job that failed for this would fail again.

    `reason` is what the world told: a name of Table 7, or words of a log. What is unknown may be tried again.
    """
    name = reason if reason in CATEGORY else classify(reason).reason
    return name in RECURRING
