"""Claims of Themis: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Cause, Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import AheadUnderSeeds, All, Bound, Equals
from eunomia_reproduction.expected import kept_seeds

SOURCE, ABSTRACT = "NSDI 2020, section 8", "NSDI 2020, abstract"
RIVALS = ("SRSF", "SRTF", "Tiresias", "Gandiva", "SLAQ", "Optimus")
IN_ORDER = f"in the order {', '.join(RIVALS)}"
WORKLOADS = {
    "w1": ("searches by HyperDrive", "1.3 against 1.75 to 3.95"),
    "w2": ("wide gangs, network-bound", "2.15 against 2.35 to 4.25"),
}
WORLDS = ("rigid", "elastic")
READINGS = {
    "share": "T_id as in its words, alone on a private part",
    "work": "T_id by its printed formula",
    "longest": "T_id as N times the app alone on all accelerators",
}
SHRINKS = "rivals shrink trials to a few accelerators; where no policy may, Themis has the lowest"
FAIRER, CHEAPER = 2.25, 1.05


def lowest(work: str, world: str, ideal: str) -> All:
    """Say that Themis, going by a reading, has no larger worst ρ by it than any of six rivals."""
    seeds = max(kept_seeds(f"themis-{work}"), default=1)
    return All(tuple(
        AheadUnderSeeds(of=Row(f"themis-{work}", f"{work}, {world}: Themis not behind {rival}", "seeds", ideal),
                        seeds=seeds, published="lowest")
        for rival in RIVALS
    ))  # fmt: skip


def fairer(work: str, world: str, ideal: str) -> All:
    """Say that each rival's worst ρ is at least 2.25 times that of Themis, by the reading that it goes by."""
    return All(tuple(Bound(of=_beside(work, world, rival, f"rho_{ideal}_max"), least=FAIRER) for rival in RIVALS))


def cheaper(work: str, world: str, ideal: str) -> All:
    """Say that each rival holds at least 5 % more accelerator-hours than Themis that goes by the reading."""
    return All(tuple(Bound(of=_beside(work, world, rival, "cost_usd", ideal), least=CHEAPER) for rival in RIVALS))


def _beside(work: str, world: str, rival: str, quantity: str, x: str = "") -> Row:
    return Row(f"themis-{work}", f"{work}, {world}: {rival} ÷ Themis", quantity, x)


def _more(series: str, quantity: str, x: float) -> Row:
    return Row("themis-more", series, quantity, x)


CLAIMS = (
    *(
        Claim(
            words=f"Themis has the lowest worst ρ of seven policies, {kind}, {world} trials, {reading}",
            source=SOURCE,
            statement=lowest(work, world, ideal),
            published=published,
            cause=Cause(SHRINKS, lowest(work, "rigid", ideal)) if (world, ideal) == ("elastic", "share") else None,
            note=IN_ORDER,
        )
        for work, (kind, published) in WORKLOADS.items()
        for world in WORLDS
        for ideal, reading in READINGS.items()
    ),
    *(
        Claim(
            words=f"Themis improves fairness by more than 2.25 times, {kind}",
            source=ABSTRACT,
            statement=fairer(work, "elastic", "work"),
            note=f"elastic trials, printed formula; worst ρ, rival ÷ Themis {IN_ORDER}",
        )
        for work, (kind, _) in WORKLOADS.items()
    ),
    *(
        Claim(
            words=f"Themis' rivals need 5 % to 250 % more accelerator-hours, {kind}",
            source=ABSTRACT,
            statement=cheaper(work, "elastic", "work"),
            note=f"elastic trials, printed formula; rival ÷ Themis {IN_ORDER}",
        )
        for work, (kind, _) in WORKLOADS.items()
    ),
    *(
        Claim(
            words=f"Themis' worst ρ at f = 0, 0.8 and 1, {WORKLOADS[work][0]}",
            source=SOURCE,
            statement=All(tuple(
                Equals(of=Row("themis-sweep", f"{work}: leases of 1200 s", "rho_share_max", f), to=rho)
                for f, rho in ((0.0, 9.8), (0.8, 3.8), (1.0, 4.8))
            )),
            note="T_id as on a private part",
        )
        for work in WORKLOADS
    ),
    *(
        Claim(
            words=f"an app that says that what it wins helps it 3 or 10 times as much finishes no sooner ({bids})",
            source=SOURCE,
            statement=All(tuple(
                Bound(of=_more(f"liar: {bids}", "time of the liar ÷ its honest time", lie), least=1.0)
                for lie in (3.0, 10.0)
            )),
            published="later",
        )
        for bids in ("empty=infinite, lease", "empty=finite")
    ),
    Claim(
        words="bids that are wrong by up to 20 % change the worst ρ by 10 % at most",
        source=SOURCE,
        statement=Bound(of=_more("bid error ÷ none", "rho_share_max", 0.2), least=0.9, most=1.1),
        published="about 10 %",
        note="published number from memory",
    ),
    Claim(
        words="where all apps are network-bound Tiresias needs more accelerator-hours than Themis, Gandiva too",
        source=SOURCE,
        statement=All(tuple(
            Bound(of=_more(f"network-bound: {rival} ÷ Themis", "cost_usd", 1.0), least=1.0)
            for rival in ("Tiresias", "Gandiva")
        )),
        published="more",
        note="rigid trials",
    ),
)  # fmt: skip
