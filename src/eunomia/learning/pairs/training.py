"""Training of the pairs network: how beliefs about pairs err, from a table whose pairs are all measured.

An example is a draw from the table: some job types are references, whose pairs are known, and of the others a fifth of
the pairs with references is profiled. The estimator's belief about each pair of a job type that is no reference is the
input, and its error the target. A quarter of the job types are left out of training; draws of the whole table judge, by
the pairs in which one of these is new. The network begins as no correction at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from eunomia.inputs.problems import refused
from eunomia.learning.model_file import Feature
from eunomia.learning.pairs.features import FEATURES, LEAST, corrected, pair_features
from eunomia.learning.pairs.policy import ARCHITECTURE
from eunomia.learning.perceptron import Perceptron
from eunomia.learning.torch_state import layers_of, perceptron_of, restore_torch, torch_state
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.scenario import Scenario
from eunomia.throughputs import read_table
from eunomia.throughputs.estimators.judging import JudgeSettings, judge
from eunomia.throughputs.estimators.pair_table import PairTable

FEWEST = 8  # job types of a table to learn from
HELD_OUT, REFERENCES = 0.25, 0.6  # of the job types
DRAWS, JUDGED = 24, 4
PROFILED = 0.2
BATCH, LEARNING_RATE, DECAY = 512, 3e-4, 3.0


def draw_beliefs(table: PairTable, references: int, seed: int) -> tuple[Floats, Floats, Bools]:
    """Return believed and true kept, (job type, type, partner), and which pairs are estimates that fit."""
    found = judge(table, JudgeSettings(references=references, profiled=PROFILED, choose="telling", seed=seed))
    known = np.isin(np.arange(len(found.truth)), found.references)
    fits = found.truth > 0
    estimated = fits & ~(known[:, None, None] & known[None, None, :])
    believed = np.where(estimated, np.clip(found.raw, LEAST, 1.0), np.nan_to_num(found.truth))
    return np.where(fits, believed, 0.0), found.truth, estimated


class PairsTraining:
    """Trains the pairs network on the table of the scenario."""

    default_steps: ClassVar[int] = 400
    judge_every: ClassVar[int] = 50
    features: tuple[Feature, ...] = FEATURES
    architecture: Mapping[str, Any] = ARCHITECTURE

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator):
        table = PairTable.of(read_table(scenario.throughputs.source, scenario.base))
        if len(table.job_types) < FEWEST:
            rule = f"it learns from at least {FEWEST} job types that run on every type, and there are"
            file, row = scenario.where(("throughputs", "source"))
            count = len(table.job_types)
            raise refused(file, "source", count, f"{rule} {count}", "name a larger table of measured pairs", row=row)
        self.begin(table, steps, rng)

    @classmethod
    def on(cls, table: PairTable, steps: int, rng: np.random.Generator) -> PairsTraining:
        """Return the training on a table that is at hand."""
        work = cls.__new__(cls)
        work.begin(table, steps, rng)
        return work

    def begin(self, table: PairTable, steps: int, rng: np.random.Generator) -> None:
        """Draw the beliefs to learn from and those that judge."""
        torch.set_num_threads(1)
        count = len(table.job_types)
        order = rng.permutation(count)
        held, kept = np.sort(order[: round(HELD_OUT * count)]), np.sort(order[round(HELD_OUT * count) :])
        part = rows_of(table, kept)
        inputs, targets = [], []
        for _ in range(DRAWS):
            believed, truth, estimated = draw_beliefs(part, round(REFERENCES * len(kept)), int(rng.integers(2**31)))
            inputs.append(pair_features(believed)[estimated])
            targets.append((truth - believed)[estimated])
        self._x, self._y = (torch.tensor(np.concatenate(one), dtype=torch.float32) for one in (inputs, targets))
        self._judged = []
        for _ in range(JUDGED):
            believed, truth, estimated = draw_beliefs(table, round(REFERENCES * count), int(rng.integers(2**31)))
            unseen = np.isin(np.arange(count), held)
            self._judged.append((believed, truth, estimated & (unseen[:, None, None] | unseen[None, None, :])))
        start = Perceptron.drawn(ARCHITECTURE["correction"], rng)
        start = Perceptron((*start.weights[:-1], np.zeros_like(start.weights[-1])), start.biases)
        self._net, self._rng, self._steps = layers_of(start), rng, steps
        self._optimizer = torch.optim.AdamW(self._net.parameters(), lr=LEARNING_RATE, weight_decay=DECAY)

    def train(self, step: int) -> None:
        """Learn from one batch."""
        for group in self._optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - step / max(self._steps, 1))
        rows = torch.tensor(self._rng.integers(0, len(self._y), BATCH))
        loss = nn.functional.mse_loss(self._net(self._x[rows])[:, 0], self._y[rows])
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    @property
    def network(self) -> Perceptron:
        """The present network."""
        return perceptron_of(self._net)

    def judge(self) -> Mapping[str, float]:
        """Return by how much the correction reduces the mean squared error of the beliefs about unseen job types."""
        errors = np.zeros(2)
        for believed, truth, judged in self._judged:
            for k, kept in enumerate((believed, corrected(self.network, believed))):
                errors[k] += np.square(kept - truth)[judged].sum()
        return {"error_reduction": float(1.0 - errors[1] / errors[0])}

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        return self.network.arrays("correction")

    def state(self) -> dict[str, Array]:
        """Return the weights and the optimiser's moments."""
        return torch_state(self._net, self._optimizer)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        restore_torch(self._net, self._optimizer, state)


def rows_of(table: PairTable, rows: Ints) -> PairTable:
    """Return the table of some of its job types."""
    names = tuple(table.job_types[row] for row in rows.tolist())
    kept = table.kept[np.ix_(rows, np.arange(len(table.types)), rows)]
    return PairTable(table.name, table.types, names, table.alone[rows], kept)
