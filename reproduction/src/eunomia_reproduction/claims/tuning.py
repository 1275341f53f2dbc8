"""Claims of configuration by Bayesian optimisation: a Chinese master's thesis of 2020, by its published summary."""

from __future__ import annotations

from eunomia_reproduction.bayesian import BEST_OTHER, OBJECTIVES
from eunomia_reproduction.claims.claim import Claim
from eunomia_reproduction.claims.quantities import Row
from eunomia_reproduction.claims.statements import All, Bound

RATIO = f"best found ÷ that of {BEST_OTHER}, geometric mean"

CLAIMS = (
    Claim(
        words="of four pairs a Gaussian process with expected improvement finds the best configurations",
        source="master's thesis, 2020, part A",
        statement=All(tuple(Bound(of=Row("bo", "gp-ei", RATIO, name), most=1.0) for name in OBJECTIVES)),
        published="best in every scenario",
        note="seven synthetic objectives of ours; ratio to the best of the other three pairs in each",
    ),
)
