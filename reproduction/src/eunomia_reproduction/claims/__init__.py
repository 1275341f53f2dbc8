"""The published claims, and the rule by which kept rows decide each: the first table of docs/reproduce.md.

A file for each system declares its claims; another claim is an entry there, and `make docs` writes the table.
"""

from __future__ import annotations

from eunomia_reproduction.claims import (
    astraea,
    gavel,
    learned,
    philly,
    simulators,
    themis,
    themis_simulator,
    tiresias,
    tuning,
)
from eunomia_reproduction.claims.claim import Judged, judge
from eunomia_reproduction.claims.kept_rows import KeptRows

CLAIMS = tuple(
    claim
    for system in (simulators, gavel, tiresias, astraea, themis, themis_simulator, philly, learned, tuning)
    for claim in system.CLAIMS
)


def judge_all() -> list[Judged]:
    """Return every claim with its verdict, by the rows that ship with the package."""
    kept = KeptRows.shipped()
    return [judge(claim, kept) for claim in CLAIMS]
