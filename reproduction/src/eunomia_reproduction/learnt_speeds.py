"""What it costs not to know throughputs, by policy, and how much of that is regained by learning them while jobs run.

Mean JCT over that of the same policy and seed with true throughputs: with stated ones that are wrong and stay so, with
those learnt from the progress of gangs, and learnt where unmeasured types are tried as well. The jobs are
those of Gavel's generator, without the first tenth: what is learnt is learnt by then. Seeds are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import eunomia
from eunomia.model.arrays import Floats
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.table import FigureRow, FigureTable, Request

POLICIES = (
    "max_min_fairness", "finish_time_fairness", "makespan", "max_throughput", "throughput_per_cost", "las", "srtf",
)  # fmt: skip
ERRORS = (0.4, 0.8)  # σ of the logarithm of a stated throughput over the true one
JOBS, RATE_PER_HOUR = 150, 1.0
NEAR = 0.05  # of the run with true throughputs
LATER = "mean JCT of later jobs over that of true throughputs"
MAKESPAN = "makespan over that of true throughputs"
WITHIN = f"seeds within {NEAR:.0%} of true throughputs"
NO_TRIALS = "learnt, no trials"
BELIEFS: Mapping[str, Mapping[str, Any]] = {
    "stated": {"kind": "noisy"},
    NO_TRIALS: {"kind": "measured", "explore": 0.0},
    "learnt": {"kind": "measured"},
}


def reproduce(request: Request) -> FigureTable:
    """Run every policy under every belief and error."""
    rows, curves = list[FigureRow](), list[FigureCurve]()
    for policy in POLICIES:
        truth = _run(policy, {"kind": "oracle"}, request)
        for name, belief in BELIEFS.items():
            means = [1.0]
            for error in ERRORS:
                found = _rows(series(policy, name, error), _run(policy, {**belief, "error": error}, request), truth)
                means.append(float(found[0].measured or np.nan))
                rows += found
            if name != NO_TRIALS:
                curves.append(FigureCurve(name=f"{policy}, {name}", x=(0.0, *ERRORS), y=means))
    figure = Figure(
        name="learnt-speeds",
        title="What wrong throughputs cost, and learnt ones",
        x_label="σ of the logarithm of a stated throughput over the true one",
        y_label=LATER,
        curves=tuple(curves),
    )
    notes = (
        f"{request.seeds} paired seed(s) of {JOBS} jobs, {RATE_PER_HOUR:g} an hour, on 4 v100, 4 p100 and 4 k80.",
        f"Later jobs are all but the first tenth; a seed is within {NEAR:.0%} by its own mean JCT of later jobs.",
    )
    return FigureTable(rows=tuple(rows), notes=notes, figures=(figure,))


def series(policy: str, belief: str, error: float) -> str:
    """Return the name of the rows of a policy under a belief whose stated throughputs have this error."""
    return f"{policy}, {belief}, σ {error:g}"


def _rows(name: str, ours: Floats, truth: Floats) -> list[FigureRow]:
    """Return the rows of runs beside those with true throughputs, (seed, 2) each as `_run` gives them."""
    rows = [
        row
        for column, quantity in enumerate((LATER, MAKESPAN))
        for row in ratio_rows(name, quantity, ours[:, column].tolist(), truth[:, column].tolist())
    ]
    off = ours[:, 0] / truth[:, 0] - 1.0
    near, better = int((np.abs(off) <= NEAR).sum()), int((off < -NEAR).sum())
    note = f"of {len(off)}; {better} more are better than that"
    return [*rows, FigureRow(series=name, quantity=WITHIN, unit="", measured=near, note=note)]


def _run(policy: str, belief: Mapping[str, Any], request: Request) -> Floats:
    """Return mean JCT of later jobs and makespan in seconds, (seed, 2)."""
    found = np.array([_figures(policy, belief, seed) for seed in range(request.seeds)])
    hours = found.mean(axis=0) / 3600
    request.tell(f"{policy}, {dict(belief)}: {hours[0]:.3f} h, makespan {hours[1]:.1f} h")
    return found


def _figures(policy: str, belief: Mapping[str, Any], seed: int) -> tuple[float, float]:
    result = eunomia.simulate(
        {
            "seed": seed,
            "cluster": {"accelerators": {"v100": 4, "p100": 4, "k80": 4}, "accelerators_per_node": 4},
            "workload": {"generator": "gavel", "jobs": JOBS, "rate_per_hour": RATE_PER_HOUR},
            "policy": {"name": policy},
            "belief": dict(belief),
        }
    )
    later = np.asarray(result.jobs["jct_s"], dtype=float)[JOBS // 10 :]
    return float(later.mean()), float(result.summary["makespan_s"] or np.nan)
