"""Claims of Tiresias: J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019."""

from __future__ import annotations

from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Ratio, Row, SeedRows
from eunomia_reproduction.claims.statements import All, Bound, Equals

SOURCE = "NSDI 2019, section 6"
EACH = ("Tiresias-L", "Tiresias-G")


def _jct(policy: str, load: str = "2") -> SeedRows:
    return SeedRows("tiresias", f"drawn, load {load}: {policy}", "jct_mean")


CLAIMS = (
    Claim(
        words="Tiresias' mean JCT is below that of consolidating FIFO",
        source=SOURCE,
        statement=All(tuple(Bound(of=Ratio(_jct(one), _jct("YARN-CS")), most=1.0) for one in EACH)),
        published="lower",
        note="twice the work that the cluster can do; the jobs of the testbed are not public",
    ),
    Claim(
        words="mean JCT of consolidating FIFO over that of Tiresias-L, and of Tiresias-G",
        source=SOURCE,
        statement=All(tuple(Equals(of=Ratio(_jct("YARN-CS"), _jct(one)), to=5.5, no_difference=1.0) for one in EACH)),
        note="the factor depends on the load: 1.5 at 0.9",
    ),
    Claim(
        words="95th percentile of JCT of the same",
        source=SOURCE,
        statement=All(tuple(
            Equals(of=Row("tiresias", f"drawn, load 2: YARN-CS ÷ {one}", "jct_p95"), to=1.6, no_difference=1.0)
            for one in EACH
        )),
    ),
    Claim(
        words="mean JCT of Tiresias-G over that of SRTF, which knows the durations",
        source=SOURCE,
        statement=Equals(of=Ratio(_jct("Tiresias-G"), _jct("SRTF")), to=1.0),
        published="about as good",
    ),
)  # fmt: skip
