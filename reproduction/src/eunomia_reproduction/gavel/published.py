"""The curves that Gavel's authors published, point by point.

Average JCT in hours, means of jobs 4000 … 4999 of a Poisson stream on 36 V100, 36 P100 and 36 K80, seed 0; makespans in
hours of jobs that are all there at the start. The numbers stand in the notebooks of the published code
(github.com/stanford-futuredata/gavel, commit c4fa400, `continuous_jobs*.ipynb` and the notebook on static traces),
from which figures 8 to 10 of D. Narayanan et al., OSDI 2020, were drawn. None: not published.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTEBOOKS = "notebooks of the published code, commit c4fa400"
Points = dict[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One curve: its name in the figures, our policy (a preset), and its points by jobs per hour or by jobs."""

    name: str
    policy: str
    points: Points


def _points(at: tuple[float, ...], values: str) -> Points:
    return {x: None if text == "-" else float(text) for x, text in zip(at, values.split(), strict=True)}


SINGLE_AT = (0.4, 2.0, 4.0, 4.8, 5.2, 5.6, 6.0)  # jobs per hour, one accelerator each
MULTI_AT = (0.2, 1.0, 1.6, 2.0, 2.6, 2.8, 3.0)  # jobs per hour, gangs of 1, 2, 4 and 8
STATIC_AT = (100.0, 300.0, 500.0, 700.0)  # jobs

AGNOSTIC = "LAS, agnostic"
SINGLE = (
    Published(
        name=AGNOSTIC,
        policy="gavel:max_min_fairness",
        points=_points(SINGLE_AT, "23.26 23.47 23.49 35.79 63.78 95.99 -"),
    ),
    Published(
        name="Gandiva", policy="gavel:gandiva", points=_points(SINGLE_AT, "17.58 17.61 18.88 30.46 34.32 42.54 -")
    ),
    Published(
        name="Gavel",
        policy="gavel:max_min_fairness_perf",
        points=_points(SINGLE_AT, "17.58 16.95 16.82 18.97 22.02 28.96 41.23"),
    ),
    Published(
        name="Gavel, space sharing",
        policy="gavel:max_min_fairness_packed",
        points=_points(SINGLE_AT, "18.42 18.26 16.96 18.67 19.14 19.64 20.42"),
    ),
    Published(name="FIFO", policy="gavel:fifo", points=_points(SINGLE_AT, "17.58 18.32 25.38 99.19 151.67 - -")),
    Published(
        name="FIFO, aware",
        policy="gavel:fifo_perf",
        points=_points(SINGLE_AT, "15.31 15.45 17.08 22.24 56.69 104.12 150.04"),
    ),
    Published(
        name="FIFO, packed",
        policy="gavel:fifo_packed",
        points=_points(SINGLE_AT, "15.31 15.45 17.08 21.14 38.11 83.40 127.10"),
    ),
)
MULTI = (
    Published(
        name=AGNOSTIC,
        policy="gavel:max_min_fairness",
        points=_points(MULTI_AT, "25.93 26.10 26.51 28.91 70.54 169.93 -"),
    ),
    Published(name="Gandiva", policy="gavel:gandiva", points=_points(MULTI_AT, "18.55 18.96 20.47 25.16 60.43 - -")),
    Published(
        name="Gavel",
        policy="gavel:max_min_fairness_perf",
        points=_points(MULTI_AT, "18.55 18.54 19.12 21.90 36.44 55.78 -"),
    ),
    Published(
        name="Gavel, space sharing",
        policy="gavel:max_min_fairness_packed",
        points=_points(MULTI_AT, "18.72 19.01 18.90 20.85 30.51 38.25 46.94"),
    ),
    Published(
        name="FIFO", policy="gavel:fifo", points=_points(MULTI_AT, "18.56 19.92 30.82 37.56 304.76 414.68 537.18")
    ),
    Published(
        name="FIFO, aware",
        policy="gavel:fifo_perf",
        points=_points(MULTI_AT, "16.91 17.34 20.02 27.68 93.60 204.44 301.75"),
    ),
)
FINISH_TIME = (
    Published(
        name="FTF, agnostic",
        policy="gavel:finish_time_fairness",
        points=_points(MULTI_AT, "25.93 26.12 26.50 28.87 64.38 - -"),
    ),
    Published(
        name="Gavel, FTF",
        policy="gavel:finish_time_fairness_perf",
        points=_points(MULTI_AT, "18.55 18.51 19.14 21.80 33.90 41.56 52.19"),
    ),
)
MAKESPAN = (
    Published(name="FIFO", policy="gavel:fifo", points=_points(STATIC_AT, "182.3 295.6 426.6 619.5")),
    Published(name="Gandiva", policy="gavel:gandiva", points=_points(STATIC_AT, "166.6 199.9 263.9 347.3")),
    Published(
        name="Gavel", policy="gavel:min_total_duration_perf", points=_points(STATIC_AT, "161.2 161.2 169.4 244.2")
    ),
    Published(
        name="Gavel, space sharing",
        policy="gavel:min_total_duration_packed",
        points=_points(STATIC_AT, "163.6 161.2 168.1 226.2"),
    ),
)
MEAN_FTF = {  # mean of JCT ÷ JCT under `isolated` at 5.6 jobs per hour, one accelerator each
    "gavel:max_min_fairness": 0.96,
    "gavel:gandiva": 0.54,
    "gavel:allox": 0.28,
    "gavel:max_min_fairness_perf": 0.37,
    "gavel:max_min_fairness_packed": 0.26,
}
FTF_RATE = 5.6
