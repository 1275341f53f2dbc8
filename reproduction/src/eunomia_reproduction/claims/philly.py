"""Claims of M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters", ATC 2019, on Philly."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import All, Equals, RowsWithin

SOURCE = "ATC 2019"

CLAIMS = (
    Claim(
        words="how Philly's jobs end, and why they fail (Tables 6 and 7)",
        source=SOURCE,
        statement=RowsWithin("philly-tables", (
            "Table 6", "Table 7: run time to failure", "Table 7: trials by size",
        ), what="checked rows"),
    ),
    Claim(
        words="how much accelerator time they took, by how they ended (Table 6)",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row("philly-tables", "Table 6", "accelerator time", how), to=part)
            for how, part in (("passed", 0.445), ("killed", 0.377), ("unsuccessful", 0.178))
        )),
        published="44.5, 37.7, 17.8 % passed, killed, failed",
    ),
    Claim(
        words="why Philly's gangs of 2-4, 5-8 and more wait: for fragmentation (Table 2)",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row("philly-tables", "Table 2 at Philly's load: tries for fragmentation", "tries", size), to=part)
            for size, part in (("2-4", 0.59), ("5-8", 0.74), (">8", 0.98))
        )),
        published="59, 74, 98 % of the delays",
    ),
)  # fmt: skip
