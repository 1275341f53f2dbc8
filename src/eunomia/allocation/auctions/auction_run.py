"""An auction is held: the policy is asked once about a checked auction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.allocation.auctions.problem import AuctionPolicy
from eunomia.allocation.auctions.reading import auction_of
from eunomia.allocation.timing import timed
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.policy import Policy


def run_auction(policy: Policy, spelling: str, fields: Mapping[str, object], file: str) -> AuctionResult:
    """Return what an auction gives to each bidder. Raises InvalidInput for what is wrong with it."""
    problem = auction_of(fields, file)
    if not callable(getattr(policy, "auction", None)):
        rule, fix = f"{policy.info.name} takes no bids", "ask a policy that holds auctions, such as themis"
        raise InvalidInput([Problem(file=file, column="bids", rule=rule, fix=fix)])
    auctioneer = cast(AuctionPolicy, policy)
    found, seconds, compile_seconds = timed(policy, lambda: auctioneer.auction(problem.bids))
    return AuctionResult(
        policy=spelling, problem=problem, partial=found, seconds=seconds, compile_seconds=compile_seconds
    )  # fmt: skip
