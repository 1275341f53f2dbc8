"""Eunomia: a scheduler for deep-learning accelerator clusters that people share.

`simulate` runs a scenario and returns a `Result`; `solve` asks a policy once about a problem and returns a `Solution`.
Everything else is in the rooms below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eunomia.experiment import Result as Result
    from eunomia.experiment import simulate as simulate
    from eunomia.solution import AllocationProblem as AllocationProblem
    from eunomia.solution import Solution as Solution
    from eunomia.solution import solve as solve

__version__ = "0.1.0"
__all__ = ["AllocationProblem", "Result", "Solution", "__version__", "simulate", "solve"]


def __getattr__(name: str) -> Any:
    """Load the rest when it is first asked for, so that `import eunomia` costs nothing."""
    if name in ("Result", "simulate"):
        from eunomia import experiment

        return getattr(experiment, name)
    if name in ("AllocationProblem", "Solution", "solve"):
        from eunomia import solution

        return getattr(solution, name)
    raise AttributeError(f"module 'eunomia' has no attribute {name!r}")
