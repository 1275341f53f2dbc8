"""The price of ignorance: what wrong beliefs cost each policy that has a use for right ones.

Mean JCT over that of the same policy and seed with true beliefs: with lognormal errors of believed throughputs, on two
accelerator types, with estimated throughputs of pairs where the policy shares accelerators, and with run times from
history or unknown. Seeds are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import eunomia
from eunomia.model.arrays import Floats
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.throughputs.job_type_facts import gavel_job_types
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
BY_PAIRS = (
    "max_min_fairness", "finish_time_fairness", "max_throughput", "proportional_fairness", "water_filling",
    "throughput_per_cost", "makespan",
)  # fmt: skip
ESTIMATES: Mapping[str, Mapping[str, Any]] = {
    **{f"{share:.0%} measured": {"kind": "estimated", "profiled": share} for share in (0.5, 0.2, 0.05, 0.02)},
    "Gavel's matching, 20% measured": {"kind": "estimated", "profiled": 0.2, "method": "match"},
}
SHARING = {"space_sharing": True}
JOBS, RATE_PER_HOUR = 40, 1.5
QUANTITY = "mean JCT over that of true beliefs"


def reproduce(request: Request) -> FigureTable:
    """Run every policy under every belief; the picture has the errors of throughputs."""
    truth = {name: _jct(name, {}, request) for name in dict.fromkeys((*BY_THROUGHPUT, *BY_RUN_TIME))}
    rows, curves = [], []
    for name in BY_THROUGHPUT:
        ratios = [_jct(name, {"kind": "noisy", "error": error}, request) / truth[name] for error in ERRORS]
        rows += [_row(f"{name}, wrong throughputs", x, each) for x, each in zip(ERRORS, ratios, strict=True)]
        curves.append(_curve(name, ratios, ERRORS))
    for name in BY_RUN_TIME:
        ratios = [_jct(name, {"duration": each}, request) / truth[name] for each in DURATIONS]
        rows += [_row(f"{name}, run times unknown", x, each) for x, each in zip(DURATIONS, ratios, strict=True)]
    pairs_rows, pairs_figure = _pairs(request)
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
    return FigureTable(rows=(*rows, *pairs_rows), notes=notes, figures=(figure, pairs_figure))


def _pairs(request: Request) -> tuple[list[FigureRow], Figure]:
    """Run every policy that can share accelerators with estimated throughputs of pairs, by their mean error."""
    errors = {
        name: float(np.mean([_error(belief, s) for s in range(request.seeds)])) for name, belief in ESTIMATES.items()
    }
    rows = [
        FigureRow(series="estimated pairs", x=name, quantity="mean error of the rate beside a partner over that alone",
                  unit="", measured=round(error, 4))
        for name, error in errors.items()
    ]  # fmt: skip
    curves, ordered = [], sorted(errors, key=lambda name: errors[name])
    for policy in BY_PAIRS:
        truth = _jct(policy, {}, request, SHARING)
        ratios = [_jct(policy, ESTIMATES[name], request, SHARING) / truth for name in ordered]
        rows += [_row(f"{policy}, estimated pairs", x, each) for x, each in zip(ordered, ratios, strict=True)]
        curves.append(_curve(policy, ratios, [errors[name] for name in ordered]))
    figure = Figure(
        name="ignorance-pairs",
        title="What estimated throughputs of pairs cost",
        x_label="mean error of the estimated rate beside a partner over that alone",
        y_label=QUANTITY,
        curves=tuple(curves),
    )
    return rows, figure


def _error(belief: Mapping[str, Any], seed: int) -> float:
    """Return the mean error of believed rates of pairs that fit, over those alone, among Gavel's job types."""
    setup, names = (
        set_up(scenario_from_dict(_scenario("max_min_fairness", belief, seed, SHARING), Path())),
        gavel_job_types(),
    )
    off = list[float]()
    for one in names:
        alone = setup.truth.solo_throughput(one, 1)
        for other in names:
            true, believed = (each.packed_throughput(one, other, 1) for each in (setup.truth, setup.believed))
            off += (np.abs(believed - true) / alone)[true > 0].tolist()
    return float(np.mean(off))


def _row(series: str, x: float | str, ratios: Floats) -> FigureRow:
    spread = f"{ratios.min():.3f} to {ratios.max():.3f} over seeds"
    return FigureRow(
        series=series, x=x, quantity=QUANTITY, unit="", measured=round(float(ratios.mean()), 4), note=spread
    )


def _curve(name: str, ratios: Sequence[Floats], errors: Sequence[float]) -> FigureCurve:
    means = [1.0, *(float(each.mean()) for each in ratios)]
    ends = [[1.0, *(float(end(each)) for each in ratios)] for end in (np.min, np.max)]
    return FigureCurve(name=name, x=(0.0, *errors), y=means, low=ends[0], high=ends[1])


def _scenario(
    policy: str, belief: Mapping[str, Any], seed: int, parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "seed": seed,
        "cluster": {"accelerators": {"v100": 4, "k80": 4}, "accelerators_per_node": 4},
        "workload": {"generator": "gavel", "jobs": JOBS, "rate_per_hour": RATE_PER_HOUR},
        "policy": {"name": policy, **(parameters or {})},
        "belief": dict(belief),
    }


def _jct(name: str, belief: Mapping[str, Any], request: Request, parameters: Mapping[str, Any] | None = None) -> Floats:
    """Return the mean JCT in seconds of each seed."""
    found = [
        float(eunomia.simulate(_scenario(name, belief, seed, parameters)).summary["jct_mean_s"] or np.nan)
        for seed in range(request.seeds)
    ]
    request.tell(f"{name}, {belief or 'truth'}: {np.mean(found) / 3600:.3f} h")
    return np.array(found)
