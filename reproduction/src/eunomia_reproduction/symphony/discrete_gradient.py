"""The published gradient of a Bayesian network of discrete nodes by sampling, beside full inference.

    ∂Pr(X=x) / ∂θ_X  ≈ 1/S Σ_i ∂f_X(x, y_i) / ∂θ_X                                            its own parameters
    ∇Pr(X=x)         ≈ Σ_l Σ_{y_l} [1/S Σ_i f_X(x, (y_l, y_{i, −l}))] ∇Pr(P_l = y_l)           those of its ancestors

f_X(x, y) = Pr(X = x | P(X) = y), y_i one of S samples of the parents P(X), drawn from the roots on. The second line is
the product rule for parents that are independent, as all are in a polytree: its separator is empty. `inference` sums
over all joint values instead. The network that schedules has continuous nodes, whose gradients are pathwise (`belief`).
Reference: S. Banerjee et al., ICML 2020, section 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia_reproduction.symphony.belief import is_polytree


@dataclass(frozen=True, slots=True)
class DiscreteNode:
    """A node with its parents. `logits` (value of each parent …, value): f is their softmax over the last axis."""

    parents: tuple[str, ...]
    logits: Floats

    def chances(self) -> Floats:
        """Return f, of the shape of the logits."""
        weight = np.asarray(elementary.exp(self.logits - self.logits.max(axis=-1, keepdims=True)))
        return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


DiscreteNetwork = Mapping[str, DiscreteNode]  # parents before their children
Gradients = dict[str, Floats]  # by node: (value of the target, *shape of the node's logits)


def sampled(network: DiscreteNetwork, target: str, rng: np.random.Generator, samples: int) -> Gradients:
    """Return ∂Pr(target = x) / ∂θ. Raises ValueError for a network that is no polytree."""
    if not is_polytree({name: node.parents for name, node in network.items()}):
        raise ValueError("two nodes are joined by more than one path, so parents depend on each other; use inference")
    values: dict[str, Ints] = {}
    for name, node in network.items():
        chance = node.chances()[tuple(values[parent] for parent in node.parents)]
        levels = np.broadcast_to(np.cumsum(chance, axis=-1), (samples, node.logits.shape[-1]))
        values[name] = (rng.random(samples)[:, None] > levels[:, :-1]).sum(axis=1)
    return _gradients(network, target, values)


def _gradients(network: DiscreteNetwork, name: str, values: Mapping[str, Ints]) -> Gradients:
    """Return the gradients of Pr(name = x) by its own parameters and by those of its ancestors."""
    node = network[name]
    chance, above = node.chances(), [values[parent] for parent in node.parents]
    count = len(values[name])
    seen = np.zeros(chance.shape[:-1])
    np.add.at(seen, tuple(above), 1.0 if above else float(count))
    slope = chance[..., :, None] * (np.eye(chance.shape[-1]) - chance[..., None, :])  # (…, x, value of θ)
    found = {name: np.moveaxis(slope * (seen / count)[..., None, None], -2, 0)}
    for place, parent in enumerate(node.parents):
        for value in range(network[parent].logits.shape[-1]):
            others = [*above[:place], np.full(count, value), *above[place + 1 :]]
            weight = chance[tuple(others)].mean(axis=0)  # (x,)
            for ancestor, slopes in _gradients(network, parent, values).items():
                part = weight.reshape(-1, *[1] * (slopes.ndim - 1)) * slopes[value]
                found[ancestor] = found.get(ancestor, 0.0) + part
    return found


def inference(network: DiscreteNetwork, target: str) -> Gradients:
    """Return the same gradients exactly, by a sum over all joint values: the cost is exponential in the nodes."""
    chances = {name: node.chances() for name, node in network.items()}
    sizes = [node.logits.shape[-1] for node in network.values()]
    found = {name: np.zeros((network[target].logits.shape[-1], *node.logits.shape)) for name, node in network.items()}
    for joint in itertools.product(*map(range, sizes)):
        at = dict(zip(network, joint, strict=True))
        places = {name: tuple(at[parent] for parent in node.parents) for name, node in network.items()}
        chance = float(np.prod([chances[name][(*places[name], at[name])] for name in network]))
        for name, gradient in found.items():
            gradient[(at[target], *places[name])] -= chance * chances[name][places[name]]
            gradient[(at[target], *places[name], at[name])] += chance
    return found
