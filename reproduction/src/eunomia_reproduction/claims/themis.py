"""Claims of Themis: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Ratio, Row
from eunomia_reproduction.claims.statements import AheadUnderSeeds, All, Bound, Equals
from eunomia_reproduction.expected import kept_seeds

SOURCE = "NSDI 2020, section 8"
RIVALS = ("SRSF", "SRTF", "Tiresias", "Gandiva", "SLAQ", "Optimus")
WORKLOADS = {
    "w1": ("searches by HyperDrive", "1.3 against 1.75 to 3.95"),
    "w2": ("wide gangs, network-bound", "2.15 against 2.35 to 4.25"),
}
READINGS = {"share": "T_id as in its words, alone on a private part", "work": "T_id by its printed formula"}


def _lowest(work: str, world: str, ideal: str) -> Claim:
    seeds = max(kept_seeds(f"themis-{work}"), default=1)
    kind, published = WORKLOADS[work]
    parts = tuple(
        AheadUnderSeeds(of=Row(f"themis-{work}", f"{work}, {world}: Themis not behind {rival}", "seeds", ideal),
                        seeds=seeds, published="lowest")
        for rival in RIVALS
    )  # fmt: skip
    return Claim(
        words=f"Themis has the lowest worst ρ of seven policies, {kind}, {world} trials, {READINGS[ideal]}",
        source=SOURCE,
        statement=All(parts),
        published=published,
        note=f"in the order {', '.join(RIVALS)}",
    )


def _cheaper(work: str) -> Claim:
    cost = {name: Row(f"themis-{work}", f"{work}, elastic: {name}", "cost_usd") for name in ("Themis", *RIVALS)}
    return Claim(
        words=f"Themis' rivals need 5 % to 250 % more accelerator-hours, {WORKLOADS[work][0]}",
        source="NSDI 2020, abstract",
        statement=All(tuple(Bound(of=Ratio(cost[name], cost["Themis"]), least=1.05) for name in RIVALS)),
        note=f"elastic trials; rival ÷ Themis in the order {', '.join(RIVALS)}",
    )


CLAIMS = (
    *(_lowest(work, world, ideal) for work in WORKLOADS for world in ("rigid", "elastic") for ideal in READINGS),
    *(_cheaper(work) for work in WORKLOADS),
    *(
        Claim(
            words=f"Themis' worst ρ at f = 0, 0.8 and 1, {WORKLOADS[work][0]}",
            source=SOURCE,
            statement=All(
                tuple(
                    Equals(of=Row("themis-sweep", f"{work}: leases of 1200 s", "rho_share_max", f), to=rho)
                    for f, rho in ((0.0, 9.8), (0.8, 3.8), (1.0, 4.8))
                )
            ),
            note="T_id as on a private part",
        )
        for work in WORKLOADS
    ),
)
