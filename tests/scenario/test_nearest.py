"""A misspelt name is answered with the nearest valid one."""

from __future__ import annotations

import pytest

from eunomia.model.spelling_suggestions import nearest


@pytest.mark.parametrize(
    ("word", "choices", "answer"),
    [
        ("fifp", ["las", "fifo"], "did you mean 'fifo'?"),
        ("FIFO", ["las", "fifo"], "did you mean 'fifo'?"),
        ("v100", ["V100", "K80"], "did you mean 'V100'?"),
        ("zzz", ["las", "fifo"], "valid names: fifo, las"),
        ("zzz", list("abcdefghijklmno"), "valid names: a, b, c, d, e, f, g, h, i, j, k, l and 3 more"),
        ("zzz", [], "there are no valid names here"),
    ],
)
def test_the_answer_is_the_nearest_name_or_the_list(word: str, choices: list[str], answer: str) -> None:
    assert nearest(word, choices) == answer
