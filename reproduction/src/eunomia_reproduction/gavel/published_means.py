"""The curves of figures 8 to 10 as they were published: average JCT in hours, means over seeds 0, 1 and 2.

From github.com/stanford-futuredata/gavel, commit 1f6f02e (2020-08-29), whose notebooks print the mean of every point
with the mean of its seeds; the instructions of that code name the seeds 0, 1 and 2. Left out are points of other seeds,
the marks 105 and 110 that the notebooks draw beyond saturation and a mean that holds one of them (pairs of gangs at 3
jobs per hour), and the last point of packed FIFO, of which two notebooks print different means. `published` has the
same curves of seed 0 alone, from later tables of the same notebooks.
"""

from __future__ import annotations

from eunomia_reproduction.gavel.published import (
    AGNOSTIC,
    AWARE,
    FINISH_TIME,
    FINISH_TIME_SINGLE,
    MULTI,
    MULTI_AT,
    SHARING,
    SINGLE,
    SINGLE_AT,
    Published,
    points_of,
)

MEANS_NOTEBOOKS = "notebooks of the published code, commit 1f6f02e"

_SINGLE = {
    AGNOSTIC: "22.69 22.79 22.84 22.96 22.83 22.87 22.90 22.91 22.97 22.92 23.24 34.75 60.06 91.29 -",
    "Gandiva": "17.37 17.44 17.47 17.48 17.45 17.41 17.42 17.48 17.70 18.34 23.28 27.61 32.23 39.49 -",
    AWARE: "17.37 17.44 17.47 17.38 16.95 16.30 15.82 15.74 15.92 16.26 16.84 18.02 20.52 26.42 37.64",
    SHARING: "18.19 19.05 19.53 19.57 18.62 17.15 16.13 15.85 15.98 16.32 17.10 17.92 18.61 19.08 19.58",
    "AlloX": "17.37 17.44 17.47 17.37 16.96 16.39 16.03 16.03 16.11 16.53 17.70 19.92 21.70 23.54 -",
    "FIFO": "17.37 17.44 17.48 17.53 17.99 18.07 18.17 19.69 21.83 23.84 46.42 92.00 154.35 - -",
    "FIFO, aware": "15.04 15.11 15.14 15.16 15.18 15.20 15.30 15.51 15.84 16.39 17.53 24.10 57.08 108.26 154.95",
    "FIFO, packed": "15.04 15.11 15.14 15.16 15.18 15.20 15.30 15.51 15.84 16.39 17.52 20.11 41.75 86.14 -",
    "FTF, agnostic, singles": (
        "22.69 22.79 22.84 22.97 22.82 22.82 22.86 22.87 22.90 22.86 23.25 34.70 60.47 83.22 106.36"
    ),
    "Gavel, FTF, singles": ("17.37 17.44 17.47 17.40 17.00 16.44 16.10 16.15 - 16.92 17.81 19.26 21.94 27.89 39.27"),
}
_MULTI = {
    AGNOSTIC: "23.91 23.86 23.89 24.02 24.14 24.08 24.13 24.25 24.56 25.22 26.34 36.70 72.43 198.84 -",
    "Gandiva": "17.29 17.32 17.38 17.45 17.58 17.77 18.00 18.43 19.27 20.80 23.94 35.16 57.96 - -",
    AWARE: "17.29 17.31 17.33 17.27 17.22 17.09 17.02 17.19 17.76 18.69 20.53 26.27 32.52 45.97 -",
    SHARING: "17.48 17.73 17.93 17.94 17.83 17.49 17.24 17.18 17.50 18.15 19.37 21.82 25.54 32.73 -",
    "FIFO": "17.29 17.33 17.55 17.84 18.36 19.26 20.52 25.46 28.50 31.08 114.42 191.71 348.96 467.02 593.72",
    "FIFO, aware": "15.56 15.58 15.63 15.71 15.83 16.01 16.32 17.05 18.52 20.38 23.77 39.32 138.03 247.44 345.47",
    "FIFO, packed": "15.56 15.58 15.63 15.71 15.83 16.01 16.32 17.02 18.43 20.25 23.43 34.16 126.89 - -",
    "FTF, agnostic": "23.91 23.87 23.90 24.01 24.17 24.10 24.13 24.26 25.46 - - 38.15 62.09 - -",
    "Gavel, FTF": "17.29 17.31 17.33 17.26 17.21 17.14 17.10 17.24 17.71 18.63 20.20 22.97 28.65 37.05 47.87",
}
SINGLE_CURVES = {curve.name: curve for curve in (*SINGLE, *FINISH_TIME_SINGLE)}
MULTI_CURVES = {curve.name: curve for curve in (*MULTI, *FINISH_TIME)}


def means_of(curve: Published) -> dict[float, float]:
    """Return the published means of a curve of figures 8 to 10, by jobs per hour."""
    text = (_MULTI if curve.multi else _SINGLE)[curve.name]
    return {x: value for x, value in points_of(MULTI_AT if curve.multi else SINGLE_AT, text).items() if value}
