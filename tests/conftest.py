"""How Hypothesis draws: the same examples on every machine, without a deadline. And what all tests do only once.

`make test-all` takes the profile `varied`, with a seed that it prints.
"""

from __future__ import annotations

import functools
import gc
import math
import os

import pytest
import typer
from hypothesis import HealthCheck, settings
from typer import testing

from eunomia.kernels import KERNELS

MANY = 2000  # tests
# Kernels that many tests interpret for longer than compiling them takes, as each process begins anew to count.
COMPILED_FIRST = {
    f"eunomia.{name}"
    for name in (
        "backends.simulated.gang_kernels.allow",
        "backends.simulated.gang_kernels.start",
        "backends.simulated.gang_kernels.stop",
        "core.placement_pass.follow",
        "metrics.job_timelines.end",
        "placement.free_index._recount",
        "solvers.assignment._paths",
        "solvers.auction.dynamic_program.sweep",
        "solvers.nash_welfare.barrier.interior",
        "solvers.nash_welfare.response.settle",
        "solvers.nash_welfare.symmetry._look",
        "solvers.pricing.barrier.barrier",
        "solvers.pricing.newton.answers",
        "solvers.pricing.response.walk",
        "solvers.sums.summed",
        "solvers.water_filling.screen.screen",
        "throughputs.durations.run_time_history._open_job",
    )
}

settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("varied", settings.get_profile("steady"), derandomize=False, print_blob=True)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Typer builds all commands anew for each line that is tested.
typer.main.get_command = testing._get_command = functools.cache(typer.main.get_command)  # type: ignore[attr-defined]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the collected tests out of garbage collections: they stay to the end, and each one visited them."""
    gc.collect()
    gc.freeze()
    if len(session.items) > MANY:
        for kernel in KERNELS:
            if kernel.name in COMPILED_FIRST:
                kernel.expected_s = math.inf
