"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 12  # names listed when none is similar; the rest are counted


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the most similar valid name, or a list of valid names."""
    names = sorted(set(choices))
    by_folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_folded[near[0]]!r}?"
    if not names:
        return "there are no valid names here"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"valid names: {', '.join(names[:LISTED])}{more}"
