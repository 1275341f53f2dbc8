"""Multi-layer perceptrons in float64, with the same bits on every machine (no BLAS, no torch).

Products are those of `model.products`. Between candidates the largest output wins; outputs are rounded to 30 bits
first, and of equal ones the lower row wins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.learning.model_file import ModelFile
from eunomia.model import elementary
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.products import dot
from eunomia.model.rounding import rounded


@dataclass(frozen=True, slots=True)
class Perceptron:
    """Fully connected layers with ReLU between them; the last is linear."""

    weights: tuple[Floats, ...]  # (in, out) of each layer
    biases: tuple[Floats, ...]  # (out,)
    product: Callable[[Floats, Floats], Floats] = dot  # np.matmul in training: faster, its bits differ by machine

    @classmethod
    def of(cls, model: ModelFile, name: str) -> Perceptron:
        """Return the perceptron whose layer sizes are `architecture[name]`, from the arrays `name.k.weight`, `.bias`.

        Raises InvalidInput where an array is missing or has another shape.
        """
        sizes = [int(size) for size in model.header.architecture.get(name, ())]
        pairs = list(enumerate(itertools.pairwise(sizes)))
        return cls(
            tuple(model.floats(f"{name}.{k}.weight", pair) for k, pair in pairs),
            tuple(model.floats(f"{name}.{k}.bias", pair[1:]) for k, pair in pairs),
        )

    @classmethod
    def drawn(cls, sizes: Sequence[int], rng: np.random.Generator) -> Perceptron:
        """Return untrained layers: uniform in ±√(6 / in) (He et al., ICCV 2015), biases 0."""
        pairs = list(itertools.pairwise(sizes))
        weights = tuple(rng.uniform(-1.0, 1.0, pair) * np.sqrt(6.0 / pair[0]) for pair in pairs)
        return cls(weights, tuple(np.zeros(pair[1]) for pair in pairs))

    def arrays(self, name: str) -> dict[str, Array]:
        """Return its arrays as a model file names them."""
        layers = list(enumerate(zip(self.weights, self.biases, strict=True)))
        return {
            f"{name}.{k}.{part}": one for k, both in layers for part, one in zip(("weight", "bias"), both, strict=True)
        }

    def __call__(self, rows: Floats) -> Floats:
        """Return the outputs, (row, out), of inputs (row, in)."""
        values = np.asarray(rows, dtype=np.float64)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = self.product(values, weight) + bias
            if k + 1 < len(self.weights):
                values = np.maximum(values, 0.0)
        return values


def best_row(scores: Floats, allowed: Bools) -> int:
    """Return the allowed row with the largest score, the lowest of equal ones; -1 if none is allowed."""
    rows = np.flatnonzero(allowed)
    return int(rows[np.argmax(rounded(scores[rows]))]) if len(rows) else -1


def masked_softmax(scores: Floats, allowed: Bools) -> Floats:
    """Return probabilities: exactly 0 where not allowed, the others sum to 1. Raises ValueError if none is allowed."""
    if not allowed.any():
        raise ValueError("no action is allowed, so there are no probabilities; end the interval instead")
    found = np.zeros(len(scores))
    high = scores[allowed] - scores[allowed].max()
    weights = np.asarray(elementary.exp(high))
    found[allowed] = weights / weights.sum()
    return found
