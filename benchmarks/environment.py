"""Steps of the environments with about 20 jobs on 8 servers, against a plain Python toy of the same cluster.

The agent takes the first legal action, so that next to nothing is spent on the policy. The toy knows only sizes, ends
and free accelerators; `eunomia/Cluster-v0` has the core, its checks and the metrics of `eunomia simulate`, and
`eunomia/CompiledCluster-v0` gives the same steps without them.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.side_by_side import Comparison, compare

STEPS = 2000
SCENARIO = {
    "cluster": {"accelerators": {"v100": 32}, "accelerators_per_node": 4},
    "workload": {"generator": "poisson", "jobs": 2000, "rate_per_hour": 20.0},
    "throughputs": {"source": "uniform"},
}


class Toy:
    """Jobs with a size and an end, first come first served where they fit."""

    def __init__(self, jobs: int, servers: int) -> None:
        self.free, self.ends, self.waiting = [4] * servers, list[tuple[float, int, int]](), list[tuple[int, float]]()
        self.random, self.now, self.jobs = random.Random(0), 0.0, jobs

    def step(self) -> list[list[float]]:
        """Seat the first waiting job that fits, or go on to the next end; return what an agent would observe."""
        while len(self.waiting) < self.jobs:
            self.waiting.append((self.random.choice((1, 1, 2, 4)), self.random.expovariate(0.001)))
        for k, (size, length) in enumerate(self.waiting):
            server = next((s for s, free in enumerate(self.free) if free >= size), -1)
            if server >= 0:
                del self.waiting[k]
                self.free[server] -= size
                heapq.heappush(self.ends, (self.now + length, server, size))
                break
        else:
            self.now, server, size = heapq.heappop(self.ends)
            self.free[server] += size
        return [[float(size), length] for size, length in self.waiting] + [[float(free)] for free in self.free]


def cases() -> Iterator[Comparison]:
    """Yield the comparisons; none without the extra."""
    try:
        from eunomia.learning.compiled_environment import CompiledClusterEnv
        from eunomia.learning.environment import ClusterEnv
    except ModuleNotFoundError:
        return
    toy = Toy(20, 8)

    def toy_steps() -> None:
        for _ in range(STEPS):
            toy.step()

    for cls in (ClusterEnv, CompiledClusterEnv):
        env = cls(SCENARIO, "placement", jobs=64, window="oldest")
        name = f"environment: steps of {cls.__name__}"
        yield compare(name, STEPS, _steps_of(env), toy_steps, "a plain Python toy")


def _steps_of(env: Any) -> Callable[[], None]:
    """Return what takes the steps; the first call compiles."""
    state = [env.reset()[1]]

    def steps() -> None:
        for _ in range(STEPS):
            _, _, ended, _, info = env.step(int(np.argmax(state[0]["action_mask"])))
            state[0] = env.reset()[1] if ended else info

    return steps
