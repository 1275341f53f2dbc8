"""How many iterations Symphony and its black-box twin take to 30 % loss over the oracle of true loads.

An iteration is 2 environments × 20 decisions, as published. Both are trained from nothing with the seeds 1, 2, 3 by the
same loop and learning rate, once by imitation of the oracle and once by actor–critic from random weights, as published;
they are judged every ten iterations on workloads that training does not see. A network is there when two judgements in
a row are within 30 %; one that is not after 400 iterations counts as 400. Published: the twin needs 2.2 times as many.
Needs PyTorch.
"""

from __future__ import annotations

import numpy as np

from eunomia.learning.training import trainable_class
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.table import FigureRow, FigureTable, Request

MOST, EVERY, LOSS = 400, 10, 0.3
FEWEST = 3  # seeds
PUBLISHED = 2.2
NAMES = ("symphony", "symphony-black-box")
WAYS = {"imitation": 0.9, "actor-critic": 0.0}  # share of the steps that imitate


def losses(name: str, imitation: float, seed: int) -> list[float]:
    """Return the loss over the oracle after 10, 20, … 400 iterations."""
    cls = trainable_class(name)
    work = type(cls.__name__, (cls,), {"imitation": imitation})(None, MOST, np.random.default_rng(seed))
    found = []
    for step in range(MOST):
        work.train(step)
        if (step + 1) % EVERY == 0:
            found.append(-work.judge()["minus_loss_over_oracle"])
    return found


def iterations(found: list[float]) -> int:
    """Return after how many iterations the first of two losses in a row is within 30 %; 400 if none is."""
    for k in range(len(found) - 1):
        if found[k] <= LOSS and found[k + 1] <= LOSS:
            return (k + 1) * EVERY
    return MOST


def reproduce(request: Request) -> FigureTable:
    """Train both in both ways with every seed."""
    seeds = range(1, 1 + max(FEWEST, request.seeds))
    rows = []
    for way, imitation in WAYS.items():
        found: dict[str, dict[int, float]] = {name: {} for name in NAMES}
        for seed in seeds:
            for name in NAMES:
                curve = losses(name, imitation, seed)
                found[name][seed] = float(iterations(curve))
                rows += [
                    _row(f"{name}, {way}", seed, f"iterations to {LOSS:.0%} loss", found[name][seed]),
                    _row(
                        f"{name}, {way}", seed, "median loss of the last five judgements", float(np.median(curve[-5:]))
                    ),
                ]
                request.tell(f"{way}, seed {seed}: {name} is there after {found[name][seed]:.0f} iterations")
        rows += _ratio(way, found)
    notes = (f"{len(seeds)} seeds, fixed beforehand; judged every {EVERY} iterations; interval paired by seed.",)
    return FigureTable(rows=tuple(rows), notes=notes)


def _row(series: str, seed: int, quantity: str, value: float) -> FigureRow:
    return FigureRow(series=series, x=seed, quantity=quantity, unit="", measured=round(value, 4))


def _ratio(way: str, found: dict[str, dict[int, float]]) -> list[FigureRow]:
    """Return the twin's iterations over Symphony's, with the ends of the interval."""
    one, other = (list(found[name].values()) for name in reversed(NAMES))
    series, quantity = f"black-box twin ÷ symphony, {way}", f"iterations to {LOSS:.0%} loss, ratio"
    return ratio_rows(series, quantity, one, other, digits=3, published=PUBLISHED, note="goal 2")
