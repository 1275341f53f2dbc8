"""Claims of Themis in the world of its authors' simulator."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Cause, Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import AheadUnderSeeds, All, Equals

NAME, SOURCE, DRAWS = "themis-simulator", "NSDI 2020, section 8", 10
RIVALS = ("SRSF", "SRTF", "Tiresias", "Gandiva", "SLAQ", "Optimus")


def _draws(series: str, published: str) -> AheadUnderSeeds:
    return AheadUnderSeeds(of=Row(NAME, series, "draws"), seeds=DRAWS, published=published)


def _lowest(quantity: str, workload: str) -> All:
    series = (f"{workload}: {rival} has a larger {quantity} than Themis" for rival in RIVALS)
    return All(tuple(_draws(one, "lowest") for one in series))


CLAIMS = (
    Claim(
        words="In the authors' simulator Themis' worst ρ is larger at f = 0 than at 0.8",
        source=SOURCE,
        statement=_draws("worst ρ is larger at f = 0 than at 0.8, leases of 20 min", "9.8 against 3.8"),
    ),
    Claim(
        words="the same, and larger at f = 1 than at 0.8",
        source=SOURCE,
        statement=_draws("worst ρ is larger at f = 1 than at 0.8, leases of 20 min", "4.8 against 3.8"),
    ),
    Claim(
        words="the same with leases of 5 minutes",
        source=SOURCE,
        statement=_draws("worst ρ is larger at f = 1 than at 0.8, leases of 5 min", "2.7 against 1.8"),
    ),
    Claim(
        words="the same: worst ρ at f = 0, 0.8 and 1",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row(NAME, "searches, Themis, leases of 20 min", "worst ρ", f), to=rho)
            for f, rho in ((0.0, 9.8), (0.8, 3.8), (1.0, 4.8))
        )),
    ),
    Claim(
        words="the same: more accelerator time at f = 1 than at 0.8",
        source=SOURCE,
        statement=_draws("more accelerator time at f = 1 than at 0.8", "about 2,600 h against 2,200"),
        cause=Cause(
            "the code has 1 − f, and accelerator time rises where all jobs bid, at f = 0",
            _draws("more accelerator time at f = 0 than at 0.8", "more"),
        ),
    ),
    Claim(
        words="the same: Themis has the lowest worst ρ of seven policies, searches in turn on 64 accelerators",
        source=SOURCE,
        statement=_lowest("worst ρ", "testbed"),
        published="1.3 against 1.75 to 3.95",
        note="in the order SRSF, SRTF, Tiresias, Gandiva, SLAQ, Optimus",
    ),
    Claim(
        words="the same, 21 searches at once on 32",
        source=SOURCE,
        statement=_lowest("worst ρ", "searches"),
        published="1.3 against 1.75 to 3.95",
        note="in the same order",
    ),
    Claim(
        words="the same: Themis needs the least accelerator time, searches in turn",
        source=SOURCE,
        statement=_lowest("accelerator time", "testbed"),
        published="5 % to 250 % more efficient",
        note="in the same order",
    ),
)  # fmt: skip
