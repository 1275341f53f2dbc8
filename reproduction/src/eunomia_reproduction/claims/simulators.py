"""Claims about other systems' simulators: that ours gives what they give, job by job."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.statements import RowsWithin

CLAIMS = (
    Claim(
        words="six other simulators, job by job: Tiresias, Blox, Helios, Pollux, Shockwave, ASTRAEA",
        source="their results",
        statement=RowsWithin("peers", what="rows"),
        note="Shockwave by its means",
    ),
)
