"""The price of ignorance: what wrong beliefs cost each policy that has a use for right ones.

Mean JCT over that of the same policy and seed with true beliefs: with lognormal errors of believed throughputs, on two
accelerator types, and with run times from history or unknown. Seeds are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import eunomia
from eunomia.model.arrays import Floats
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.table import FigureRow, FigureTable, Request

ERRORS = (0.1, 0.2, 0.4, 0.8)
DURATIONS = ("history", "none")
BY_THROUGHPUT = (
    "max_min_fairness", "finish_time_fairness", "max_throughput", "proportional_fairness", "allox", "srtf",
    "water_filling", "themis", "carbyne", "throughput_per_cost", "gandiva_fair", "makespan",
)  # fmt: skip
DRAWN = 8  # the first ones; of the others the error of throughputs says little about the mean JCT
BY_RUN_TIME = (
    "srtf", "allox", "finish_time_fairness", "makespan", "least_slack", "carbyne", "themis", "optimus", "metis",
)  # fmt: skip
JOBS, RATE_PER_HOUR = 40, 1.5
QUANTITY = "mean JCT over that of true beliefs"


def reproduce(request: Request) -> FigureTable:
    """Run every policy under every belief; the picture has the errors of throughputs."""
    truth = {name: _jct(name, {}, request) for name in dict.fromkeys((*BY_THROUGHPUT, *BY_RUN_TIME))}
    rows, curves = [], []
    for name in BY_THROUGHPUT:
        ratios = [_jct(name, {"kind": "noisy", "error": error}, request) / truth[name] for error in ERRORS]
        rows += [_row(f"{name}, wrong throughputs", x, each) for x, each in zip(ERRORS, ratios, strict=True)]
        curves.append(_curve(name, ratios))
    for name in BY_RUN_TIME:
        ratios = [_jct(name, {"duration": each}, request) / truth[name] for each in DURATIONS]
        rows += [_row(f"{name}, run times unknown", x, each) for x, each in zip(DURATIONS, ratios, strict=True)]
    figure = Figure(
        name="ignorance",
        title="What wrong throughputs cost",
        x_label="σ of the logarithm of a believed throughput over the true one",
        y_label=QUANTITY,
        curves=tuple(curves[:DRAWN]),
    )
    notes = (
        f"{request.seeds} paired seed(s) of {JOBS} jobs, {RATE_PER_HOUR:g} an hour, on 4 v100 and 4 k80; mean ratios.",
        "History: estimated from ended jobs of the tenant and size; none: the same guess for every job.",
    )
    return FigureTable(rows=tuple(rows), notes=notes, figures=(figure,))


def _row(series: str, x: float | str, ratios: Floats) -> FigureRow:
    spread = f"{ratios.min():.3f} to {ratios.max():.3f} over seeds"
    return FigureRow(
        series=series, x=x, quantity=QUANTITY, unit="", measured=round(float(ratios.mean()), 4), note=spread
    )


def _curve(name: str, ratios: Sequence[Floats]) -> FigureCurve:
    means = [1.0, *(float(each.mean()) for each in ratios)]
    ends = [[1.0, *(float(end(each)) for each in ratios)] for end in (np.min, np.max)]
    return FigureCurve(name=name, x=(0.0, *ERRORS), y=means, low=ends[0], high=ends[1])


def _jct(name: str, belief: Mapping[str, Any], request: Request) -> Floats:
    """Return the mean JCT in seconds of each seed."""
    found = []
    for seed in range(request.seeds):
        scenario = {
            "seed": seed,
            "cluster": {"accelerators": {"v100": 4, "k80": 4}, "accelerators_per_node": 4},
            "workload": {"generator": "gavel", "jobs": JOBS, "rate_per_hour": RATE_PER_HOUR},
            "policy": {"name": name},
            "belief": dict(belief),
        }
        found.append(float(eunomia.simulate(scenario).summary["jct_mean_s"] or np.nan))
    request.tell(f"{name}, {belief or 'truth'}: {np.mean(found) / 3600:.3f} h")
    return np.array(found)
