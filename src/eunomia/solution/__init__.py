"""One decision without a simulation: a problem is read and checked, a policy is asked, its answer is told."""

from __future__ import annotations

from eunomia.solution.answer import Solution
from eunomia.solution.auctions.awards import Awards
from eunomia.solution.building import problem_of
from eunomia.solution.decision import solve
from eunomia.solution.problem import AllocationProblem
from eunomia.solution.reading import read_problem
from eunomia.solution.writing import SUFFIXES, write_solution

__all__ = [
    "SUFFIXES",
    "AllocationProblem",
    "Awards",
    "Solution",
    "problem_of",
    "read_problem",
    "solve",
    "write_solution",
]
