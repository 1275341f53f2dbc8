"""Training of the learned order: the remaining run time of a trace's jobs, from what is known while they run.

An example is a job of the trace at a moment of its run: at a share of its duration that is uniform in its logarithm, or
before its start. The history of its tenant is that of the jobs that would have ended by its submission. The first 80 %
of the jobs train, the later ones judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from eunomia.inputs.problems import refused
from eunomia.learning.model_file import Feature
from eunomia.learning.order.features import FEATURES, job_features, prior_mean
from eunomia.learning.order.policy import ARCHITECTURE
from eunomia.learning.torch_state import restore_torch, torch_state
from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats
from eunomia.scenario import Scenario
from eunomia.setup.workload import read_trace
from eunomia.traces import Trace

FEWEST = 500  # jobs of a trace to learn from
TRAINED = 0.8
SAMPLES = 4  # moments of each job
LONGEST_LOG_WAIT = 11.0  # the wait of an example is drawn, as it says nothing about the duration
BATCH = 512
LEARNING_RATE = 3e-3


def examples(trace: Trace, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return features, (job · moment, feature), and ln(1 + remaining s), (job · moment,)."""
    duration = np.asarray(trace.duration_s, dtype=float)
    size, submitted = trace.scale_factor, trace.submitted_s
    names = np.array(trace.tenant, dtype=object) if len(trace.tenant) else np.full(len(trace), "", dtype=object)
    past, count = np.zeros(len(trace)), np.zeros(len(trace))
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        ends = submitted[rows] + duration[rows]
        by_end = np.argsort(ends, kind="stable")
        logs = np.concatenate(([0.0], np.cumsum(elementary.log1p(duration[rows] * size[rows])[by_end])))
        ended = np.searchsorted(ends[by_end], submitted[rows], side="right")
        past[rows], count[rows] = prior_mean(ended.astype(float), logs[ended]), ended
    inputs, targets = [], []
    for moment in range(SAMPLES):
        share = rng.random(len(trace)) if moment else np.full(len(trace), -np.inf)
        ran = np.where(np.isneginf(share), 0.0, elementary.expm1(np.maximum(share, 0.0) * elementary.log1p(duration)))
        waited = elementary.expm1(LONGEST_LOG_WAIT * rng.random(len(trace)))
        at = submitted + waited + ran
        inputs.append(job_features(ran, size, past, count, ran + waited, at))
        targets.append(elementary.log1p(np.maximum(duration - ran, 0.0)))
    return np.concatenate(inputs), np.concatenate(targets)


class OrderTraining:
    """Trains the learned order on the trace of the scenario."""

    default_steps: ClassVar[int] = 1500
    judge_every: ClassVar[int] = 250
    features: tuple[Feature, ...] = FEATURES
    architecture: Mapping[str, Any] = ARCHITECTURE

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator):
        torch.set_num_threads(1)
        trace = read_trace(scenario)
        known = int(np.isfinite(trace.duration_s).sum())
        if known < max(len(trace), FEWEST):
            rule = f"it learns from the durations of at least {FEWEST} jobs, and {known:,} of {len(trace):,} have one"
            file, row = scenario.where(("workload",))
            raise refused(file, "workload", None, rule, "name a longer trace, with duration_s of every job", row=row)
        cut = int(TRAINED * len(trace))
        parts = [examples(trace.take(rows), rng) for rows in np.split(np.arange(len(trace)), [cut])]
        (self._x, self._y), (self._judged_x, self._judged_y) = [
            tuple(torch.tensor(one, dtype=torch.float32) for one in part) for part in parts
        ]
        self._rng = rng
        torch.manual_seed(int(rng.integers(2**31)))
        sizes = ARCHITECTURE["remaining"]
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1]), nn.ReLU()]
        self._net = nn.Sequential(*layers[:-1])
        with torch.no_grad():
            self._net[-1].bias.fill_(float(self._y.mean()))
        self._optimizer = torch.optim.Adam(self._net.parameters(), lr=LEARNING_RATE)
        self._steps = steps

    def train(self, step: int) -> None:
        """Learn from one batch."""
        for group in self._optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - step / max(self._steps, 1)) + 1e-4
        rows = torch.tensor(self._rng.integers(0, len(self._y), BATCH))
        loss = nn.functional.mse_loss(self._net(self._x[rows])[:, 0], self._y[rows])
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def judge(self) -> Mapping[str, float]:
        """Return the part of the variance of ln(remaining) that is explained, on the later jobs."""
        with torch.no_grad():
            error = nn.functional.mse_loss(self._net(self._judged_x)[:, 0], self._judged_y)
        return {"explained_variance": 1 - float(error / self._judged_y.var())}

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        linear = [one for one in self._net if isinstance(one, nn.Linear)]
        weights = {f"remaining.{k}.weight": one.weight.detach().numpy().T.copy() for k, one in enumerate(linear)}
        return {**weights, **{f"remaining.{k}.bias": one.bias.detach().numpy() for k, one in enumerate(linear)}}

    def state(self) -> dict[str, Array]:
        """Return the weights and the optimiser's moments."""
        return torch_state(self._net, self._optimizer)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        restore_torch(self._net, self._optimizer, state)
