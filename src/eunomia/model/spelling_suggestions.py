"""How a misspelt name is answered: with the valid name that is nearest to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 12  # names shown when nothing is near; the rest are counted


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return what to say about a misspelt name: the nearest valid one, or the valid ones if none is near."""
    names = sorted(set(choices))
    by_folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_folded[near[0]]!r}?"
    if not names:
        return "there are no valid names here"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"valid names: {', '.join(names[:LISTED])}{more}"
