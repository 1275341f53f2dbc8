"""Claims of Themis: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import AheadUnderSeeds, All, Equals

SOURCE, SEEDS = "NSDI 2020, section 8", 10
RIVALS = ("SRSF", "SRTF", "Tiresias", "Gandiva", "SLAQ", "Optimus")


def _lowest(work: str, rivals: tuple[str, ...]) -> All:
    return All(tuple(
        AheadUnderSeeds(of=Row(f"themis-{work}", f"{work}: Themis not behind {rival}", "seeds"), seeds=SEEDS,
                        published="lowest")
        for rival in rivals
    ))  # fmt: skip


CLAIMS = (
    Claim(
        words="Themis has the lowest worst ρ of seven policies, searches by HyperDrive",
        source=SOURCE,
        statement=_lowest("w1", RIVALS),
        published="1.3 against 1.75 to 3.95",
        note="in the order SRSF, SRTF, Tiresias, Gandiva, SLAQ, Optimus",
    ),
    Claim(
        words="Themis has the lowest worst ρ of seven policies, wide gangs, network-bound",
        source=SOURCE,
        statement=_lowest("w2", RIVALS),
        published="2.15 against 2.35 to 4.25",
        note="in the same order",
    ),
    Claim(
        words="Themis' worst ρ at f = 0, 0.8 and 1",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row("themis-sweep", "w1, leases of 1200 s", "rho_themis_max", f), to=rho)
            for f, rho in ((0.0, 9.8), (0.8, 3.8), (1.0, 4.8))
        )),
    ),
)  # fmt: skip
