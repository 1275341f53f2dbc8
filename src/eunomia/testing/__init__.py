"""Published contract tests: a suite that checks any policy, used by subclassing one class.

    from eunomia.testing import PolicyContract

    class TestMine(PolicyContract):
        policy = Mine()

`eunomia.testing.small_worlds` has the small clusters and job mixes of the suite.
"""

from __future__ import annotations

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the contract suite runs under pytest, which is not installed: pip install pytest"
    ) from error

pytest.register_assert_rewrite("eunomia.testing.policy_contract")

from eunomia.testing.policy_contract import PolicyContract  # noqa: E402  (its asserts are rewritten on import)

__all__ = ["PolicyContract"]
