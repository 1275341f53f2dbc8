"""A few texts for many rows, looked up on demand: why each of thousands of jobs waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from eunomia.model.arrays import Ints


class CodedTexts(Mapping[int, str]):
    """Maps rows to texts: `code` (row,) has the place of each row's text in `texts`; negative = it has none.

    Raises ValueError for a code without a text.
    """

    def __init__(self, code: Ints, texts: tuple[str, ...]):
        if code.max(initial=-1) >= len(texts):
            raise ValueError(f"code {code.max()} has no text; there are {len(texts)}")
        self.code, self.texts = code, texts

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self.code) or self.code[row] < 0:
            raise KeyError(row)
        return self.texts[int(self.code[row])]

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.code >= 0).tolist())

    def __len__(self) -> int:
        return int((self.code >= 0).sum())
