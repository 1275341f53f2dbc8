"""Published contract tests: one suite for any policy and one for any world, each used by subclassing one class.

    from eunomia.testing import PolicyContract

    class TestMine(PolicyContract):
        policy = Mine()

    class TestMyWorld(WorldContract):
        def driver(self, folder, works):
            return MyDriver(folder, works)

`eunomia.testing.small_worlds` has the small clusters and job mixes of the suite.
"""

from __future__ import annotations

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the contract suite runs under pytest, which is not installed: pip install pytest"
    ) from error

pytest.register_assert_rewrite("eunomia.testing.policy_contract", "eunomia.testing.world_contract")

from eunomia.testing.policy_contract import PolicyContract  # noqa: E402  (its asserts are rewritten on import)
from eunomia.testing.process_driver import ProcessDriver  # noqa: E402
from eunomia.testing.world_contract import WorldContract  # noqa: E402
from eunomia.testing.world_driver import NotApplicable, Work, WorldDriver  # noqa: E402

__all__ = ["NotApplicable", "PolicyContract", "ProcessDriver", "Work", "WorldContract", "WorldDriver"]
