"""Logistic regression by stochastic gradient descent: two clouds of points and the line between them."""

from __future__ import annotations

import math
import random
import time

from eunomia.lease import Lease

BATCHES_PER_STEP = 10
SAVE_EVERY = 5  # batches, so that little is lost if the machine fails
PAUSE_S = 0.1  # stands for the work of a larger model
STEPS_BY_HAND = 5


def batch_of(number: int) -> list[tuple[float, float, int]]:
    """Return the points of a batch: the same ones whenever, and however often, it is drawn."""
    draw = random.Random(number)
    labels = [draw.randrange(2) for _ in range(32)]
    return [(draw.gauss(2 * label, 1), draw.gauss(1 - label, 1), label) for label in labels]


def train(weights: list[float], batch: list[tuple[float, float, int]]) -> tuple[list[float], float]:
    """Return the weights after one batch, and its loss."""
    slope, loss = [0.0, 0.0, 0.0], 0.0
    for x, y, label in batch:
        p = 1 / (1 + math.exp(-(weights[0] * x + weights[1] * y + weights[2])))
        loss -= math.log(p if label else 1 - p) / len(batch)
        for k, value in enumerate((x, y, 1.0)):
            slope[k] += (p - label) * value / len(batch)
    return [w - 0.5 * s for w, s in zip(weights, slope, strict=True)], loss


def main() -> None:
    with Lease() as lease:
        state = lease.load({"batch": 0, "weights": [0.0, 0.0, 0.0], "loss": math.log(2)})
        if state["batch"]:
            print(f"resumed at step {state['batch'] / BATCHES_PER_STEP:g}")
        steps = lease.total_steps if lease.job_id else STEPS_BY_HAND
        for batch in lease.steps(steps * BATCHES_PER_STEP, start=state["batch"]):
            weights, loss = train(state["weights"], batch_of(batch))
            state = {"batch": batch + 1, "weights": weights, "loss": loss}
            time.sleep(PAUSE_S)
            if (batch + 1) % SAVE_EVERY == 0:
                lease.save(state, step=(batch + 1) / BATCHES_PER_STEP)
        lease.save(state, step=state["batch"] / BATCHES_PER_STEP)
    print(f"done: loss {state['loss']:.6f}")


if __name__ == "__main__":
    main()
