"""Training of Metis: actor–critic with the delayed reward of each slot, from a network that begins as a greedy rule.

All decisions of slot t, ∅ included, get the same return G_t = Σ_u γ^u R_{t+u}; γ counts slots, not decisions. R is the
decrease of the normalised loss in the slot, or minus the time that jobs spend in it short of 90 % of their quality, and
a tenth of what the others spend in it: without that nothing would end them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from eunomia.inputs.problems import refused
from eunomia.learning.metis.baselines import drf
from eunomia.learning.metis.network import ARCHITECTURE, BETA, GAIN, WIDTH, MetisNetwork
from eunomia.learning.metis.slot_state import FEATURES, PER_JOB, SlotState
from eunomia.learning.metis.slot_world import ElasticJobs, SlotWorld, draw_jobs, play
from eunomia.learning.model_file import Feature
from eunomia.learning.torch_state import perceptron_of, restore_torch, torch_state
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.scenario import Scenario

GAMMA = 0.95
EPISODES, JOBS = 3, 20  # of a step
LOADS = (0.5, 1.2)
BATCH = 256
LEARNING_RATE = 1e-3
ENTROPY = (0.01, 0.001)
REWARDS = ("loss", "time")  # of a slot: decrease of the loss, or minus the slots that jobs spend
TIME_SCALE = 0.1  # so that both rewards of a slot are about as large
BEYOND = 0.1  # what a slot beyond 90 % quality counts
JUDGED = 6  # traces on which the best model is chosen; their seeds are far from those of training
JUDGED_FROM = 900_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDecision:
    """One inference: features, what was allowed and chosen (∅ is the last), and its slot."""

    jobs: Floats
    cluster: Floats
    allowed: Bools
    chosen: int
    slot: int


def slot_returns(rewards: Sequence[float], gamma: float = GAMMA) -> Floats:
    """Return G_t of each slot."""
    found, after = np.zeros(len(rewards)), 0.0
    for slot in range(len(rewards) - 1, -1, -1):
        after = rewards[slot] + gamma * after
        found[slot] = after
    return found


def episode(
    jobs: ElasticJobs, nodes: int, choose: Callable[[SlotState, Ints, Floats, Floats, Bools], int], reward: str = "loss"
) -> tuple[list[SlotDecision], list[float]]:
    """Play a workload by repeated inference; return the decisions and the reward of each slot, one of `REWARDS`."""
    world, decisions, rewards = SlotWorld(jobs, nodes), [], []
    while not world.finished and world.at < 2000:
        state = world.state()
        step = np.zeros(state.jobs, dtype=np.int64)
        while state.jobs and (some := state.allowed(step)).any():
            features, cluster = state.encode(step)
            allowed = np.append(some, True)
            chosen = choose(state, step, features, cluster, allowed)
            decisions.append(
                SlotDecision(jobs=features, cluster=cluster, allowed=allowed, chosen=chosen, slot=world.at)
            )
            if chosen == state.jobs:
                break
            step[chosen] += 1
        before = world.slots_spent(BEYOND)
        decrease = world.advance(state.allocated(step) if state.jobs else np.zeros(0, dtype=np.int64))
        rewards.append(decrease if reward == "loss" else TIME_SCALE * (before - world.slots_spent(BEYOND)))
    return decisions, rewards


class _Net(nn.Module):
    """The network of `metis.network` with a value, on padded batches."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({name: _layers(sizes) for name, sizes in ARCHITECTURE.items()})
        self.value = _layers([WIDTH, WIDTH, 1])
        self.beta = nn.Parameter(torch.tensor([BETA]))
        for name in ("job_logit", "stop_logit"):
            nn.init.zeros_(self.parts[name][-1].weight)
            nn.init.zeros_(self.parts[name][-1].bias)

    def forward(self, jobs: Any, cluster: Any, real: Any) -> tuple[Any, Any]:
        """Return logits (state, job + 1), ∅ last, and values (state,)."""
        hidden = torch.relu(self.parts["job"](jobs)) * real[..., None]
        pooled = hidden.sum(1) / real.sum(1, keepdim=True)
        context = torch.relu(self.parts["context"](torch.cat((pooled, cluster), 1)))
        both = torch.cat((hidden, context[:, None].expand(-1, jobs.shape[1], -1)), 2)
        logits = torch.cat(
            (self.parts["job_logit"](both)[..., 0] + self.beta * jobs[..., GAIN], self.parts["stop_logit"](context)), 1
        )
        return logits, self.value(context)[:, 0]


