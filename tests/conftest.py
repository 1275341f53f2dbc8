"""How Hypothesis draws: the same examples on every machine, without a deadline. And what all tests do only once.

`make test-all` takes the profile `varied`, with a seed that it prints.
"""

from __future__ import annotations

import functools
import gc
import os

import typer
from hypothesis import HealthCheck, settings
from typer import testing

settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("varied", settings.get_profile("steady"), derandomize=False, print_blob=True)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Typer builds all commands anew for each line that is tested.
typer.main.get_command = testing._get_command = functools.cache(typer.main.get_command)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collections: they stay to the end, and each one visited them."""
    gc.collect()
    gc.freeze()
