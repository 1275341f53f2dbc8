"""Reasons of failures on Philly, and times to failure.

M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019, Table 7
(reasons) and Table 6 (final status). Categories: IF infrastructure, AE the framework, U the user.
"""

from __future__ import annotations

from typing import NamedTuple


class FailureReason(NamedTuple):
    """One row of the table. Times are minutes from a trial's start to its failure."""

    name: str
    category: str
    trials: int
    jobs: int
    p50_min: float
    p90_min: float
    p95_min: float
    trials_by_size: tuple[int, int, int]  # of gangs of 1, of 2 to 4, of more


REASONS = (
    FailureReason("CPU out of memory", "AE,U", 12076, 2803, 13.45, 17.73, 33.97, (11465, 235, 376)),
    FailureReason("Incorrect inputs", "IF,U", 9690, 4936, 1.87, 404.83, 2095.73, (5844, 2638, 1208)),
    FailureReason("Semantic error", "IF,U", 2943, 2049, 2.72, 376.00, 1436.88, (1603, 494, 846)),
    FailureReason("Core dump", "AE,U", 2912, 1784, 0.85, 72.75, 431.65, (1936, 496, 480)),
    FailureReason("Invalid mem access", "U", 2602, 1235, 1.03, 403.50, 1357.38, (712, 774, 1116)),
    FailureReason("Model ckpt error", "IF", 1995, 948, 181.67, 3728.93, 8196.02, (743, 384, 868)),
    FailureReason("CUDA failure", "AE", 1484, 571, 1.32, 19.87, 82.17, (133, 1153, 198)),
    FailureReason("Syntax error", "IF,U", 1132, 883, 0.58, 5.02, 12.00, (780, 184, 168)),
    FailureReason("Traceback from crash", "IF,AE,U", 777, 271, 1.02, 894.33, 1394.07, (356, 277, 144)),
    FailureReason("MPI error", "IF", 634, 166, 1.62, 3015.27, 5143.98, (456, 54, 124)),
    FailureReason("GPU out of memory", "AE", 487, 261, 18.53, 353.62, 2740.28, (237, 70, 180)),
    FailureReason("MPI runtime failure", "IF", 478, 420, 1389.48, 13778.60, 18090.88, (240, 141, 97)),
    FailureReason("Permission error", "U", 299, 151, 1.00, 8.15, 15.85, (56, 202, 41)),
    FailureReason("Import error", "IF,U", 148, 148, 0.67, 4.58, 10.73, (108, 30, 10)),
    FailureReason("Job preempted", "IF", 147, 95, 559.08, 2682.85, 5892.23, (25, 95, 27)),
    FailureReason("CUDA init failed", "AE", 141, 69, 1.08, 2.18, 4.63, (16, 66, 59)),
    FailureReason("Model diverged", "U", 84, 30, 1.48, 44.37, 76.53, (78, 5, 1)),
    FailureReason("CUDA ver. mismatch", "AE", 49, 49, 0.83, 1.65, 1.67, (1, 1, 47)),
    FailureReason("GPU ECC error", "AE", 10, 10, 26.82, 671.92, 2035.02, (1, 5, 4)),
    FailureReason("Output node error", "U", 3, 3, 0.85, 0.95, 0.95, (3, 0, 0)),
    FailureReason("Cannot load libs", "AE", 1, 1, 0.12, 0.12, 0.12, (1, 0, 0)),
    FailureReason("No signature", "", 1684, 698, 1.87, 28.00, 95.17, (1235, 294, 155)),
)
UNSUCCESSFUL = 16_568 / 96_260  # of all jobs, Table 6
KILLED = 12_996 / 96_260
