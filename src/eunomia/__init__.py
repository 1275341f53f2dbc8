"""Eunomia: a scheduler for deep-learning accelerator clusters that people share.

`simulate` runs a scenario and returns a `Result`; `solve` asks a policy once about a problem and returns a `Solution`.
Everything else is in the subpackages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eunomia.allocation import AllocationProblem, Solution, solve
    from eunomia.runs import Result, simulate

__version__ = "0.1.0"
__all__ = ["AllocationProblem", "Result", "Solution", "__version__", "simulate", "solve"]


def __getattr__(name: str) -> Any:
    """Import the other names on first use, so that `import eunomia` is cheap."""
    if name in ("Result", "simulate"):
        from eunomia import runs

        return getattr(runs, name)
    if name in ("AllocationProblem", "Solution", "solve"):
        from eunomia import allocation

        return getattr(allocation, name)
    raise AttributeError(f"module 'eunomia' has no attribute {name!r}")
