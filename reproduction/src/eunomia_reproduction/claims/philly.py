"""Claims of M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters", ATC 2019, on Philly."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Ratio, Row
from eunomia_reproduction.claims.statements import All, Bound, Equals, RowsWithin

SOURCE = "ATC 2019"
HOUR = "from the trace, quotas by weight, relaxed after an hour, preemption from 90 %"
FRAGMENTED = (("2-4", 0.59), ("5-8", 0.74), (">8", 0.98))


def _idle(size: str) -> Row:
    return Row("philly-tables", f"Table 2 {HOUR}: tries beside enough idle accelerators", "tries", size)


def _longest(where: str) -> Row:
    return Row("philly-tables", f"Figure 4 {HOUR}: {where}", "wait_longest", "5-8")


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
        note="lengths are those of the public trace, of whose passed jobs one in a hundred has 70 % of their time",
    ),
    Claim(
        words="why Philly's gangs of 2-4, 5-8 and more wait: for fragmentation (Table 2)",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row("philly-tables", "Table 2 at Philly's load: tries for fragmentation", "tries", size), to=part)
            for size, part in FRAGMENTED
        )),
        published="59, 74, 98 % of the delays",
        note="by the rule of quotas, which were not published",
    ),
    Claim(
        words="the same, by what needs no quotas: tries beside enough idle accelerators (Table 2)",
        source=SOURCE,
        statement=All(tuple(Equals(of=_idle(size), to=part) for size, part in FRAGMENTED)),
        published="59, 74, 98 % of the delays",
        note="three weeks of the trace; 14 tries a level are the one number chosen, beside 3 and 30",
    ),
    Claim(
        words="fragmentation is 80 % of all waiting: tries of all gangs beside enough idle accelerators",
        source=f"{SOURCE}, section 3",
        statement=Equals(of=_idle("all gangs"), to=0.80),
        note="the same play",
    ),
    Claim(
        words="jobs of 5 to 8 wait longer for one machine than those that start on several: longest waits (Figure 4)",
        source=SOURCE,
        statement=Bound(of=Ratio(_longest("on the fewest machines"), _longest("on more")), least=1.0),
        published="longer, 88 times",
        note="the same play, in which a gang spreads only after it has waited",
    ),
    Claim(
        words="a pool for first runs saves starts of whole gangs",
        source=f"{SOURCE}, section 5",
        statement=Bound(of=Row("philly-pool", "a pool for gangs ÷ no pool", "starts"), most=1.0),
        published="fewer",
    ),
)  # fmt: skip
