"""A published claim, what decides it, and what explains it where it does not come out."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.claims.statements import Finding, Statement, Verdict

WITH_CAUSE = ", with cause"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a number does not come out, and the rows of a run that show it: it is one only if `shown` is reproduced."""

    words: str
    shown: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A published claim in words, and the statement about kept rows that decides it."""

    words: str
    source: str  # where it was published
    statement: Statement
    published: str = ""  # in words, where the statement's own are not enough
    cause: Cause | None = None
    note: str = ""  # what differs from the published experiment

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows are needed, those of the cause included."""
        shown = self.cause.shown.experiments if self.cause else ()
        return tuple(dict.fromkeys((*self.statement.experiments, *shown)))


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what the kept rows say of it."""

    claim: Claim
    finding: Finding
    caused: bool  # the claim does not come out, and rows show why

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return f"{self.finding.verdict}{WITH_CAUSE if self.caused else ''}"

    @property
    def why(self) -> str:
        """The cause, if rows show it, and what differs."""
        cause = self.claim.cause.words if self.claim.cause and self.caused else ""
        return "; ".join(words for words in (cause, self.claim.note) if words)


def judge(claim: Claim, kept: KeptRows) -> Judged:
    """Decide a claim by kept rows. Raises InvalidInput when a row of a kept experiment is missing."""
    if any(name not in kept for name in claim.experiments):
        finding = Finding(claim.published or claim.statement.published, "–", "–", Verdict.NO_ROWS)
        return Judged(claim, finding, caused=False)
    finding = claim.statement.judge(kept)
    if claim.published:
        finding = Finding(claim.published, finding.ours, finding.interval, finding.verdict)
    missed = finding.verdict in (Verdict.DIRECTION, Verdict.NOT)
    caused = missed and claim.cause is not None and claim.cause.shown.judge(kept).verdict is Verdict.REPRODUCED
    return Judged(claim, finding, caused)
