"""The curves that Gavel's authors published, point by point: all that is stored in the notebooks of their code.

36 V100, 36 P100 and 36 K80. Average JCT in hours are means of jobs 4000 … 4999 of a Poisson stream of seed 0, as the
notebooks' last tables have them; figures 8 to 10 of D. Narayanan et al., OSDI 2020, are means over seeds 0, 1 and 2
(`published_means`). So are priorities, and makespans, in hours, of jobs that are all there at the start. From
github.com/stanford-futuredata/gavel, commit c4fa400, `continuous_jobs*.ipynb` and the notebook on static traces, with
the earlier order of the job table. None: not published.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTEBOOKS = "notebooks of the published code, commit c4fa400"
JOB_TABLE = "published"  # the order of job types when the figures were drawn: parameter `table` of the generator
MEAN_OF_SEEDS = (0, 1, 2)  # of makespans, priorities and the curves as drawn
Points = dict[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One curve: its name in the figures, our policy (a preset), and its points by jobs per hour or by jobs."""

    name: str
    policy: str
    multi: bool  # gangs of 1, 2, 4 and 8, else one accelerator a job
    points: Points

    @property
    def known(self) -> dict[float, float]:
        """Return the points that were published."""
        return {x: value for x, value in self.points.items() if value is not None}


def points_of(at: tuple[float, ...], values: str) -> Points:
    """Return the points of a line of numbers, one for each x; "-" is None."""
    return {x: None if text == "-" else float(text) for x, text in zip(at, values.split(), strict=True)}


def _curve(name: str, policy: str, at: tuple[float, ...], values: str, multi: bool = False) -> Published:
    return Published(name=name, policy=policy, multi=multi, points=points_of(at, values))


SINGLE_AT = tuple(round(0.4 * k, 1) for k in range(1, 16))  # jobs per hour, one accelerator each
MULTI_AT = tuple(round(0.2 * k, 1) for k in range(1, 16))  # jobs per hour, gangs of 1, 2, 4 and 8
STATIC_AT = tuple(100.0 * k for k in range(1, 8))  # jobs

