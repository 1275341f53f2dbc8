"""A language model of letters: how likely each letter is after the one before, learnt by gradient descent."""

from __future__ import annotations

import math
import random
import time

from eunomia.lease import Lease

BATCHES_PER_STEP = 10
SAVE_EVERY = 5  # batches, so that little is lost if the machine fails
PAUSE_S = 0.1  # stands for the work of a larger model
STEPS_BY_HAND = 5
TEXT = "good order is the mother of good fortune and the daughter of good laws "
LETTERS = "".join(sorted(set(TEXT)))


def batch_of(number: int) -> list[tuple[int, int]]:
    """Return pairs of neighbouring letters: the same ones whenever, and however often, the batch is drawn."""
    draw = random.Random(number)
    starts = [draw.randrange(len(TEXT) - 1) for _ in range(64)]
    return [(LETTERS.index(TEXT[at]), LETTERS.index(TEXT[at + 1])) for at in starts]


def softmax(scores: list[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def train(scores: list[list[float]], batch: list[tuple[int, int]]) -> float:
    """Raise the scores of the pairs seen; return the mean loss before."""
    loss = 0.0
    for before, after in batch:
        chances = softmax(scores[before])
        loss -= math.log(chances[after]) / len(batch)
        for k, chance in enumerate(chances):
            scores[before][k] += 0.5 * ((k == after) - chance)
    return loss


def main() -> None:
    with Lease() as lease:
        state = lease.load({"batch": 0, "scores": [[0.0] * len(LETTERS) for _ in LETTERS]})
        if state["batch"]:
            print(f"resumed at step {state['batch'] / BATCHES_PER_STEP:g}")
        steps = lease.total_steps if lease.job_id else STEPS_BY_HAND
        for batch in lease.steps(steps * BATCHES_PER_STEP, start=state["batch"]):
            state["loss"] = train(state["scores"], batch_of(batch))
            state["batch"] = batch + 1
            time.sleep(PAUSE_S)
            if (batch + 1) % SAVE_EVERY == 0:
                lease.save(state, step=(batch + 1) / BATCHES_PER_STEP)
        lease.save(state, step=state["batch"] / BATCHES_PER_STEP)
    print(f"done: loss {state['loss']:.6f}")


if __name__ == "__main__":
    main()
