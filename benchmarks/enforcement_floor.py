"""How closely any rounds could enforce shares, beside how closely ours do: gangs are whole, and rounds are too.

A share can be fed on average and still not in rounds. On 16 accelerators three jobs that hold 9 of them all the time
leave 7, so that a gang of 8 with a share of 0.3 can only run while one of the three waits. The least that must be
missing is a linear program over packings, sets of gangs that fit a type together, each for some part of the rounds:

    minimise  Σ_m u_m    subject to  Σ_c a[m,c] y_c + u_m ≥ r x_m − 1 for each job m,   Σ_c y_c ≤ r,   y, u ≥ 0

r rounds, x share, y_c rounds of packing c, a whether the gang is in it, u rounds that it misses beyond one. Each type
is looked at alone and rounds are divisible, so no schedule can do better. Packings are found by pricing: a knapsack.

python -m benchmarks.enforcement_floor [--jobs N …] [--load L …] [--draws D]
"""

from __future__ import annotations

import argparse

import highspy
import numpy as np

from benchmarks.draws import draw
from benchmarks.enforcement import TYPES, capacity_of, errors
from eunomia.model.arrays import Bools, Floats, Ints

ROUNDS = 20
_TINY = 1e-7
_ALLOWED = 1 / ROUNDS + 1e-6  # a round


def fullest(worth: Floats, size: Ints, room: int) -> Bools:
    """Return the gangs that are worth most of those that fit together, (gang,)."""
    best, chosen = np.zeros(room + 1), np.zeros((len(size), room + 1), dtype=bool)
    for m, z in enumerate(size.tolist()):
        with_it = np.concatenate((np.full(min(z, room + 1), -np.inf), best[: max(room + 1 - z, 0)] + worth[m]))
        chosen[m] = with_it > best
        best = np.maximum(best, with_it)
    packing, left = np.zeros(len(size), dtype=bool), room
    for m in range(len(size) - 1, -1, -1):
        if chosen[m, left]:
            packing[m] = True
            left -= int(size[m])
    return packing


def least_missing(x: Floats, size: Ints, room: int, rounds: int = ROUNDS) -> float:
    """Return how many rounds beyond one each these gangs must miss on a type of so many accelerators, in sum."""
    n, program = len(x), highspy.Highs()
    program.setOptionValue("output_flag", False)
    for _ in range(n):
        program.addCol(1.0, 0.0, highspy.kHighsInf, 0, [], [])
    for m in range(n):
        program.addRow(max(rounds * float(x[m]) - 1.0, 0.0), highspy.kHighsInf, 1, [m], [1.0])
    program.addRow(-highspy.kHighsInf, float(rounds), 0, [], [])
    while True:
        program.run()
        price = np.array(program.getSolution().row_dual)
        packing = fullest(np.maximum(price[:n], 0.0), size, room)
        if price[:n][packing].sum() <= -price[n] + _TINY:
            return float(program.getObjectiveValue())
        rows = [*np.flatnonzero(packing).tolist(), n]
        program.addCol(0.0, 0.0, highspy.kHighsInf, len(rows), rows, [1.0] * len(rows))


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.enforcement_floor", description=__doc__)
    parser.add_argument("--jobs", nargs="+", type=int, default=(48, 64))
    parser.add_argument("--load", nargs="+", type=float, default=(1.2, 2.0))
    parser.add_argument("--draws", type=int, default=12)
    asked = parser.parse_args()
    print("| jobs | load | pairs | p99 | more than a round below | above | missing beyond a round, least | ours |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for jobs in asked.jobs:
        for load in asked.load:
            found, least, ours = [], 0.0, 0.0
            for seed in range(asked.draws):
                table = draw(jobs, len(TYPES), seed, load=load)
                error, x = errors("leases", table, ROUNDS)
                found.append(error[x > 0])
                ours += float(np.maximum(-error[x > 0] * ROUNDS - 1.0, 0.0).sum())
                for j, room in enumerate(capacity_of(table).tolist()):
                    has = x[:, j] > 0
                    least += least_missing(x[has, j], table.size[has].astype(np.int64), int(room))
            error = np.concatenate(found)
            print(
                f"| {jobs} | {load:g} | {len(error)} | {np.percentile(np.abs(error), 99):.3f} "
                f"| {(error < -_ALLOWED).sum()} | {(error > _ALLOWED).sum()} | {least:.1f} | {ours:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