AGNOSTIC, AWARE, SHARING = "LAS, agnostic", "Gavel", "Gavel, space sharing"
SINGLE = (
    _curve(
        AGNOSTIC,
        "gavel:max_min_fairness",
        SINGLE_AT,
        "23.26 23.33 23.51 23.57 23.47 23.43 23.59 23.59 23.57 23.49 23.81 35.79 63.78 95.99 -",
    ),
    _curve(
        "Gandiva",
        "gavel:gandiva",
        SINGLE_AT,
        "17.58 17.64 17.68 17.66 17.61 17.62 17.69 17.83 18.14 18.88 25.65 30.46 34.32 42.54 -",
    ),
    _curve(
        AWARE,
        "gavel:max_min_fairness_perf",
        SINGLE_AT,
        "17.58 17.64 17.67 17.48 16.95 16.39 16.04 16.08 16.38 16.82 17.48 18.97 22.02 28.96 41.23",
    ),
    _curve(
        SHARING,
        "gavel:max_min_fairness_packed",
        SINGLE_AT,
        "18.42 19.26 19.69 19.39 18.26 16.92 16.26 16.18 16.5 16.96 17.78 18.67 19.14 19.64 20.42",
    ),
    _curve(
        "AlloX",
        "gavel:allox",
        SINGLE_AT,
        "17.58 17.64 17.67 17.45 16.93 16.49 16.37 16.43 16.62 17.13 18.54 20.92 21.96 25.32 -",
    ),
    _curve(
        "FIFO",
        "gavel:fifo",
        SINGLE_AT,
        "17.58 17.64 17.7 17.71 18.32 18.63 18.62 22.21 24.25 25.38 44.28 99.19 151.67 - -",
    ),
    _curve(
        "FIFO, aware",
        "gavel:fifo_perf",
        SINGLE_AT,
        "15.31 15.38 15.42 15.43 15.45 15.52 15.68 15.95 16.39 17.08 18.19 22.24 56.69 104.12 150.04",
    ),
    _curve(
        "FIFO, packed",
        "gavel:fifo_packed",
        SINGLE_AT,
        "15.31 15.38 15.42 15.43 15.45 15.52 15.68 15.95 16.39 17.08 18.18 21.14 38.11 83.4 127.1",
    ),
)
MULTI = (
    _curve(
        AGNOSTIC,
        "gavel:max_min_fairness",
        MULTI_AT,
        "25.93 25.92 25.88 26.08 26.1 26.1 26.23 26.51 27.29 28.91 30.82 38.71 70.54 169.93 -",
        multi=True,
    ),
    _curve(
        "Gandiva",
        "gavel:gandiva",
        MULTI_AT,
        "18.55 18.59 18.66 18.76 18.96 19.23 19.58 20.47 22.32 25.16 30.02 38.79 60.43 - -",
        multi=True,
    ),
    _curve(
        AWARE,
        "gavel:max_min_fairness_perf",
        MULTI_AT,
        "18.55 18.58 18.59 18.51 18.54 18.49 18.55 19.12 20.35 21.9 24.61 30.03 36.44 55.78 -",
        multi=True,
    ),
    _curve(
        SHARING,
        "gavel:max_min_fairness_packed",
        MULTI_AT,
        "18.72 18.95 19.09 18.98 19.01 18.78 18.68 18.9 19.66 20.85 22.89 26.22 30.51 38.25 46.94",
        multi=True,
    ),
    _curve(
        "FIFO",
        "gavel:fifo",
        MULTI_AT,
        "18.56 18.61 18.95 19.21 19.92 22.2 23.7 30.82 31.54 37.56 65.45 129.27 304.76 414.68 537.18",
        multi=True,
    ),
    _curve(
        "FIFO, aware",
        "gavel:fifo_perf",
        MULTI_AT,
        "16.91 16.96 17.01 17.1 17.34 17.65 18.29 20.02 23.71 27.68 33.05 43.94 93.6 204.44 301.75",
        multi=True,
    ),
    _curve(
        "FIFO, packed",
        "gavel:fifo_packed",
        MULTI_AT,
        "16.91 16.96 17.01 17.1 17.34 17.65 18.29 19.95 23.44 27.34 32.37 42.34 82.18 - -",
        multi=True,
    ),
)
FINISH_TIME_SINGLE = (
    _curve(
        "FTF, agnostic, singles",
        "gavel:finish_time_fairness",
        SINGLE_AT,
        "23.26 23.33 23.51 23.58 23.47 23.38 23.51 23.58 23.5 23.43 23.75 34.93 64.46 85.54 109.14",
    ),
    _curve(
        "Gavel, FTF, singles",
        "gavel:finish_time_fairness_perf",
        SINGLE_AT,
        "17.58 17.64 17.67 17.51 17.07 16.58 16.41 16.57 16.99 17.57 18.62 20.43 23.38 30.47 43.05",
    ),
)
FINISH_TIME = (
    _curve(
        "FTF, agnostic",
        "gavel:finish_time_fairness",
        MULTI_AT,
        "25.93 25.92 25.89 26.06 26.12 26.12 26.24 26.5 27.23 28.87 - 38.65 64.38 - -",
        multi=True,
    ),
    _curve(
        "Gavel, FTF",
        "gavel:finish_time_fairness_perf",
        MULTI_AT,
        "18.55 18.57 18.58 18.46 18.51 18.55 18.67 19.14 20.12 21.8 24.36 27.93 33.9 41.56 52.19",
        multi=True,
    ),
)
OVER_ISOLATED = (
    _curve(
        AWARE,
        "gavel:max_min_fairness_perf",
        SINGLE_AT,
        "0.84 0.84 0.84 0.83 0.8 0.78 0.73 0.72 0.73 0.75 0.75 0.64 0.41 0.37 -",
    ),
    _curve(
        "Gavel, FTF",
        "gavel:finish_time_fairness_perf",
        SINGLE_AT,
        "0.84 0.84 0.84 0.82 0.8 0.77 0.73 0.73 0.73 0.75 0.77 0.64 0.4 0.36 -",
    ),
)
MAKESPAN = (
    _curve("FIFO", "gavel:fifo", STATIC_AT, "182.32 229.43 295.56 350.5 426.58 506.23 619.52", multi=True),
    _curve("Gandiva", "gavel:gandiva", STATIC_AT, "166.61 178.88 199.87 224.1 263.87 301.28 347.34", multi=True),
    _curve(
        AWARE,
        "gavel:min_total_duration_perf",
        STATIC_AT,
        "161.16 161.16 161.16 161.29 169.42 194.99 244.23",
        multi=True,
    ),
    _curve(
        SHARING,
        "gavel:min_total_duration_packed",
        STATIC_AT,
        "163.61 163.57 161.17 168.5 168.13 183.15 226.22",
        multi=True,
    ),
)
PRIORITIES = (
    _curve(
        "aware, weight 5",
        "gavel:max_min_fairness_water_filling_perf",
        MULTI_AT,
        "20.06 20.1 20.1 19.97 19.75 19.4 19.17 18.96 18.9 18.92 19.0 18.55 - - -",
        multi=True,
    ),
    _curve(
        "aware, weight 1",
        "gavel:max_min_fairness_water_filling_perf",
        MULTI_AT,
        "17.56 17.59 17.61 17.55 17.43 17.24 17.11 17.15 17.42 18.04 19.28 20.18 - - -",
        multi=True,
    ),
    _curve(
        "agnostic, weight 5",
        "gavel:max_min_fairness_water_filling",
        MULTI_AT,
        "27.9 27.81 27.92 28.09 28.3 28.3 28.24 28.34 28.44 28.59 28.87 28.46 - - -",
        multi=True,
    ),
    _curve(
        "agnostic, weight 1",
        "gavel:max_min_fairness_water_filling",
        MULTI_AT,
        "24.43 24.37 24.48 24.59 24.7 24.71 24.73 24.81 24.97 25.48 27.98 54.36 - - -",
        multi=True,
    ),
)
MEAN_FTF = {  # mean of JCT ÷ JCT under `isolated` at 5.6 jobs per hour, one accelerator each
    "gavel:max_min_fairness": 0.96,
    "gavel:gandiva": 0.54,
    "gavel:allox": 0.28,
    "gavel:max_min_fairness_packed": 0.26,
}
FTF_RATE = 5.6
