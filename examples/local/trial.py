"""A trial of a search: logistic regression with momentum, run with the settings that the search asks for."""

from __future__ import annotations

import math
import random
import time

from eunomia.lease import Lease

BATCHES_PER_STEP = 10
PAUSE_S = 0.02  # stands for the work of a larger model
STEPS_BY_HAND = 4


def batch_of(number: int) -> list[tuple[float, float, int]]:
    """Return the points of a batch: the same ones whenever, and however often, it is drawn."""
    draw = random.Random(number)
    labels = [draw.randrange(2) for _ in range(32)]
    return [(draw.gauss(2 * label, 1), draw.gauss(1 - label, 1), label) for label in labels]


def slope_and_loss(weights: list[float], batch: list[tuple[float, float, int]]) -> tuple[list[float], float]:
    """Return the gradient of a batch's mean loss, and the loss."""
    slope, loss = [0.0, 0.0, 0.0], 0.0
    for x, y, label in batch:
        score = weights[0] * x + weights[1] * y + weights[2]
        p = 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))
        loss -= math.log(p if label else 1 - p) / len(batch)
        for k, value in enumerate((x, y, 1.0)):
            slope[k] += (p - label) * value / len(batch)
    return slope, loss


def main() -> None:
    with Lease() as lease:
        step_size = float(lease.settings.get("step_size", 0.1))
        momentum = float(lease.settings.get("momentum", 0.0))
        state = lease.load({"batch": 0, "weights": [0.0] * 3, "speed": [0.0] * 3, "loss": math.log(2)})
        steps = lease.total_steps if lease.job_id else STEPS_BY_HAND
        for batch in lease.steps(steps * BATCHES_PER_STEP, start=state["batch"]):
            slope, loss = slope_and_loss(state["weights"], batch_of(batch))
            speed = [momentum * v - step_size * s for v, s in zip(state["speed"], slope, strict=True)]
            weights = [w + v for w, v in zip(state["weights"], speed, strict=True)]
            mean = 0.8 * state["loss"] + 0.2 * loss
            state = {"batch": batch + 1, "weights": weights, "speed": speed, "loss": mean}
            time.sleep(PAUSE_S)
            if (batch + 1) % BATCHES_PER_STEP == 0:
                lease.save(state, step=(batch + 1) / BATCHES_PER_STEP)
        lease.save(state, step=state["batch"] / BATCHES_PER_STEP)
    print(f"step size {step_size:.4f}, momentum {momentum}: loss {state['loss']:.6f}")


if __name__ == "__main__":
    main()
