"""Where the published policies' solver stops on their linear programs: the answer as well as the way to it.

    minimise c·x   subject to   G x + s = h,  s ≥ 0

The homogeneous self-dual embedding, followed by predictor and corrector steps as A. Domahidi, E. Chu and S. Boyd
describe them ("ECOS: An SOCP Solver for Embedded Systems", European Control Conference 2013, sections II and III).
Where many x are optimal, or where nothing is optimised, what such a solver returns depends on where it starts and how
rows are scaled; so it is done the same way here. For comparisons only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.products import dot
from eunomia_reproduction.gavel.shared_time import SharedTime

_NEAR = 1e-8  # residuals and gap at which the solver stops
_STEPS = 100


class NotSolved(ArithmeticError):
    """The program has no solution, or none was found."""


@dataclass(slots=True)
class _Point:
    """x, slacks s, prices z, and the two of the embedding."""

    x: Floats
    s: Floats
    z: Floats
    tau: float = 1.0
    kappa: float = 1.0


def solve(program: SharedTime) -> Floats:
    """Return X (job, type). Raises NotSolved where the program has no solution."""
    at = _start(program)
    for _ in range(_STEPS):
        dual = -(program.back(at.z) + program.c * at.tau)
        primal = at.s + program.times(at.x) - program.h * at.tau
        if _done(program, at, dual, primal):
            return program.shares(at.x / at.tau)
        _step(program, at, dual, primal)
    raise NotSolved("the path does not end")


def _start(program: SharedTime) -> _Point:
    """Return the least slacks and prices that fulfil the equations, moved to be positive."""
    ones = np.ones(len(program.h))
    x, _ = program.system(ones, np.zeros(len(program.c)), program.h)
    _, z = program.system(ones, -program.c, np.zeros(len(program.h)))
    return _Point(x, _positive(program.h - program.times(x)), _positive(z))


def _length(values: Floats) -> float:
    return float(np.sqrt(dot(values, values)))


def _positive(values: Floats) -> Floats:
    """Return the values, moved up together if one of them is not above 0."""
    least = float(values.min())
    return values if least > 0 else values + (1.0 - least)


def _done(program: SharedTime, at: _Point, dual: Floats, primal: Floats) -> bool:
    """Say whether residuals and gap are small. Raises NotSolved when the prices prove that there is no x."""
    size_h = max(1.0, _length(program.h))
    size_c = max(1.0, _length(program.c))
    gap, value = float(dot(at.s, at.z)) / at.tau**2, abs(float(dot(program.c, at.x))) / at.tau
    near = _length(primal) < _NEAR * size_h * at.tau and _length(dual) < _NEAR * size_c * at.tau
    if near and gap < _NEAR * max(1.0, value):
        return True
    against = -float(dot(program.h, at.z))
    if against > 0 and _length(program.back(at.z)) < _NEAR * against and at.tau < at.kappa:
        raise NotSolved("there is no such x")
    return False


def _step(program: SharedTime, at: _Point, dual: Floats, primal: Floats) -> None:
    """Move: a look ahead without centring, then as far as it tells."""
    c, h, weight = program.c, program.h, at.s / at.z
    rest = float(at.kappa + dot(c, at.x) + dot(h, at.z))
    along_x, along_z = program.system(weight, -c, h)
    turn = -at.kappa / at.tau + float(dot(c, along_x) + dot(h, along_z))

    def direction(part: float, pull: Floats, pull_tau: float) -> tuple[Floats, Floats, Floats, float, float]:
        x, z = program.system(weight, part * dual, -part * primal - pull / at.z)
        tau = (-part * rest - pull_tau / at.tau - float(dot(c, x) + dot(h, z))) / turn
        dz = z + tau * along_z
        return x + tau * along_x, pull / at.z - weight * dz, dz, tau, (pull_tau - at.kappa * tau) / at.tau

    dx, ds, dz, tau, kappa = direction(1.0, -at.s * at.z, -at.kappa * at.tau)
    left = 1 - min(_longest(at, ds, dz, tau, kappa), 0.999)
    centring = float(np.clip(left * left * left, 1e-4, 1.0))
    aim = centring * (float(dot(at.s, at.z)) + at.kappa * at.tau) / (len(at.s) + 1)
    pull, pull_tau = aim - at.s * at.z - ds * dz, aim - at.kappa * at.tau - kappa * tau
    dx, ds, dz, tau, kappa = direction(1 - centring, pull, pull_tau)
    step = min(0.99 * _longest(at, ds, dz, tau, kappa), 0.999)
    at.x, at.s, at.z = at.x + step * dx, at.s + step * ds, at.z + step * dz
    at.tau, at.kappa = at.tau + step * tau, at.kappa + step * kappa


def _longest(at: _Point, ds: Floats, dz: Floats, tau: float, kappa: float) -> float:
    """Return the step after which something becomes 0, at most 10."""
    fastest = max(float((-ds / at.s).max()), float((-dz / at.z).max()), -tau / at.tau, -kappa / at.kappa, 0.1)
    return 1.0 / fastest
