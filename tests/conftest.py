"""How Hypothesis draws: the same examples on every machine, without a deadline.

`make test-all` takes the profile `varied`, with a seed that it prints.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("varied", settings.get_profile("steady"), derandomize=False, print_blob=True)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
