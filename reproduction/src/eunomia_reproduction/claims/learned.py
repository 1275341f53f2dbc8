"""Claims of schedulers that learn: Harmony, Symphony and Metis."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Cause, Claim
from eunomia_reproduction.claims.quantities import Ratio, Row, SeedRows
from eunomia_reproduction.claims.statements import TOLERANCE, All, Bound, Equals

HARMONY, SYMPHONY = "INFOCOM 2019", "ICML 2020"
METIS = "master's thesis, 2020"
TIME = "time of a kernel, ratio"
OVER = "mean JCT over that of load balancing"
PUBLISHED = "as published, from random weights"


def _over(other: str, which: str) -> Row:
    return Row("symphony", f"symphony ÷ {other}", f"{which} {TIME}")


def _trained(variant: str) -> SeedRows:
    return SeedRows("harmony-ablations", variant, OVER)


def _without(part: str) -> Claim:
    return Claim(
        words=f"without {part} Harmony's training gives a worse placement",
        source=HARMONY,
        statement=Bound(of=Ratio(_trained(f"the same without {part}"), _trained(PUBLISHED)), least=1.0),
        published="worse",
        note="three trainings each, from random weights",
    )


CLAIMS = (
    Claim(
        words="Harmony's mean JCT is 25 % below that of the better of packing and load balancing",
        source=HARMONY,
        statement=Bound(of=Row("harmony", "synthetic interference", OVER), most=0.75),
        note="the shipped model, which began with imitation",
    ),
    Claim(
        words="the same on Gavel's measured pairs",
        source=HARMONY,
        statement=Bound(of=Row("harmony", "Gavel's measured pairs", "mean JCT over that of Tetris"), most=0.75),
    ),
    Claim(
        words="as published, from random weights, Harmony is ahead of load balancing",
        source=HARMONY,
        statement=Bound(of=_trained(PUBLISHED), most=1.0),
        published="ahead",
        note="three trainings of 168 traces, at a rate of the actor that was chosen on traces kept for that",
    ),
    Claim(
        words="the same with four times the traces",
        source=HARMONY,
        statement=Bound(of=_trained("the same with four times the steps"), most=1.0),
        published="ahead",
        note="three trainings, each ahead",
    ),
    *(_without(part) for part in ("the value network", "exploration", "replay")),
    Claim(
        words="Symphony's kernels take less time than Sparrow's, median and p99",
        source=SYMPHONY,
        statement=All(tuple(Bound(of=_over("sparrow", which), most=1.0) for which in ("median", "p99"))),
        published="less",
    ),
    Claim(
        words="Symphony's kernels take less time than Graphene's, mean and p99",
        source=SYMPHONY,
        statement=All(tuple(Bound(of=_over("graphene", which), most=1.0) for which in ("mean", "p99"))),
        published="less",
    ),
    Claim(
        words="Symphony's kernels take 32 % less time than Paragon's, median and p99",
        source=SYMPHONY,
        statement=All(tuple(
            Equals(of=_over("paragon", which), to=0.68, no_difference=1.0) for which in ("median", "p99")
        )),
        cause=Cause(
            "the oracle of true loads itself is less than 32 % below Paragon here",
            All(tuple(
                Bound(of=Row("symphony", "oracle ÷ paragon", f"{which} {TIME}"), least=0.68 * (1 + TOLERANCE))
                for which in ("median", "p99")
            )),
        ),
    ),
    Claim(
        words="Symphony's p99 over that of the oracle",
        source=SYMPHONY,
        statement=Equals(of=_over("oracle", "p99"), to=1.06),
        note="the oracle knows all loads, not the future",
    ),
    Claim(
        words="samples of Symphony's black-box twin over its own, to come within 30 % of the oracle",
        source=SYMPHONY,
        statement=Equals(
            of=Row("symphony-samples", "black-box twin ÷ symphony, imitation", "iterations to 30% loss, ratio"),
            to=2.2,
            no_difference=1.0,
        ),
        cause=Cause(
            "30 % needs no belief in this world: Graphene, which has none, is within 30 % of the oracle",
            Bound(of=Row("symphony", "graphene ÷ oracle", f"mean {TIME}"), most=1.3),
        ),
        note="trained by imitation; by actor-critic, as published, neither is there after 400 iterations",
    ),
    Claim(
        words="Metis is sooner at 90 % quality than equal shares and FIFO",
        source=METIS,
        statement=All(tuple(
            Bound(of=Row("metis", f"metis ÷ {other}", "time to 90 % quality, ratio"), most=1.0)
            for other in ("drf", "fifo")
        )),
        published="sooner",
        note="so is the greedy rule that the network starts from and does not depart from, and so is SLAQ",
    ),
    Claim(
        words="Metis is sooner at 90 % quality than SLAQ",
        source=METIS,
        statement=Bound(of=Row("metis", "metis ÷ slaq", "time to 90 % quality, ratio"), most=0.99),
        published="sooner",
        note="not by training: the rule that the network starts from, SLAQ without a node for every job first, is as "
        "soon, and like it ends jobs later; no rule tried has more of the reward of the training",
    ),
)  # fmt: skip
