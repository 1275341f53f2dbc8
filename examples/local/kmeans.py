"""k-means in small batches: three centres find three clouds of points."""

from __future__ import annotations

import random
import time

from eunomia.lease import Lease

BATCHES_PER_STEP = 10
SAVE_EVERY = 5  # batches, so that little is lost if the machine fails
PAUSE_S = 0.1  # stands for the work of a larger model
STEPS_BY_HAND = 5
CLOUDS = ((0.0, 0.0), (6.0, 0.0), (0.0, 6.0))


def batch_of(number: int) -> list[tuple[float, float]]:
    """Return the points of a batch: the same ones whenever, and however often, it is drawn."""
    draw = random.Random(number)
    return [(draw.gauss(x, 1), draw.gauss(y, 1)) for x, y in draw.choices(CLOUDS, k=64)]


def distance(a: list[float], b: tuple[float, float]) -> float:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def train(centres: list[list[float]], counts: list[int], batch: list[tuple[float, float]]) -> float:
    """Move each point's nearest centre a little towards it; return the mean squared distance before."""
    total = 0.0
    for point in batch:
        nearest = min(range(len(centres)), key=lambda k: distance(centres[k], point))
        total += distance(centres[nearest], point)
        counts[nearest] += 1
        for axis in (0, 1):
            centres[nearest][axis] += (point[axis] - centres[nearest][axis]) / counts[nearest]
    return total / len(batch)


def main() -> None:
    with Lease() as lease:
        state = lease.load({"batch": 0, "centres": [[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]], "counts": [1, 1, 1]})
        if state["batch"]:
            print(f"resumed at step {state['batch'] / BATCHES_PER_STEP:g}")
        steps = lease.total_steps if lease.job_id else STEPS_BY_HAND
        for batch in lease.steps(steps * BATCHES_PER_STEP, start=state["batch"]):
            state["error"] = train(state["centres"], state["counts"], batch_of(batch))
            state["batch"] = batch + 1
            time.sleep(PAUSE_S)
            if (batch + 1) % SAVE_EVERY == 0:
                lease.save(state, step=(batch + 1) / BATCHES_PER_STEP)
        lease.save(state, step=state["batch"] / BATCHES_PER_STEP)
    print(f"done: mean squared distance {state['error']:.6f}")


if __name__ == "__main__":
    main()
