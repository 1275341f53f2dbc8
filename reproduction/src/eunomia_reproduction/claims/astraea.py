"""Claims of Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for Multi-tenant GPU Clusters", TPDS 2022."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import AheadUnderSeeds, All, Bound

SOURCE, SEEDS = "TPDS 2022", 10
BLIND, SHARING = ("Tiresias", "Themis"), ("FIFO", "static quotas")


def _beside(rival: str, quantity: str) -> Row:
    return Row("astraea", f"ASTRAEA beside {rival}", quantity)


CLAIMS = (
    Claim(
        words="ASTRAEA serves the worst-off tenant no worse than FIFO, static quotas, Tiresias and Themis",
        source=SOURCE,
        statement=All(tuple(
            AheadUnderSeeds(of=_beside(rival, "seeds ahead"), seeds=SEEDS, published="not behind")
            for rival in (*SHARING, *BLIND)
        )),
        note="a seed is another part of the trace; the published slice of it has changes that are not documented",
    ),
    Claim(
        words="ASTRAEA's mean JCT is no longer than that of FIFO and static quotas",
        source=SOURCE,
        statement=All(tuple(Bound(of=_beside(rival, "jct_mean"), most=1.0) for rival in SHARING)),
        published="no longer",
    ),
    Claim(
        words="ASTRAEA's mean JCT is no longer than that of Tiresias and Themis",
        source=SOURCE,
        statement=All(tuple(Bound(of=_beside(rival, "jct_mean"), most=1.0) for rival in BLIND)),
        published="no longer",
        note="beside Tiresias alone it is not decided; both ignore the owners of jobs",
    ),
)  # fmt: skip
