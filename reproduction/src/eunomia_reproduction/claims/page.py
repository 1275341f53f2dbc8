"""The claims as a table of Markdown, and as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

from eunomia_reproduction.claims.claim import Judged
from eunomia_reproduction.expected import kept_seeds

BEGIN, END = "<!-- made by make docs: do not edit from here -->", "<!-- to here -->"
TITLES = ("claim", "published", "ours", "95 % interval", "verdict", "why, and what differs", "`eunomia reproduce …`")


def commands(one: Judged) -> list[str]:
    """Return what is typed after `eunomia reproduce` to measure the rows again, without --out."""
    found = []
    for name in one.claim.statement.experiments:
        seeds = max(kept_seeds(name), default=1)
        found.append(f"{name} --seeds {seeds}" if seeds > 1 else name)
    return found


def with_claims(page: str, judged: Sequence[Judged]) -> str:
    """Return the page with its table of claims made anew. Raises ValueError where its marks are missing."""
    return with_part(page, BEGIN, END, markdown(judged))


def with_part(page: str, begin: str, end: str, part: str) -> str:
    """Return the page with what is between two marks made anew. Raises ValueError where the marks are missing."""
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"docs/reproduce.md lost the marks {begin!r} and {end!r}; put them back")
    return f"{before}{begin}\n\n{part}\n\n{end}{after}"


def markdown(judged: Sequence[Judged]) -> str:
    """Return a row for each claim, and how many have which verdict."""
    rows = [TITLES, ("---",) * len(TITLES)]
    for one in judged:
        source = f"{one.claim.words} ({one.claim.source})"
        ran = ", ".join(f"`{command}`" for command in commands(one))
        found = one.finding
        rows.append((source, found.published, found.ours, found.interval, f"**{one.verdict}**", one.why, ran))
    return "\n".join(["| " + " | ".join(row) + " |" for row in rows] + ["", summary(judged)])


def summary(judged: Sequence[Judged]) -> str:
    """Return how many claims have which verdict."""
    counts = Counter(one.verdict for one in judged)
    word = "claim" if len(judged) == 1 else "claims"
    return f"{len(judged)} {word}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "."


def lines(judged: Sequence[Judged], width: int) -> list[str]:
    """Return the claims for a terminal of this width."""
    wide = max(len(one.verdict) for one in judged)
    found = []
    for one in judged:
        interval = f" ({one.finding.interval})" if one.finding.interval != "–" else ""
        text = f"{one.claim.words}: {one.finding.ours}{interval}; published {one.finding.published}"
        said = f"{text}. {one.why}" if one.why else text
        head = f"{one.verdict:{wide}}  "
        found += wrap(
            f"{said} [{', '.join(commands(one))}]", width, initial_indent=head, subsequent_indent=" " * len(head)
        )
    return [*found, summary(judged)]


def as_dicts(judged: Sequence[Judged]) -> list[dict[str, str | list[str]]]:
    """Return the form that is printed with `--json`."""
    return [
        {
            "claim": one.claim.words,
            "source": one.claim.source,
            "published": one.finding.published,
            "ours": one.finding.ours,
            "interval": one.finding.interval,
            "verdict": one.verdict,
            "why": one.why,
            "commands": commands(one),
        }
        for one in judged
    ]
