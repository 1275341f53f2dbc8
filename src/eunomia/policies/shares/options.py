"""Options that several share policies have in common: types, space sharing, placement, and which optimum."""

from __future__ import annotations

from typing import Annotated, Literal

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.policy import Policy, also_needs

Types = Annotated[Literal["aware", "agnostic"], "'aware' (speeds as believed) or 'agnostic' (all types alike)"]
Placement = Annotated[Literal["ignored", "sensitive"], "'ignored' or 'sensitive'"]
LinearPoint = Annotated[Literal["any", "closest", "central"], "'any', 'closest' (fewest moves) or 'central'"]
Point = Annotated[
    Literal["any", "closest", "central", "interior"], "'any', 'closest' (fewest moves), 'central' or 'interior'"
]
Reference = Annotated[str, "the name of an accelerator type, such as 'v100'"]
PAIRS = frozenset({"job_class", "packed_throughput"})  # columns of space sharing


def check_options(policy: Policy, *, pairs_inside: bool = False) -> None:
    """Check the fields of a policy that has some of these options, and add the columns that they need.

    For a `__post_init__`; needs a class without slots. `pairs_inside`: the policy offers the interior point under space
    sharing too. Raises ValueError for a wrong value, and for two choices that exclude each other.
    """
    check_fields(policy)
    types, point = getattr(policy, "types", "aware"), getattr(policy, "point", "any")
    space_sharing, placement = getattr(policy, "space_sharing", False), getattr(policy, "placement", "ignored")
    if (reference := getattr(policy, "reference_type", "")) and types != "agnostic":
        raise ValueError(f"reference_type={reference} needs types=agnostic: else every type has its own speed")
    if space_sharing and types != "aware":
        raise ValueError("space_sharing=true and types=agnostic: pairs are chosen by their speeds; leave types out")
    if space_sharing and point != "any" and not (pairs_inside and point == "interior"):
        others = ", and 'interior'" if pairs_inside else " only"
        raise ValueError(f"point={point} and space_sharing=true: pairs have the point 'any'{others}; leave one out")
    also_needs(policy, PAIRS if space_sharing else ())
    if placement == "sensitive":
        also_needs(policy, {"spread_throughput", "topology", *(["packed_spread_throughput"] if space_sharing else [])})
    also_needs(policy, {"on_type"} if point == "closest" else ())
