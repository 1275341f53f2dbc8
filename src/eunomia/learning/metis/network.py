"""Metis' network, and repeated inference: one node, or one step of a job's sizes, at a time.

    h_i = MLP(job i),  c = MLP(mean of h, cluster),  logit_i = MLP(h_i, c) + β g_i,  logit_∅ = MLP(c)
    n_free = M;  while n_free > 0:  a = argmax logits;  if a = ∅: stop;  widen job a

g_i is the logarithm of the loss that the next step saves, as a feature: with MLPs that answer 0, as at the beginning of
training, the network is the rule of SLAQ without a node for every job first (`baselines.steepest`). Layers are shared
by all jobs, so the network takes any number of them, and swapping two rows swaps their logits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.learning.metis.slot_state import FEATURES, PER_JOB, SlotState
from eunomia.learning.model_file import ModelFile
from eunomia.learning.perceptron import Perceptron, best_row
from eunomia.model.arrays import Array, Floats, Ints

WIDTH = 16
BETA = 30.0  # at the beginning of training
GAIN = [one.name for one in FEATURES].index("decrease_of_next")
ARCHITECTURE = {
    "job": [PER_JOB, WIDTH, WIDTH],
    "context": [WIDTH + 2, WIDTH],
    "job_logit": [2 * WIDTH, WIDTH, 1],
    "stop_logit": [WIDTH, WIDTH, 1],
}


@dataclass(frozen=True, slots=True)
class MetisNetwork:
    """The policy network in float64, with the same bits on every machine."""

    parts: dict[str, Perceptron]
    beta: float = BETA

    @classmethod
    def of(cls, model: ModelFile) -> MetisNetwork:
        """Return the network of a model. Raises InvalidInput for one of other features or layers."""
        model.check_features(FEATURES)
        parts = {name: Perceptron.of(model, name) for name in ARCHITECTURE}
        return cls(parts, float(model.floats("beta", (1,))[0]))

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> MetisNetwork:
        """Return an untrained network."""
        return cls({name: Perceptron.drawn(sizes, rng) for name, sizes in ARCHITECTURE.items()})

    def arrays(self) -> dict[str, Array]:
        """Return its arrays as a model file names them."""
        arrays = {key: array for name, part in self.parts.items() for key, array in part.arrays(name).items()}
        return {**arrays, "beta": np.array([self.beta])}

    def logits(self, jobs: Floats, cluster: Floats) -> Floats:
        """Return the logits of the jobs (job, feature) and, last, of ∅; cluster (2,)."""
        hidden = np.maximum(self.parts["job"](jobs), 0.0)
        pooled = np.concatenate((np.mean(hidden, axis=0), cluster))[None]
        context = np.maximum(self.parts["context"](pooled), 0.0)
        both = np.concatenate((hidden, np.broadcast_to(context, (len(jobs), WIDTH))), axis=1)
        of_jobs = self.parts["job_logit"](both)[:, 0] + self.beta * jobs[:, GAIN]
        return np.concatenate((of_jobs, self.parts["stop_logit"](context)[0]))

    def allocate(self, state: SlotState) -> Ints:
        """Return the step of each job's ladder, (job,)."""
        step = np.zeros(state.jobs, dtype=np.int64)
        while (allowed := state.allowed(step)).any():
            scores = self.logits(*state.encode(step))
            chosen = best_row(scores, np.append(allowed, True))
            if chosen == state.jobs:
                break
            step[chosen] += 1
        return step
