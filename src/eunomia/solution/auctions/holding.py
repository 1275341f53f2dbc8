"""An auction is held: the policy is asked once about a checked auction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.policy import Policy
from eunomia.solution.auctions.awards import Awards
from eunomia.solution.auctions.problem import Auctioneer
from eunomia.solution.auctions.reading import auction_of
from eunomia.solution.timing import timed


def hold(policy: Policy, spelling: str, fields: Mapping[str, object], file: str) -> Awards:
    """Return what an auction gives to each bidder. Raises InvalidInput for what is wrong with it."""
    problem = auction_of(fields, file)
    if not callable(getattr(policy, "auction", None)):
        rule, mend = f"{policy.info.name} takes no bids", "ask a policy that holds auctions, such as themis"
        raise InvalidInput([Problem(file=file, column="bids", rule=rule, mend=mend)])
    auctioneer = cast(Auctioneer, policy)
    found, seconds, compile_seconds = timed(policy, lambda: auctioneer.auction(problem.bids))
    return Awards(
        policy=spelling, problem=problem, partial=found, seconds=seconds, compile_seconds=compile_seconds
    )  # fmt: skip
