"""The nearest names: by spelling, else those with the word in them, else a list."""

from __future__ import annotations

import pytest

from eunomia.model.spelling_suggestions import nearest


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("jct_men_s", "did you mean 'jct_mean_s'?"),
        ("RHO", "did you mean 'jain_rho' or 'rho_themis_max'?"),
        ("ho", "valid names: end_s, jain_rho, jct_mean_s, rho_themis_max"),
        ("zzzz", "valid names: end_s, jain_rho, jct_mean_s, rho_themis_max"),
    ],
)
def test_a_word_is_answered_with_the_names_that_it_may_mean(word: str, hint: str) -> None:
    assert nearest(word, ["rho_themis_max", "jct_mean_s", "jain_rho", "end_s"]) == hint
