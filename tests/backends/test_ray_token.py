"""A Ray cluster that refuses the token of the service is named as such, whatever Ray says last."""

from __future__ import annotations

import pytest

from eunomia.backends.ray.client import TOKEN_REFUSED, _cause

LAST = "ConnectionError: Failed to connect to Ray cluster"


@pytest.mark.parametrize(
    "line",
    [
        "grpc status: UNAUTHENTICATED, message: Invalid token",
        "ray.exceptions.AuthenticationError: the token is missing or not that of the cluster",
        "RuntimeError: invalid auth token provided",
    ],
)
def test_a_refused_token_is_the_cause_though_the_last_line_is_another(line: str) -> None:
    found = _cause(["INFO starting", line, LAST, ""])
    assert found.startswith(TOKEN_REFUSED) and line in found and "RAY_AUTH_TOKEN_PATH" in found


def test_other_failures_are_named_by_the_last_line() -> None:
    assert _cause(["INFO token file read", LAST, " "]) == LAST
    assert _cause([]) == ""
