"""The Bayesian network: from noisy counters to a belief about the utilisation of every resource.

    v_c ~ μ_c + S_c / √N · Student_t(N − 1)                of N readings with mean μ and standard deviation S
    b_core = σ(w v + c)                                    cycles
    b_mem  = Σ_x σ((x − θ) / T) v_x / Σ_{x ≥ 1} v_x        outstanding requests [≥ θ] / [≥ 1]; θ is learnt
    b_pcie = σ(w₁ traffic + w₂ Σ_d outstanding_d + c)      back-pressure of the devices of the link
    b_nic  = σ(w outstanding + c)

σ is the logistic function, so each node is a differentiable bijection onto (0, 1) of what enters it. T is 1, not 0.1
as requests are whole numbers: with 0.1 the gradient of θ is 0 between two of them. Gradients are those of S = 32
samples drawn once (pathwise); `by_inference` sums over a grid of all parents' values instead. The same code runs on
arrays of NumPy and of PyTorch.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import drawn
from eunomia_reproduction.symphony.counters import (
    BUCKETS,
    CORES_AT,
    DEVICES,
    DEVICES_AT,
    HISTOGRAM_AT,
    NIC_AT,
    TRAFFIC_AT,
)
from eunomia_reproduction.symphony.machine import MEMORY, PROCESSORS, SOCKETS

SAMPLES, TEMPERATURE = 32, 1.0
FEWEST_READINGS = 4  # Student's t of fewer has no variance
LINK_PARENTS = tuple(
    (TRAFFIC_AT + link, *(DEVICES_AT + k for k, u in enumerate(DEVICES) if PROCESSORS[u].socket == link))
    for link in range(SOCKETS)
)
SHAPES = {"threshold": (SOCKETS,), "link": (SOCKETS, 3), "nic": (2,), "core": (2,)}  # weights, the constant last


def initial() -> dict[str, Floats]:
    """Return the parameters at the beginning of training: counters in shares of the capacity, through σ(4 v − 2)."""
    return {
        "threshold": np.full(SOCKETS, 4.0), "link": np.tile([4.0, 0.5, -2.0], (SOCKETS, 1)),
        "nic": np.array([4.0, -2.0]), "core": np.array([4.0, -2.0]),
    }  # fmt: skip


def sample_values(readings: Floats, rng: np.random.Generator, samples: int = SAMPLES) -> Floats:
    """Return v (sample, counter) given readings (reading, counter). Raises ValueError for fewer than four readings."""
    count = len(readings)
    if count < FEWEST_READINGS:
        raise ValueError(f"{count} readings of a counter are too few: Student's t needs at least {FEWEST_READINGS}")
    mean = readings.mean(axis=0)
    spread = np.sqrt(np.square(readings - mean).sum(axis=0) / (count - 1))
    return np.asarray(mean + spread / np.sqrt(count) * drawn(rng.standard_t(count - 1, (samples, readings.shape[1]))))


class NumpyOps:
    """The operations of inference, with the same bits on every machine."""

    @staticmethod
    def cat(parts: Any) -> Any:
        """Join along the last axis."""
        return np.concatenate(parts, -1)

    @staticmethod
    def stack(parts: Any) -> Any:
        """Join along a new last axis."""
        return np.stack(parts, -1)

    @staticmethod
    def join_rows(a: Any, b: Any) -> Any:
        """Join along the axis before the last."""
        return np.concatenate((a, b), -2)

    @staticmethod
    def relu(x: Any) -> Any:
        """Return max(x, 0)."""
        return np.maximum(x, 0.0)

    @staticmethod
    def sigmoid(x: Any) -> Any:
        """Return 1 / (1 + e⁻ˣ)."""
        return 1.0 / (1.0 + np.asarray(elementary.exp(-np.clip(x, -40.0, 40.0))))

    @staticmethod
    def sqrt(x: Any) -> Any:
        """Return √x."""
        return np.sqrt(x)

    @staticmethod
    def array(x: Floats) -> Any:
        """Return an array of this kind."""
        return x


def utilisations(parameters: Mapping[str, Any], v: Any, ops: Any = NumpyOps) -> Any:
    """Return the utilisation (…, resource) of values (…, counter)."""
    core = parameters["core"]
    found = [ops.sigmoid(core[0] * v[..., CORES_AT + k] + core[1]) for k in range(MEMORY)]
    requests = ops.array(np.arange(BUCKETS, dtype=np.float64))
    for socket in range(SOCKETS):
        begin = HISTOGRAM_AT + socket * BUCKETS
        counts = v[..., begin : begin + BUCKETS]
        above = ops.sigmoid((requests - parameters["threshold"][socket]) / TEMPERATURE)
        ratio = (above * counts)[..., 1:].sum(-1) / (ops.relu(counts[..., 1:].sum(-1)) + 1e-3)
        found.append(1.0 - ops.relu(1.0 - ops.relu(ratio)))
    for link, (traffic, *devices) in enumerate(LINK_PARENTS):
        weight = parameters["link"][link]
        waiting = sum(v[..., k] for k in devices)
        found.append(ops.sigmoid(weight[0] * v[..., traffic] + weight[1] * waiting + weight[2]))
    found.append(ops.sigmoid(parameters["nic"][0] * v[..., NIC_AT] + parameters["nic"][1]))
    return ops.stack(found)


def link_gradient(weight: Floats, v: Floats, link: int) -> Floats:
    """Return ∂E[b_pcie]/∂(w₁, w₂, c) from samples v (sample, counter)."""
    traffic, *devices = LINK_PARENTS[link]
    return _mean_gradient(weight, v[:, traffic], v[:, devices].sum(axis=1), np.full(len(v), 1.0 / len(v)))


def by_inference(weight: Floats, link: int, mean: Floats, spread: Floats, points: int = 7) -> Floats:
    """Return the same gradient by full inference: a sum over a grid of all parents' values.

    Parents are normal with mean and standard deviation `spread` (counter,); with domains of size `points` the cost is
    points^parents.
    """
    nodes, chances = np.polynomial.hermite_e.hermegauss(points)
    parents = LINK_PARENTS[link]
    grids = np.array(list(itertools.product(nodes, repeat=len(parents))))
    chance = np.array(list(itertools.product(chances / chances.sum(), repeat=len(parents)))).prod(axis=1)
    values = mean[list(parents)] + spread[list(parents)] * grids
    return _mean_gradient(weight, values[:, 0], values[:, 1:].sum(axis=1), chance)


def _mean_gradient(weight: Floats, traffic: Floats, waiting: Floats, chance: Floats) -> Floats:
    b = NumpyOps.sigmoid(weight[0] * traffic + weight[1] * waiting + weight[2])
    slope = b * (1.0 - b) * chance
    return np.array([(slope * traffic).sum(), (slope * waiting).sum(), slope.sum()])


# ---- structure ---------------------------------------------------------------------------------------------------

Parents = Mapping[str, Collection[str]]


def is_polytree(parents: Parents) -> bool:
    """Say whether the network has no cycle, directions left aside."""
    group = {node: node for node in parents}

    def root(node: str) -> str:
        while group[node] != node:
            node = group[node]
        return node

    for child, above in parents.items():
        for parent in above:
            a, b = root(child), root(parent)
            if a == b:
                return False
            group[a] = b
    return True
