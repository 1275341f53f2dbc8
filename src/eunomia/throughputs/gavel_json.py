"""Reads Gavel's throughput table.

    {type: {"('<job type>', <scale factor>)": {"null": rate, "('<partner>', <scale factor>)": [rate, partner's]}}}

Rates are steps/s over all accelerators of the gang; 0 = cannot run. Layout: D. Narayanan et al., "Heterogeneity-Aware
Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020, and its public table.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.json_text import read_json
from eunomia.inputs.problems import Problems
from eunomia.throughputs.long_table import RATE
from eunomia.throughputs.measured_table import Measurements, Pairs, Rates

ALONE = "null"
KEY = re.compile(r"""\((['"])(.+)\1, *([1-9][0-9]{0,5})\)""")
Gang = tuple[str, int]  # job type, scale factor


def read(path: Path, name: str) -> Measurements:
    """Return the measurements of a file, gzip or not. Raises InvalidInput with everything that is wrong with it."""
    problems = Problems(name)
    found = _Found(problems)
    for type_name, gangs in found.object_at(
        "the file", read_json(name, decoded(name, contents(path, name)), "give Gavel's throughput table")
    ).items():
        for key, partners in found.object_at(type_name, gangs).items():
            found.take_gang(type_name, key, partners)
    if not found.alone:
        problems.add("the table holds no throughput", 'give Gavel\'s JSON: {type: {key: {"null": rate}}}')
    problems.raise_if_any()
    return Measurements(name, found.alone, found.pairs)


@dataclass(slots=True)
class _Found:
    """What was found so far, and what was wrong with it."""

    problems: Problems
    alone: Rates = field(default_factory=dict)
    pairs: Pairs = field(default_factory=dict)

    def object_at(self, place: str, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.problems.add("an object is expected here", "give {key: value, …}", column=place, value=str(value)[:80])
        return {}

    def take_gang(self, type_name: str, key: str, partners: Any) -> None:
        gang, place = self._gang_of(key, type_name), f"{type_name}/{key}"
        if gang is None:
            return
        entries = self.object_at(place, partners)
        if ALONE not in entries:
            self.problems.add('the rate alone is missing: "null"', 'give {"null": rate}', column=place)
        for other, value in entries.items():
            column = f"{place}/{other}"
            if other != ALONE:
                self._take_pair(type_name, gang, self._gang_of(other, place), value, column)
            elif (rate := self._rate(value, column)) is not None:
                self.alone[type_name, *gang] = rate

    def _take_pair(self, type_name: str, gang: Gang, partner: Gang | None, value: Any, column: str) -> None:
        if partner is None:
            return
        if partner[1] != gang[1]:
            self.problems.add("gangs that share have one scale factor", "give equal scale factors", column=column)
        elif not isinstance(value, list) or len(value) != len(("first", "second")):
            rule = "a pair is [rate of the first, rate of the second]"
            self.problems.add(rule, "give two rates", column=column, value=str(value)[:80])
        else:
            rate, _ = (self._rate(each, column) for each in value)
            if rate is not None:
                self.pairs[type_name, gang[0], partner[0], gang[1]] = rate

    def _rate(self, value: Any, column: str) -> float | None:
        """Return a rate in steps/s; None, with the problem noted, if it is none."""
        with suppress(TypeError, ValueError):
            if not isinstance(value, bool) and "_" not in str(value) and RATE.allows(value):
                return float(value)
        self.problems.add(f"must be {RATE.what}", RATE.fix, column=column, value=str(value)[:80])
        return None

    def _gang_of(self, key: str, column: str) -> Gang | None:
        gang = gang_of(key)
        if gang is None:
            rule = "a key is ('<job type>', <scale factor>)"
            self.problems.add(rule, "write it as Gavel does", column=column, value=key[:80])
        return gang


@lru_cache(maxsize=4096)
def gang_of(key: str) -> Gang | None:
    """Return the job type and scale factor that a key names, or None if it is no such key."""
    match = KEY.fullmatch(key)
    return None if match is None else (match[2], int(match[3]))
