"""The kind of a job is one text in records, and that text is the kind again."""

from __future__ import annotations

import math

import pytest

from eunomia.model.job_kind import JobKind


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (JobKind(""), ""),
        (JobKind("lm"), "lm"),
        (JobKind("lm", ("v100", "a100")), "lm|v100,a100"),
        (JobKind("", ("cpu",)), "|cpu"),
        (JobKind("lm", (), 12.5), "lm||12.5"),
        (JobKind("lm", ("v100",), 8.0), "lm|v100|8"),
        (JobKind("a|b"), "a|b||"),
        (JobKind("a|b|", ("v100",), 4.0), "a|b||v100|4"),
    ],
)
def test_a_kind_is_a_text_and_the_text_is_the_kind(kind: JobKind, text: str) -> None:
    assert str(kind) == text
    found = JobKind.of(text)
    assert found[:2] == kind[:2]
    assert found.memory_gib == kind.memory_gib or (math.isnan(found.memory_gib) and math.isnan(kind.memory_gib))
