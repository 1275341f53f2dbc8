"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

LEAST_PART = 3  # letters of a word that is looked for within names
_WORD = re.compile(r"[^a-z0-9]+")
LISTED = 12  # names listed when none is similar; the rest are counted


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the most similar valid name, or a list of valid names."""
    names = sorted(set(choices))
    if hint := similar(word, names):
        return hint
    if not names:
        return "there are no valid names here"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"valid names: {', '.join(names[:LISTED])}{more}"


def similar(word: str, choices: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the most similar valid name; "" if none is."""
    names = sorted(set(choices))
    by_folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    if near:
        return f"did you mean {by_folded[near[0]]!r}?"
    parts = [name for name in names if len(word) >= LEAST_PART and word.casefold() in _WORD.split(name.casefold())]
    return f"did you mean {' or '.join(repr(name) for name in parts[:LISTED])}?" if parts else ""
