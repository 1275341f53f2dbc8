"""Parses the bid tables of a problem from any of three layouts; `auctions.reading` checks their content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eunomia.allocation.fields import short
from eunomia.inputs.problems import Problems
from eunomia.model.spelling_suggestions import nearest

_ROW = ("take", "rho", "value")
_BID = ("bidder", "rows", "values")
_ONE_LAYOUT = "give bids in one way: bids, values, or bidder with take and rho or value"


@dataclass(slots=True)
class RawBidTable:
    """The unchecked table of one bidder: (take, worth, whether the worth is a ρ) of each row."""

    bidder: str
    rows: list[tuple[Any, Any, bool]] = field(default_factory=list)


def parse_bids(fields: Mapping[str, object], problems: Problems) -> list[RawBidTable]:
    """Return the tables of all bidders in the order of the input; report problems of the layout."""
    plain = {name: listed(value) for name, value in fields.items()}
    layouts: list[str] = [name for name in ("bids", "values") if name in plain]
    layouts += ["take"] if {"bidder", "take"} & set(plain) else []
    if len(layouts) > 1:
        problems.add("is given beside another layout", _ONE_LAYOUT, column=layouts[1])
        return []
    tables = {"bids": _by_bidder, "values": _by_count, "take": _by_row}[layouts[0]](plain, problems)
    names = [table.bidder for table in tables]
    for place, name in enumerate(names):
        if name in names[:place]:
            problems.add(
                "a bidder has one table", "put its rows together", row=place + 1, column=layouts[0], value=name
            )
    if not tables and not problems.count:
        problems.add("names no bidder", "give the table of one bidder at least", column=layouts[0])
    return tables


def listed(value: object) -> Any:
    """Return an array as lists, other values as they are."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _by_bidder(fields: Mapping[str, Any], problems: Problems) -> list[RawBidTable]:
    """Read `bids`: a list of {bidder, rows} or {bidder, values}, or an object from names to rows or values."""
    bids = fields["bids"]
    if isinstance(bids, dict):
        bids = [{"bidder": name, **_table_of(rows)} for name, rows in bids.items()]
    if not isinstance(bids, list):
        problems.add(
            "must be a list of tables", 'write [{"bidder": "a", "rows": […]}]', column="bids", value=short(bids)
        )
        return []
    tables = []
    for place, bid in enumerate(bids):
        if not isinstance(bid, dict):
            problems.add(
                "must be an object", 'write {"bidder": "a", "rows": […]}', row=place + 1, column="bids",
                value=short(bid),
            )  # fmt: skip
            continue
        _check_fields(bid, _BID, f"bids[{place}]", problems)
        name = str(bid.get("bidder", place))
        if ("rows" in bid) == ("values" in bid):
            problems.add("has either rows or values", "give one of them", row=place + 1, column=f"bids.{name}")
            continue
        rows = _counted(bid["values"], name, problems) if "values" in bid else _rows(bid["rows"], name, problems)
        tables.append(RawBidTable(name, rows))
    return tables


def _table_of(rows: Any) -> dict[str, Any]:
    if isinstance(rows, dict):
        return rows
    numbers = isinstance(rows, list) and not any(isinstance(row, dict) for row in rows)
    return {"values" if numbers else "rows": rows}


def _by_count(fields: Mapping[str, Any], problems: Problems) -> list[RawBidTable]:
    """Read `values`: for each bidder the values of 0, 1, 2, … accelerators."""
    values, names = fields["values"], fields.get("bidders")
    if isinstance(values, dict):
        return [RawBidTable(str(name), _counted(row, str(name), problems)) for name, row in values.items()]
    if not isinstance(values, list):
        problems.add("must be a list of lists", "give one list for each bidder", column="values", value=short(values))
        return []
    if names is None:
        names = list(range(len(values)))
    if not isinstance(names, list) or len(names) != len(values):
        problems.add(f"must be {len(values)} names", "give one for each row of values", column="bidders")
        return []
    return [RawBidTable(str(name), _counted(row, str(name), problems)) for name, row in zip(names, values, strict=True)]


def _by_row(fields: Mapping[str, Any], problems: Problems) -> list[RawBidTable]:
    """Read the columns bidder, take, and rho or value, row by row."""
    worths = [name for name in ("rho", "value") if name in fields]
    if len(worths) != 1:
        problems.add("is given as rho or as value", "give one of the two", column="rho")
        return []
    columns = {name: fields.get(name) for name in ("bidder", "take", worths[0])}
    sizes = {name: len(column) if isinstance(column, list) else -1 for name, column in columns.items()}
    wrong = [name for name, size in sizes.items() if size < 0 or size != sizes["bidder"]]
    for name in wrong:
        problems.add("must be a list, as long as bidder", "give one entry for each row", column=name)
    names, tables = fields.get("bidders"), dict[str, RawBidTable]()
    for bidder, take, worth in zip(*columns.values(), strict=True) if not wrong else ():
        named = isinstance(names, list) and isinstance(bidder, int) and 0 <= bidder < len(names)
        name = str(names[bidder] if named else bidder)  # type: ignore[index]
        tables.setdefault(name, RawBidTable(name)).rows.append((take, worth, worths[0] == "rho"))
    return list(tables.values())


def _counted(values: Any, bidder: str, problems: Problems) -> list[tuple[Any, Any, bool]]:
    if not isinstance(values, list):
        problems.add("must be a list of numbers", "give the values of 0, 1, 2, …", column=f"values.{bidder}")
        return []
    return [(count, value, False) for count, value in enumerate(values)]


def _rows(rows: Any, bidder: str, problems: Problems) -> list[tuple[Any, Any, bool]]:
    if not isinstance(rows, list):
        problems.add("must be a list of rows", 'write [{"take": 1, "rho": 1.2}, …]', column=f"bids.{bidder}")
        return []
    found = []
    for place, row in enumerate(rows):
        if not isinstance(row, dict) or "take" not in row or ("rho" in row) == ("value" in row):
            rule = "a row has a take, and a rho or a value"
            problems.add(
                rule, 'write {"take": 1, "rho": 1.2}', row=place + 1, column=f"bids.{bidder}", value=short(row)
            )
            continue
        _check_fields(row, _ROW, f"bids.{bidder}", problems)
        found.append((row["take"], row.get("rho", row.get("value")), "rho" in row))
    return found


def _check_fields(record: Mapping[str, Any], names: Iterable[str], column: str, problems: Problems) -> None:
    for name in record:
        if name not in names:
            problems.add("there is no such field", nearest(str(name), names), column=f"{column}.{name}")
