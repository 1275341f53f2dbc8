"""Parses named fields into an auction and reports everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eunomia.allocation.auctions.bid_tables import Offer, bids_of
from eunomia.allocation.auctions.parse_bids import listed, parse_bids
from eunomia.allocation.auctions.problem import FIELDS, INDIVISIBLE, LEASE_S, LEAST_S, MOST_S, TABLES, AuctionProblem
from eunomia.allocation.fields import MOST, is_number, short
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.model.arrays import Ints
from eunomia.model.spelling_suggestions import nearest


def is_auction(fields: Mapping[str, object]) -> bool:
    """Return whether `fields` describe an auction rather than an allocation of time."""
    return any(name in fields for name in TABLES)


def auction_of(fields: Mapping[str, object], file: str = "problem") -> AuctionProblem:
    """Return the auction that `fields` (lists or arrays) describe. Raises InvalidInput with every problem in `file`."""
    problems = Problems(file)
    fields = {"classes" if name == "types" and "classes" not in fields else name: x for name, x in fields.items()}
    for field in fields:
        if field not in FIELDS:
            problems.add("there is no such field", nearest(str(field), FIELDS), column=str(field))
    offer = _offer(fields, problems)
    tables = parse_bids(fields, problems)
    options = _options(fields, problems)
    if offer is None or not tables:
        raise InvalidInput(problems.kept, problems.count)
    bids = bids_of(tables, offer, problems)
    problems.raise_if_any()
    return AuctionProblem(
        classes=offer.classes, bidders=tuple(table.bidder for table in tables), bids=bids, plain=offer.plain, **options
    )


def _offer(fields: Mapping[str, Any], problems: Problems) -> Offer | None:
    """Return the offer from a number, a list, or an object from classes to numbers."""
    if "capacity" not in fields:
        problems.add("is missing", "give the accelerators that are offered, of each class", column="capacity")
        return None
    raw, names, before = listed(fields["capacity"]), listed(fields.get("classes")), problems.count
    plain = is_number(type(raw))
    if isinstance(raw, dict):
        names, raw = list(raw), list(raw.values())
    counts = [raw] if plain else raw
    if not isinstance(counts, list) or not counts:
        problems.add(
            "must be a number, or one for each class", "give 4, or [4, 2]", column="capacity", value=short(raw)
        )
        return None
    names = [str(k) for k in range(len(counts))] if names is None else names
    if not isinstance(names, list) or len(set(map(str, names))) != len(counts):
        problems.add(f"must be {len(counts)} different names", "give one for each capacity", column="classes")
        return None
    for name, count in zip(names, counts, strict=True):
        if not (is_number(type(count)) and 0 <= count <= MOST and count == int(count)):
            rule = f"must be a whole number, at least 0 and at most {MOST:,}"
            problems.add(rule, "count the accelerators of this class", column=f"capacity.{name}", value=short(count))
    if problems.count > before:
        return None
    capacity: Ints = np.array(counts, dtype=np.int64)
    if not capacity.any():
        problems.add("holds no accelerator", "say how many are offered", column="capacity")
        return None
    return Offer(tuple(map(str, names)), capacity, plain)


def _options(fields: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return how indivisible accelerators are treated, the seed and the lease."""
    mode, seed, lease_s = (
        listed(fields.get(*option)) for option in (("indivisible", "none"), ("seed", 0), ("lease_s", LEASE_S))
    )
    if mode not in INDIVISIBLE:
        fix = nearest(str(mode), INDIVISIBLE)
        problems.add("is no treatment", fix, column="indivisible", value=short(mode))
    if type(seed) is not int or not 0 <= seed < 2**63:
        problems.add("must be a whole number, at least 0", "leave it out for 0", column="seed", value=short(seed))
    if not is_number(type(lease_s)) or not LEAST_S <= lease_s <= MOST_S:
        problems.add(
            f"must be {LEAST_S:.0f} to {MOST_S:.0f} seconds",
            "leave it out for 20 minutes",
            column="lease_s",
            value=short(lease_s),
        )
    return {"indivisible": mode, "seed": seed, "lease_s": lease_s}
