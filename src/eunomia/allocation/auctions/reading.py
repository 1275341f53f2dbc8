"""Parses named fields into an auction, checks its bid tables, and reports everything that is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.allocation.auctions.parse_bids import RawBidTable, listed, parse_bids
from eunomia.allocation.auctions.problem import FIELDS, INDIVISIBLE, LEASE_S, LEAST_S, MOST_S, TABLES, AuctionProblem
from eunomia.allocation.fields import MOST, is_number, short
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.solvers.auction.bids import Bids

RHO_MAX = 1e6  # ρ of a bidder without accelerators, so that logarithms are finite
_SAME = 1e-12  # relative tolerance of values


@dataclass(frozen=True, slots=True)
class Offer:
    """The accelerators of each class that are offered; `plain` where they were given as one number."""

    classes: tuple[str, ...]
    capacity: Ints
    plain: bool


def bids_of(tables: Sequence[RawBidTable], offer: Offer, problems: Problems) -> Bids:
    """Return the rows of all bidders, each worth the logarithm of its value 1/ρ; report every problem."""
    takes, worths, sizes = [], [], []
    for table in tables:
        before = problems.count
        take = np.array(
            [_take(row[0], table.bidder, n, offer, problems) for n, row in enumerate(table.rows, 1)], dtype=np.int64
        ).reshape(-1, len(offer.classes))
        value = np.array([_value(row[1], row[2], table.bidder, n, problems) for n, row in enumerate(table.rows, 1)])
        if problems.count == before:
            _check(table, take, value, problems)
        takes.append(take)
        worths.append(_logarithms(value))
        sizes.append(len(take))
    bidder = np.repeat(np.arange(len(tables)), sizes)
    return Bids(bidder, np.concatenate(takes), np.concatenate(worths), offer.capacity)


def _take(raw: Any, bidder: str, row: int, offer: Offer, problems: Problems) -> list[int]:
    """Return what a row takes of each class: from a number, a list, or an object from classes to numbers."""
    column, classes = f"{bidder}.take", offer.classes
    if is_number(type(raw)):
        raw = [raw] if raw or len(classes) == 1 else [0] * len(classes)
    if isinstance(raw, dict):
        for name in raw:
            if str(name) not in classes:
                problems.add(
                    "names accelerators that are not offered", nearest(str(name), classes), row=row, column=column,
                    value=short(name),
                )  # fmt: skip
        raw = [raw.get(name, 0) for name in classes]
    if not isinstance(raw, list) or len(raw) != len(classes):
        rule = (
            f"must say how many of each class, of which {len(classes)} {'is' if len(classes) == 1 else 'are'} offered"
        )
        problems.add(rule, "give a number for each", row=row, column=column, value=short(raw))
        return [0] * len(classes)
    found = []
    for name, count, most in zip(classes, raw, offer.capacity.tolist(), strict=True):
        place = column if offer.plain else f"{column}.{name}"
        whole = _is_whole(count) and count >= 0
        if not whole:
            rule, fix = "must be a whole number, at least 0", "count accelerators"
            problems.add(rule, fix, row=row, column=place, value=short(count))
        elif count > most:
            rule = f"takes more than is offered, which is {most}"
            problems.add(rule, "leave the row out, or offer more", row=row, column=place, value=short(count))
        found.append(int(count) if whole and count <= most else 0)
    return found


def _is_whole(count: Any) -> bool:
    """Return whether `count` is a whole number, however large."""
    return is_number(type(count)) and (isinstance(count, int) or (math.isfinite(count) and count == int(count)))


def _value(raw: Any, is_rho: bool, bidder: str, row: int, problems: Problems) -> float:
    """Return the worth of a row: 1/ρ, at least 1/RHO_MAX, or the given value, at least 0."""
    column = f"{bidder}.{'rho' if is_rho else 'value'}"
    if is_rho and raw is None:
        return 1 / RHO_MAX
    good = is_number(type(raw)) and (raw > 0 if is_rho else 0 <= raw < math.inf)
    if not good:
        rule = "must be a number above 0" if is_rho else "must be a finite number, at least 0"
        fix = "give ρ; null = it has nothing" if is_rho else "give 1/ρ; 0 = it has nothing"
        problems.add(rule, fix, row=row, column=column, value=short(raw))
        return 1.0
    return 1 / min(float(raw), RHO_MAX) if is_rho else float(raw)


def _check(table: RawBidTable, take: Ints, value: Floats, problems: Problems) -> None:
    """Report a table without a row that takes nothing, duplicate takes, and values that fall."""
    name = table.bidder
    if take.any(axis=1).all():
        fix = "add a row that takes 0, with the rho or value of what the bidder has now"
        problems.add("has no row that takes nothing", fix, column=name)
    for row in range(len(take)):
        less = (take <= take[row]).all(axis=1)
        more = (take >= take[row]).all(axis=1)
        twin, dearer = less & more, less & ~more & (value * (1 - _SAME) > value[row])
        if twin[:row].any():
            first = int(np.argmax(twin)) + 1
            problems.add(f"takes the same as row {first}", "leave one of them out", row=row + 1, column=name)
        elif dearer.any():
            other = int(np.argmax(np.where(dearer, value, -1.0)))
            worth, by = table.rows[row][1], "rho" if table.rows[row][2] else "value"
            rule = f"is worth less than row {other + 1}, which takes no more ({short(table.rows[other][1])})"
            fix = "more accelerators may be left idle: give it at least that worth"
            problems.add(rule, fix, row=row + 1, column=f"{name}.{by}", value=short(worth))


def _logarithms(value: Floats) -> Floats:
    """Return ln V; a value of 0 counts as 1/RHO_MAX of 1, or of the bidder's least value where that is lower."""
    some = value[value > 0]
    least = min(1.0, float(some.min())) / RHO_MAX if len(some) else 1 / RHO_MAX
    return elementary.log(np.where(value > 0, value, least))


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
