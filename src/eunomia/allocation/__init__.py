"""One decision without a simulation: read and check a problem, ask a policy, return its answer."""

from __future__ import annotations

from eunomia.allocation.answer import Solution
from eunomia.allocation.answer_files import SUFFIXES, write_solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.allocation.parse_problem import problem_of
from eunomia.allocation.problem import AllocationProblem
from eunomia.allocation.reading import read_problem
from eunomia.allocation.single_decision import solve

__all__ = [
    "SUFFIXES",
    "AllocationProblem",
    "AuctionResult",
    "Solution",
    "problem_of",
    "read_problem",
    "solve",
    "write_solution",
]
