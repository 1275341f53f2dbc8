"""A few texts for many rows."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.coded_texts import CodedTexts


def test_rows_have_the_text_of_their_code_and_those_below_0_none() -> None:
    texts = CodedTexts(np.array([1, -1, 0, 1]), ("no seats", "not its turn"))
    assert dict(texts) == {0: "not its turn", 2: "no seats", 3: "not its turn"}
    assert len(texts) == 3 and 1 not in texts and 4 not in texts and -1 not in texts
    with pytest.raises(ValueError, match="code 2 has no text; there are 2"):
        CodedTexts(np.array([2]), ("no seats", "not its turn"))
