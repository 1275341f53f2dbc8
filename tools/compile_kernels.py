"""Compile the kernels that simulations use most, so that no run has to: `tools/make_env` does it in the background.

Plays a few jobs of the demo under its policies with EUNOMIA_KERNELS=compiled; what is compiled stays in the cache.
"""

from __future__ import annotations

import os
from pathlib import Path

from eunomia import simulate
from eunomia.kernels import PROCESS
from eunomia.scenario import load_scenario

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.toml"
POLICIES = ("fifo", "las", "max_min_fairness_agnostic", "max_min_fairness")


def main() -> None:
    """Compile."""
    os.environ["EUNOMIA_KERNELS"] = "compiled"
    PROCESS.is_background = True
    for policy in POLICIES:
        simulate(load_scenario(DEMO, ["workload.jobs=12", f"policy.name={policy}"]))


if __name__ == "__main__":
    main()
