"""Options that several share policies have in common: types, space sharing, placement, and which optimum."""

from __future__ import annotations

from typing import Literal

from eunomia.model.policy import Policy, also_needs

Types = Literal["aware", "agnostic"]
Placement = Literal["ignored", "sensitive"]
LinearPoint = Literal["any", "closest", "central"]
Point = Literal["any", "closest", "central", "interior"]
PAIRS = frozenset({"job_class", "packed_throughput"})  # columns of space sharing


def check_options(policy: Policy, *, interior: bool = False, pairs_inside: bool = False) -> None:
    """Check those of these options that the policy has, and add the columns that they need.

    For a `__post_init__`; needs a class without slots. `interior`: the policy offers that point; `pairs_inside`: under
    space sharing too. Raises ValueError for an unknown choice, and for two choices that exclude each other.
    """
    types, point = getattr(policy, "types", "aware"), getattr(policy, "point", "any")
    space_sharing, placement = getattr(policy, "space_sharing", False), getattr(policy, "placement", "ignored")
    check_types(types)
    check_reference(getattr(policy, "reference_type", ""), types)
    if not isinstance(space_sharing, bool):
        raise ValueError(f"space_sharing is {space_sharing!r}; it is true or false")
    if space_sharing and types != "aware":
        raise ValueError("space_sharing=true and types=agnostic: pairs are chosen by their speeds; leave types out")
    if placement not in ("ignored", "sensitive"):
        raise ValueError(f"placement is {placement!r}; it is 'ignored' or 'sensitive'")
    if placement == "sensitive" and space_sharing:
        raise ValueError("placement=sensitive and space_sharing=true: speeds of spread pairs are not known; take one")
    if point not in ("any", "closest", "central", *(["interior"] if interior else [])):
        last = ", 'central' or 'interior'" if interior else " or 'central'"
        raise ValueError(f"point is {point!r}; it is 'any', 'closest' (fewest moves){last}")
    if space_sharing and point != "any" and not (pairs_inside and point == "interior"):
        others = ", and 'interior'" if pairs_inside else " only"
        raise ValueError(f"point={point} and space_sharing=true: pairs have the point 'any'{others}; leave one out")
    also_needs(policy, PAIRS if space_sharing else ())
    also_needs(policy, {"spread_throughput", "topology"} if placement == "sensitive" else ())
    also_needs(policy, {"on_type"} if point == "closest" else ())


def check_reference(reference: str, types: str) -> None:
    """Raise ValueError for a reference type that is not a name, or that no speed is taken from."""
    if not isinstance(reference, str):
        raise ValueError(f"reference_type is {reference!r}; it is the name of an accelerator type, such as 'v100'")
    if reference and types != "agnostic":
        raise ValueError(f"reference_type={reference} needs types=agnostic: else every type has its own speed")


def check_types(types: str) -> None:
    """Raise ValueError for a spelling that is not one of `Types`."""
    if types not in ("aware", "agnostic"):
        raise ValueError(f"types is {types!r}; it is 'aware' (speeds as believed) or 'agnostic' (all types alike)")
