"""Steps of `eunomia/Cluster-v0` with about 20 jobs on 8 servers, against a plain Python toy of the same cluster.

The agent takes the first legal action, so that next to nothing is spent on the policy. The toy knows only sizes, ends
and free accelerators; the environment has the core, its checks and the metrics of `eunomia simulate`.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator

import numpy as np

from benchmarks.side_by_side import Comparison, compare

STEPS = 2000
SCENARIO = {
    "cluster": {"accelerators": {"v100": 32}, "accelerators_per_node": 4},
    "workload": {"generator": "poisson", "jobs": 2000, "rate_per_hour": 10.0},
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
    """Yield the one comparison; none without the extra."""
    try:
        from eunomia.learning.environment import ClusterEnv
    except ModuleNotFoundError:
        return
    env, toy = ClusterEnv(SCENARIO, "placement", jobs=64, window="oldest"), Toy(20, 8)
    state = [env.reset()[1]]

    def ours() -> None:
        for _ in range(STEPS):
            _, _, ended, _, info = env.step(int(np.argmax(state[0]["action_mask"])))
            state[0] = env.reset()[1] if ended else info

    def other() -> None:
        for _ in range(STEPS):
            toy.step()

    yield compare("environment: steps of eunomia/Cluster-v0", STEPS, ours, other, "a plain Python toy")