def _layers(sizes: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for k in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[k], sizes[k + 1]), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class MetisTraining:
    """Trains Metis in the slotted world; the scenario's accelerators are its nodes."""

    default_steps: ClassVar[int] = 160
    judge_every: ClassVar[int] = 20
    features: tuple[Feature, ...] = FEATURES
    architecture: Mapping[str, Any] = ARCHITECTURE

    def __init__(
        self, scenario: Scenario, steps: int, rng: np.random.Generator, reward: str = "loss", plateaus: bool = False
    ):
        torch.set_num_threads(1)
        self._reward, self._plateaus = reward, plateaus
        self._nodes = int(sum(node.count * node.accelerators for node in scenario.cluster.nodes))
        if not 2 <= self._nodes <= 512:
            file, row = scenario.where(("cluster",))
            rule = "Metis trains on 2 to 512 accelerators, which are its nodes"
            raise refused(file, "cluster", self._nodes, rule, "give a smaller cluster", row=row)
        self._steps, self._rng = steps, rng
        torch.manual_seed(int(rng.integers(2**31)))
        self._net = _Net()
        self._optimizer = torch.optim.Adam(self._net.parameters(), lr=LEARNING_RATE)
        self._judged = [
            self._draw(np.random.default_rng(JUDGED_FROM + k), load)
            for k, load in enumerate(np.linspace(*LOADS, JUDGED).tolist())
        ]
        self._reference = [play(jobs, self._nodes, drf).mean_time for jobs in self._judged]

    def _draw(self, rng: np.random.Generator, load: float) -> ElasticJobs:
        return draw_jobs(rng, jobs=JOBS, nodes=self._nodes, load=load, plateaus=self._plateaus)

    def train(self, step: int) -> None:
        """Play some episodes and learn from their decisions."""
        decisions: list[SlotDecision] = []
        returns: list[Floats] = []
        network = self.network(np.matmul)

        def sample(state: SlotState, at: Ints, features: Floats, cluster: Floats, allowed: Bools) -> int:
            logits = np.where(allowed, network.logits(features, cluster), -np.inf)
            chances = np.exp(logits - logits.max()).cumsum()
            return int(np.searchsorted(chances, self._rng.random() * chances[-1], side="right"))

        for _ in range(EPISODES):
            jobs = self._draw(self._rng, self._rng.uniform(*LOADS))
            made, rewards = episode(jobs, self._nodes, sample, self._reward)
            decisions += made
            returns.append(slot_returns(rewards)[[one.slot for one in made]])
        self._learn(decisions, np.concatenate(returns), step)

    def _learn(self, decisions: list[SlotDecision], returns: Floats, step: int) -> None:
        batch = _batch(decisions)
        target = torch.tensor(returns, dtype=torch.float32)
        left = 1 - step / max(self._steps, 1)
        entropy = ENTROPY[1] + (ENTROPY[0] - ENTROPY[1]) * left
        with torch.no_grad():
            advantage = target - self._net(*batch[:3])[1]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        order = torch.tensor(self._rng.permutation(len(decisions)))
        for rows in order.split(BATCH):
            loss = self._loss(entropy, *(one[rows] for one in (*batch, advantage, target)))
            self._optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self._net.parameters(), 1.0)
            self._optimizer.step()

    def _loss(
        self, entropy: float, jobs: Any, cluster: Any, real: Any, allowed: Any, chosen: Any, advantage: Any, target: Any
    ) -> Any:
        """Return −A log π − β H(π) + ½ (G − V)², the mean over the decisions."""
        logits, value = self._net(jobs, cluster, real)
        log = torch.log_softmax(logits.masked_fill(~allowed, -1e9), 1)
        taken = log.gather(1, chosen[:, None])[:, 0]
        spread = -(log.exp() * log.masked_fill(~allowed, 0.0)).sum(1)
        loss = -(advantage * taken).mean() - entropy * spread.mean()
        return loss + 0.5 * nn.functional.mse_loss(value, target)

    def judge(self) -> Mapping[str, float]:
        """Return how much sooner than with equal shares 90 % of the quality is reached, on the judged traces."""
        network = self.network()
        runs = [play(jobs, self._nodes, network.allocate).mean_time for jobs in self._judged]
        ratio = float(np.mean(np.array(runs) / self._reference))
        return {"gain_over_equal_shares": 1 - ratio}

    def network(self, product: Callable[[Floats, Floats], Floats] = dot) -> MetisNetwork:
        """Return the present network for inference; its products are exact, or those of training."""
        parts = {name: perceptron_of(self._net.parts[name], product) for name in ARCHITECTURE}
        return MetisNetwork(parts, float(self._net.beta.detach()[0]))

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        return self.network().arrays()

    def state(self) -> dict[str, Array]:
        """Return the weights and the optimiser's moments."""
        return torch_state(self._net, self._optimizer)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        restore_torch(self._net, self._optimizer, state)


def _batch(decisions: Sequence[SlotDecision]) -> tuple[Any, Any, Any, Any, Any]:
    """Return padded features, cluster features, real jobs, what is allowed, and what was chosen; ∅ is the last."""
    most = max(len(one.jobs) for one in decisions)
    count = len(decisions)
    jobs, real = np.zeros((count, most, PER_JOB), dtype=np.float32), np.zeros((count, most), dtype=np.float32)
    allowed, chosen = np.zeros((count, most + 1), dtype=bool), np.zeros(count, dtype=np.int64)
    for row, one in enumerate(decisions):
        n = len(one.jobs)
        jobs[row, :n], real[row, :n], allowed[row, :n], allowed[row, most] = one.jobs, 1, one.allowed[:n], True
        chosen[row] = one.chosen if one.chosen < n else most
    cluster = np.stack([one.cluster for one in decisions]).astype(np.float32)
    return tuple(torch.from_numpy(one) for one in (jobs, cluster, real, allowed, chosen))
