"""How many iterations Symphony and its black-box twin take to 30 % loss over the oracle of true loads.

An iteration is 2 environments × 20 decisions, as published. Both are trained from nothing with the seeds 1, 2, …, by
the same loop and learning rate, and judged every ten iterations on workloads that training does not see. A network is
there when two judgements in a row are within 30 %; one that is not after 400 iterations counts as 400. Published: the
twin needs 2.2 times as many, from random weights; here both imitate the oracle at first. Needs PyTorch.
"""

from __future__ import annotations

import numpy as np

from eunomia.learning.training import trainable_class
from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia_reproduction.table import FigureRow, FigureTable, Request

MOST, EVERY, LOSS = 400, 10, 0.3
FEWEST = 3  # seeds
PUBLISHED = 2.2
NAMES = ("symphony", "symphony-black-box")


def iterations(name: str, seed: int) -> int:
    """Return after how many iterations a network is within 30 % of the oracle; 400 if it is not."""
    work = trainable_class(name)(None, MOST, np.random.default_rng(seed))  # type: ignore[call-arg]
    before = False
    for step in range(MOST):
        work.train(step)
        if (step + 1) % EVERY == 0:
            within = work.judge()["minus_loss_over_oracle"] >= -LOSS
            if within and before:
                return step + 1 - EVERY
            before = within
    return MOST


def reproduce(request: Request) -> FigureTable:
    """Train both with every seed."""
    seeds = range(1, 1 + max(FEWEST, request.seeds))
    found: dict[str, dict[int, float]] = {name: {} for name in NAMES}
    for seed in seeds:
        for name in NAMES:
            found[name][seed] = float(iterations(name, seed))
            request.tell(f"seed {seed}: {name} is there after {found[name][seed]:.0f} iterations")
    rows = [
        FigureRow(series=name, x=seed, quantity=f"iterations to {LOSS:.0%} loss", unit="", measured=value)
        for name in NAMES
        for seed, value in found[name].items()
    ]
    both = paired(found["symphony-black-box"], found["symphony"], 0.95)
    assert both is not None and both.log_ratio is not None
    ratio = both.log_ratio
    rows += [
        FigureRow(
            series="black-box twin ÷ symphony", quantity=f"iterations to {LOSS:.0%} loss, ratio{end}", unit="",
            measured=round(float(elementary.exp(value)), 3), published=PUBLISHED if not end else None,
            note="goal 2" if not end else "",
        )
        for end, value in (("", ratio.mean), (", low", ratio.low), (", high", ratio.high))
        if value is not None
    ]  # fmt: skip
    notes = (f"{len(seeds)} seeds, fixed beforehand; judged every {EVERY} iterations; interval paired by seed.",)
    return FigureTable(rows=tuple(rows), notes=notes)
