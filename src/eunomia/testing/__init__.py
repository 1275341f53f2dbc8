"""Published contract tests: one suite for any policy and one for any world, each used by subclassing one class.

    from eunomia.testing import PolicyContract

    class TestMine(PolicyContract):
        policy = Mine()

    class TestMyWorld(WorldContract):
        def driver(self, folder, works):
            return MyDriver(folder, works)

`eunomia.testing.small_worlds` has the small clusters and job mixes of the suite, `policy_rules` the rules of policies,
which `eunomia check` runs without pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eunomia.testing.policy_contract import PolicyContract
    from eunomia.testing.process_driver import ProcessDriver
    from eunomia.testing.world_contract import WorldContract
    from eunomia.testing.world_driver import NotApplicable, Work, WorldDriver

__all__ = ["NotApplicable", "PolicyContract", "ProcessDriver", "Work", "WorldContract", "WorldDriver"]
_MODULES = {
    "PolicyContract": "policy_contract",
    "ProcessDriver": "process_driver",
    "WorldContract": "world_contract",
    **dict.fromkeys(("NotApplicable", "Work", "WorldDriver"), "world_driver"),
}

if "pytest" in sys.modules:  # the asserts of these modules are rewritten when they are imported
    sys.modules["pytest"].register_assert_rewrite(
        "eunomia.testing.policy_contract", "eunomia.testing.policy_rules", "eunomia.testing.world_contract"
    )


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the suites need pytest, which users of the rules do without."""
    if name not in _MODULES:
        raise AttributeError(f"module 'eunomia.testing' has no attribute {name!r}")
    try:
        return getattr(import_module(f"eunomia.testing.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        text = "the contract suite runs under pytest, which is not installed: pip install pytest"
        raise ModuleNotFoundError(text, name="pytest") from error
