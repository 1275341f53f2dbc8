"""Fields of names."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eunomia.allocation.number_fields import short
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Array


def read_texts(field: str, raw: object, size: int | None, problems: Problems, *, unique: bool = False) -> Array | None:
    """Return names as an array of texts, (size,); None after noting what is wrong. A size of None is any above 0."""
    before = problems.count
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind != "U" or raw.ndim != 1:
            problems.add(f"must be a list of texts, not {raw.dtype} of shape {raw.shape}", "save texts", column=field)
            return None
        cells = raw.tolist()
    elif isinstance(raw, list | tuple):
        cells = list(raw)
    else:
        problems.add("must be a list of texts", "write each name in quotes", column=field, value=short(raw))
        return None
    if len(cells) != size if size is not None else not cells:
        wanted = "at least one is needed" if size is None else f"there are {size}"
        problems.add(f"has {len(cells)} names, but {wanted}", "give one name for each", column=field)
    if set(map(type, cells)) - {str} or "" in cells:
        for i, cell in enumerate(cells):
            if not isinstance(cell, str) or not cell:
                problems.add("must be a text", "write a name in quotes", row=i + 1, column=field, value=short(cell))
    elif unique and len(set(cells)) < len(cells):
        _note_repeats(field, cells, problems)
    return np.array(cells) if problems.count == before else None


def _note_repeats(field: str, cells: list[str], problems: Problems) -> None:
    repeated = {name for name, n in Counter(cells).items() if n > 1}
    seen: set[str] = set()
    for i, cell in enumerate(cells):
        if cell in repeated and cell in seen:
            problems.add("a name stands once", "give it another name", row=i + 1, column=field, value=cell)
        seen.add(cell)
