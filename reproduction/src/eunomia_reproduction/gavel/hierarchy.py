"""Fairness between groups over time: one more job every four steps, group after group, under policies of two levels.

Three groups of weights 1, 2 and 3 with six jobs each, on one accelerator each, of job weights 1 and 2 in turn; 3 of
each of V100, P100 and K80. Inside a group jobs share fairly, or come first served. A job's level is its throughput over
that of an equal split of the types; to the type-blind policy it is the part of its time that the job runs.

D. Narayanan et al., OSDI 2020, figure 11, and `hierarchical.ipynb` of its code (commit c4fa400), which prints the
levels of every job.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from eunomia.allocation import Solution, solve
from eunomia.model.arrays import Floats
from eunomia.model.products import row_dots
from eunomia.throughputs import read_table
from eunomia.traces.gavel_streams import JOB_TABLES
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.figure_runs import TYPES, throughputs_in
from eunomia_reproduction.table import FigureRow, FigureTable, Request

GROUPS, EACH, STEPS = 3, 6, 4  # groups, jobs of a group, steps between two jobs
JOBS = GROUPS * EACH
NEAR = 0.05
AWARE, BLIND = "hierarchical", "hierarchical?types=agnostic"
SOURCE = "hierarchical.ipynb of the published code"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLevels:
    """One panel: its inner rule, and the stored sums of levels by the number of jobs, 1 to 18."""

    name: str
    inner: str
    totals: dict[str, str]  # by policy


PANELS = (
    PublishedLevels(
        name="fair inside",
        inner="fairness",
        totals={
            AWARE: "1.72 2.269 3.106 4.424 5.227 6.432 4.529 5.94 6.944 7.371 8.129 9.128 "
            "7.411 8.168 8.779 9.951 10.39 10.458",
            BLIND: "1 1.798 2.574 3.542 4.277 5.208 4.669 5.335 5.933 6.89 7.496 8.253 7.537 7.862 8.116 8.473 8.684 9",
        },
    ),
    PublishedLevels(
        name="FIFO inside",
        inner="fifo",
        totals={
            AWARE: "1.72 3.041 4.39 5.863 7.554 8.8 8.613 9.421 9.683 9.31 9.457 9.457 "
            "9.805 9.981 9.183 9.154 9.154 9.154",
            BLIND: "1 2 3 4 5 6 6.815 7.588 8.25 8.616 8.82 9 9 9 9 9 9 9",
        },
    ),
)


def hierarchy(request: Request) -> FigureTable:
    """Return the sum of levels with each number of jobs, what awareness adds, and each group's part of all."""
    throughput = _throughputs(request)
    rows, figures = list[FigureRow](), list[Figure]()
    for panel in PANELS:
        levels = {
            policy: [_levels(policy, panel.inner, throughput[:n]) for n in range(1, JOBS + 1)]
            for policy in (AWARE, BLIND)
        }
        totals = {policy: np.array([of_n.sum() for of_n in found]) for policy, found in levels.items()}
        for policy, series in ((AWARE, "aware"), (BLIND, "type-blind")):
            stored = [float(text) for text in panel.totals[policy].split()]
            rows += [
                FigureRow(
                    series=f"{panel.name}, {series}",
                    x=n,
                    quantity="sum of levels",
                    unit="",
                    published=stored[n - 1],
                    measured=round(float(totals[policy][n - 1]), 6),
                    tolerance=NEAR,
                    source=SOURCE,
                )
                for n in range(1, JOBS + 1)
            ]
        rows += _parts(panel, levels[AWARE][-1])
        gain, stored_gain = (
            totals[AWARE][-1] / totals[BLIND][-1],
            float(panel.totals[AWARE].split()[-1]) / float(panel.totals[BLIND].split()[-1]),
        )
        rows.append(
            FigureRow(
                series=f"{panel.name}, aware ÷ type-blind",
                x=JOBS,
                quantity="sum of levels, gain",
                unit="×",
                published=round(stored_gain, 4),
                measured=round(float(gain), 6),
                tolerance=NEAR,
                source=SOURCE,
            )
        )
        figures.append(_figure(panel, totals))
    notes = (
        "The published procedure stops before all levels are as high as they go: with five jobs on nine accelerators "
        "its type-blind policy gives them 0.76, 1, 0.76, 1 and 0.76 of their time. Ours does not stop early.",
        "With FIFO inside, its groups go on to their next jobs as soon as the first job of any group is at its best.",
    )
    return FigureTable(rows=tuple(rows), notes=notes, figures=tuple(figures))


def _throughputs(request: Request) -> Floats:
    """Return T (job, type) of the published draw of job types: seed 0, from the job table of the final code."""
    rates = read_table(str(throughputs_in(request))).alone
    draw = Random(0)
    names = [draw.choice(JOB_TABLES["artifact"])[0] for _ in range(JOBS)]
    return np.array([[rates[type, name, 1] for type in TYPES] for name in names])


def _levels(policy: str, inner: str, T: Floats) -> Floats:
    """Return the level of each job, (job,), by the answer of a policy to the jobs so far."""
    groups = [f"group {m // EACH}" for m in range(len(T))]
    problem: dict[str, Any] = {
        "types": list(TYPES),
        "capacity": [3, 3, 3],
        "throughput": T.tolist(),
        "weight": [1.0 if inner == "fifo" else float(m % 2 + 1) for m in range(len(T))],
        "entity": groups,
        "entity_weight": {name: 1.0 + int(name[-1]) for name in dict.fromkeys(groups)},
        "entity_inner": dict.fromkeys(groups, inner),
    }
    answer = solve(policy, problem)
    assert isinstance(answer, Solution)
    x = answer.x
    if policy == BLIND:
        return np.asarray(x.sum(axis=1))
    return np.asarray(row_dots(T, x) / T.mean(axis=1))


def _parts(panel: PublishedLevels, level: Floats) -> list[FigureRow]:
    """Return each group's part of all levels with 18 jobs: 1/6, 2/6 and 3/6 by weight."""
    parts = level.reshape(GROUPS, EACH).sum(axis=1) / level.sum()
    return [
        FigureRow(
            series=f"{panel.name}, aware, group of weight {group + 1}",
            x=JOBS,
            quantity="part of all levels",
            unit="",
            published=round((group + 1) / 6, 6),
            measured=round(float(part), 6),
            tolerance=NEAR,
            source=SOURCE,
        )
        for group, part in enumerate(parts.tolist())
    ]


def _figure(panel: PublishedLevels, totals: dict[str, Floats]) -> Figure:
    at = list(range(1, JOBS * STEPS + 1))
    lines = []
    for policy, name in ((AWARE, "aware"), (BLIND, "type-blind")):
        stored = np.repeat([float(text) for text in panel.totals[policy].split()], STEPS)
        lines.append(FigureCurve(name=name, x=at, y=stored.tolist(), published=True))
        lines.append(FigureCurve(name=name, x=at, y=np.repeat(totals[policy], STEPS).tolist()))
    return Figure(
        name=f"gavel-hierarchy-{panel.inner}",
        title=f"Three groups of weights 1, 2 and 3, {panel.name}",
        x_label="step",
        y_label="sum of levels",
        curves=tuple(lines),
        steps=True,
    )
