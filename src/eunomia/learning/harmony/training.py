"""Harmony's training: a reward model, imitation of the placer that it suggests, then actor-critic with replay.

    1. Reward model R(x, w, p, d): trained on random placements to the relative error |c − c'| / c of the speeds.
    2. Warm start: the policy imitates the placer that puts each task where R predicts the largest Σ of speeds.
    3. For each trace: actions are drawn from the policy, and with probability ε by bin packing or load balancing
       (job-aware exploration); R plays the intervals; A = Q − V, Q = Σ γ^k r[t+k];
       θ by A log π + β H(π), V by (Q − V)², on mini-batches of a FIFO replay buffer. The importance weights
       π / behaviour are clipped at 2.

All actions of an interval share its reward r = Σ c / e. The discount γ rewards speed: without it every policy has the
same return. Every trace's jobs and draws come from one generator. Reference: Y. Bao et al., INFOCOM 2019, section V;
steps 2 and the clipping are ours.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from eunomia.learning.harmony.baselines import load_balancing, tetris
from eunomia.learning.harmony.state import (
    PlacementState,
    action_features,
    job_features,
    normalised,
    place_all,
    see_actions,
    see_jobs,
)
from eunomia.learning.harmony.world import PsCluster, WorldConfig, draw_trace, run_trace
from eunomia.learning.model_file import Feature
from eunomia.learning.perceptron import Perceptron
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.scenario import Scenario

torch.set_num_threads(1)

LAYERS = (128, 64)  # hidden layers of the policy
REWARD_LAYERS = (96, 64)
VALUE_LAYERS = (64,)
GAMMA, ENTROPY, CLIP = 0.9, 0.002, 2.0
BATCH, REPLAY = 256, 8192
EPSILON = (0.3, 0.05)  # from, to; linear over the first half of the actor-critic
RATES = {"reward": 3e-3, "imitation": 1e-3, "actor": 3e-5, "critic": 1e-3}
FOLLOW = 0.05  # of each mini-batch in the moving average of Q
CRITIC_ALONE = 0.1  # part of the third stage in which only the critic learns
PLACEMENTS = 4000  # that the reward model sees; a fifth is held out
JUDGED = tuple(range(900_001, 900_007))  # seeds of the traces by which the best model is chosen


class Network(nn.Module):
    """A perceptron whose weights are drawn by a numpy generator."""

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        super().__init__()
        drawn = Perceptron.drawn(sizes, rng)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        for layer, weight in zip(self.layers, drawn.weights, strict=True):
            layer.weight.data = torch.tensor(weight.T, dtype=torch.float32)
            layer.bias.data.zero_()

    def forward(self, rows: Any) -> Any:
        *hidden, last = self.layers
        for layer in hidden:
            rows = torch.relu(layer(rows))
        return last(rows)

    def arrays(self, name: str) -> dict[str, Array]:
        """Return its arrays as a model file names them."""
        found: dict[str, Array] = {}
        for k, layer in enumerate(self.layers):
            found[f"{name}.{k}.weight"] = layer.weight.detach().numpy().T.copy()
            found[f"{name}.{k}.bias"] = layer.bias.detach().numpy().copy()
        return found


class RewardModel:
    """R: the speed of each job of a placement, over its speed alone.

    speed = min over its servers m of exp(−softplus(f(job, m))), f a perceptron of the job and of what is beside it.
    """

    def __init__(self, config: WorldConfig, rng: np.random.Generator) -> None:
        self.config, self.features = config, job_features(config.truth.types)
        self.network = Network((len(self.features), *REWARD_LAYERS, 1), rng)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=RATES["reward"])
        self._data: tuple[Any, Any, Any] | None = None  # inputs, servers that count, speeds; a row a job

    def speeds(self, seen: Any, used: Any) -> Any:
        """Return speeds (…) of inputs (…, M, feature); `used` (…, M) marks the servers with tasks of the job."""
        slow = nn.functional.softplus(self.network(seen)[..., 0])
        return torch.exp(-torch.where(used, slow, torch.zeros(())).amax(dim=-1))

    def predict(self, x: Floats, d: Floats) -> Floats:
        """Return the speed of each job of a placement, (N,)."""
        seen, used = see_jobs(x, d)
        with torch.no_grad():
            rows = torch.tensor(normalised(seen, self.features), dtype=torch.float32)
            return np.asarray(self.speeds(rows, torch.tensor(used)).numpy(), dtype=np.float64)

    def train(self, rng: np.random.Generator, batches: int = 25) -> None:
        """Do mini-batches of SGD on the four fifths that are not held out."""
        seen, used, speed = self.data()
        known = len(seen) * 4 // 5
        for _ in range(batches):
            rows = torch.tensor(rng.integers(0, known, BATCH))
            loss = ((self.speeds(seen[rows], used[rows]) - speed[rows]).abs() / speed[rows]).mean()
            _step(self.optimiser, loss)

    def held_out(self) -> Floats:
        """Return the relative errors of the held-out jobs."""
        seen, used, speed = self.data()
        known = len(seen) * 4 // 5
        with torch.no_grad():
            found = self.speeds(seen[known:], used[known:])
        return np.asarray(((found - speed[known:]).abs() / speed[known:]).numpy())

    def data(self) -> tuple[Any, Any, Any]:
        """Return the measured placements: random jobs at random places of a busy cluster."""
        if self._data is None:
            rng, parts = np.random.default_rng(71), list[tuple[Floats, Bools, Floats]]()
            while sum(len(one[2]) for one in parts) < PLACEMENTS * 4:
                parts.append(random_placement(self.config, rng))
            seen, used, speed = (np.concatenate([one[k] for one in parts]) for k in range(3))
            rows = torch.tensor(normalised(seen, self.features), dtype=torch.float32)
            self._data = rows, torch.tensor(used), torch.tensor(speed, dtype=torch.float32)
        return self._data


def random_placement(config: WorldConfig, rng: np.random.Generator) -> tuple[Floats, Bools, Floats]:
    """Return the inputs, the servers that count and the true relative speed of each job of a random placement."""
    cluster = PsCluster(config, draw_trace(config, int(rng.integers(2**31))))
    rows = np.sort(rng.choice(len(cluster.left), size=min(int(rng.integers(1, 13)), len(cluster.left)), replace=False))
    state = cluster.state(rows)
    placed = place_all(state, lambda _, actions: int(rng.integers(len(actions))))
    cluster.adopt(rows, state, placed)
    running = rows[placed]
    seen, used = see_jobs(cluster.x[running], cluster.tasks[:, running].reshape(len(config.capacity), -1))
    return seen, used, cluster.speeds(running) * cluster.trace.alone[running]


@dataclass(frozen=True)
class Decision:
    """One inference, as the replay buffer keeps it."""

    seen: Floats  # (action, feature)
    chosen: int
    likelihood: float  # of the behaviour
    state: Floats  # of the value network
    interval: int
    value: float = 0.0  # Q


class _Training:
    """What both trainings share: the world, and networks with their optimisers as arrays."""

    judge_every: ClassVar[int] = 20

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator) -> None:
        self.config, self.steps, self.rng = WorldConfig.of(scenario), steps, rng
        self.reward_model = RewardModel(self.config, rng)
        self.parts: dict[str, tuple[Network, Any]] = {
            "reward": (self.reward_model.network, self.reward_model.optimiser)
        }

    def state(self) -> dict[str, Array]:
        """Return weights and moments of every network."""
        found: dict[str, Array] = {}
        for name, (network, optimiser) in self.parts.items():
            for k, weight in enumerate(network.parameters()):
                moments = optimiser.state.get(weight, {})
                found[f"{name}.{k}"] = weight.detach().numpy().copy()
                found |= {f"{name}.{k}.{key}": np.atleast_1d(value.numpy()).copy() for key, value in moments.items()}
        return found

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        for name, (network, optimiser) in self.parts.items():
            for k, weight in enumerate(network.parameters()):
                weight.data = torch.tensor(state[f"{name}.{k}"])
                keys = [key.rpartition(".")[2] for key in state if key.startswith(f"{name}.{k}.")]
                if keys:
                    moments = {key: torch.tensor(state[f"{name}.{k}.{key}"]) for key in keys}
                    optimiser.state[weight] = {**moments, "step": moments["step"][0]}


class RewardModelTraining(_Training):
    """`eunomia train reward-model`: R alone."""

    default_steps: ClassVar[int] = 200

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator) -> None:
        super().__init__(scenario, steps, rng)
        self.features: tuple[Feature, ...] = self.reward_model.features
        sizes = [len(self.features), *REWARD_LAYERS, 1]
        self.architecture: Mapping[str, Any] = {"reward": sizes, "types": list(self.config.truth.types)}

    def train(self, step: int) -> None:
        """Do some mini-batches."""
        self.reward_model.train(self.rng)

    def judge(self) -> dict[str, float]:
        """Return the held-out error."""
        errors = self.reward_model.held_out()
        return {"accuracy": 1.0 - float(errors.mean()), "relative_error": float(errors.mean()),
                "relative_error_p90": float(np.quantile(errors, 0.9))}  # fmt: skip

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        return self.reward_model.network.arrays("reward")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingParts:
    """Which parts of the training are used: each may be left out, to measure what it is worth; and the actor's rate."""

    warm_start: bool = True  # without: its steps go to the actor-critic
    value_network: bool = True  # without: the baseline of A is the moving average of Q
    exploration: bool = True  # of the heuristics' actions
    replay: bool = True  # without: mini-batches are of the last trace
    reward_model: bool = True  # without: the actor-critic plays against the true speeds
    actor_rate: float = RATES["actor"]  # learning rate of the policy in the actor-critic


class HarmonyTraining(_Training):
    """`eunomia train harmony`: the three stages take 30, 20 and 50 per cent of the steps."""

    default_steps: ClassVar[int] = 240

    def __init__(
        self, scenario: Scenario, steps: int, rng: np.random.Generator, use: TrainingParts = TrainingParts()
    ) -> None:
        super().__init__(scenario, steps, rng)
        self.use = use
        types = self.config.truth.types
        self.features: tuple[Feature, ...] = action_features(types)
        sizes = [len(self.features), *LAYERS, 1]
        self.architecture: Mapping[str, Any] = {"policy": sizes, "types": list(types)}
        self.policy = Network(sizes, rng)
        self.value = Network((4 + 2 * len(types), *VALUE_LAYERS, 1), rng)
        self.actor = torch.optim.Adam(self.policy.parameters(), lr=RATES["imitation"])
        self.critic = torch.optim.Adam(self.value.parameters(), lr=RATES["critic"])
        self.parts |= {"policy": (self.policy, self.actor), "value": (self.value, self.critic)}
        self.replay: deque[Decision] = deque(maxlen=REPLAY)
        self._average = 0.0  # of Q, moving
        self._best_baseline: list[float] = []

    @property
    def stages(self) -> tuple[int, int]:
        """The steps at which imitation and actor-critic begin."""
        return int(0.3 * self.steps), int((0.5 if self.use.warm_start else 0.3) * self.steps)

    def train(self, step: int) -> None:
        """Do one step of the stage that it is in; a step of the later ones is a trace."""
        if step % self.judge_every == 0 or step == self.stages[1]:
            self.replay.clear()  # so that a resumed training is the same; what was imitated has no Q
        if step < self.stages[0]:
            self.reward_model.train(self.rng)
        elif step < self.stages[1]:
            self._imitate()
        else:
            self._improve((step - self.stages[1]) / max(self.steps - self.stages[1], 1))

    def judge(self) -> dict[str, float]:
        """Return the gain in mean JCT over the better of load balancing and packing, on traces kept for that."""
        traces = [draw_trace(self.config, seed) for seed in JUDGED]
        if not self._best_baseline:
            means = [[run_trace(self.config, one, by).mean_jct() for one in traces] for by in (load_balancing, tetris)]
            self._best_baseline = [min(float(np.mean(one)) for one in means)]
        ours = float(np.mean([run_trace(self.config, one, self.choose).mean_jct() for one in traces]))
        return {"gain": 1.0 - ours / self._best_baseline[0], "mean_jct_intervals": ours,
                "reward_model_error": float(self.reward_model.held_out().mean())}  # fmt: skip

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model: the policy alone."""
        return self.policy.arrays("policy")

    # ---- acting ----------------------------------------------------------------------------------------------------

    def _scores(self, seen: Floats) -> Floats:
        with torch.no_grad():
            rows = torch.from_numpy(seen.astype(np.float32))
            return np.asarray(self.policy(rows)[:, 0].numpy(), dtype=np.float64)

    def _chances(self, seen: Floats) -> Floats:
        """Return π of each action."""
        return np.asarray(torch.softmax(torch.from_numpy(self._scores(seen)), 0).numpy())

    def _see(self, state: PlacementState, actions: Ints) -> Floats:
        return normalised(see_actions(state, actions), self.features)

    def choose(self, state: PlacementState, actions: Ints) -> int:
        """Return the likeliest action."""
        return int(np.argmax(self._scores(self._see(state, actions))))

    def _teacher(self, state: PlacementState, actions: Ints) -> int:
        """Return the action after which R predicts the largest Σ of speeds, of the first job's first kind of task."""
        rows = np.flatnonzero((actions[:, 0] == actions[0, 0]) & (actions[:, 1] == actions[0, 1]))
        here = np.flatnonzero(state.tasks.any(axis=(0, 2)))
        jobs = np.union1d(here, actions[0, :1])
        seen, used = [], []
        for n, k, m in actions[rows]:
            tasks = state.tasks.copy()
            tasks[m, n, k] += 1
            one, by = see_jobs(state.x[jobs], tasks[:, jobs].reshape(len(tasks), -1))
            seen.append(one)
            used.append(by)
        with torch.no_grad():
            inputs = torch.tensor(normalised(np.array(seen), self.reward_model.features), dtype=torch.float32)
            speeds = self.reward_model.speeds(inputs, torch.tensor(np.array(used)))
        return int(rows[int(torch.argmax(speeds.sum(dim=1)))])

    # ---- stages ------------------------------------------------------------------------------------------------------

    def _imitate(self) -> None:
        """Play a trace as the teacher does, and raise the likelihood of what it did."""

        def choose(state: PlacementState, actions: Ints) -> int:
            chosen = self._teacher(state, actions)
            self.replay.append(Decision(self._see(state, actions), chosen, 1.0, np.zeros(1), 0))
            return chosen

        run_trace(self.config, draw_trace(self.config, int(self.rng.integers(2**31))), choose)
        for _ in range(8):
            batch = self._sample()
            log, _ = self._log_likelihoods(batch)
            _step(self.actor, -log.mean())

    def _improve(self, progress: float) -> None:
        """Play a trace against the reward model, and take four steps of actor and critic."""
        for group in self.actor.param_groups:
            group["lr"] = self.use.actor_rate
        epsilon = EPSILON[0] + (EPSILON[1] - EPSILON[0]) * min(2 * progress, 1.0) if self.use.exploration else 0.0
        if not self.use.replay:
            self.replay.clear()
        self.replay.extend(self._episode(epsilon))
        for _ in range(4):
            batch = self._sample()
            log, entropy = self._log_likelihoods(batch)
            states = torch.tensor(np.array([one.state for one in batch]), dtype=torch.float32)
            target = torch.tensor([one.value for one in batch], dtype=torch.float32)
            value = self.value(states)[:, 0]
            self._average += FOLLOW * (float(target.mean()) - self._average)
            gain = target - (value.detach() if self.use.value_network else self._average)
            gain = gain / (gain.std() + 1e-6)
            before = torch.tensor([one.likelihood for one in batch], dtype=torch.float32)
            weight = (log.detach().exp() / before).clamp(max=CLIP)
            if progress >= CRITIC_ALONE:
                _step(self.actor, -(weight * gain * log).mean() - ENTROPY * entropy.mean())
            _step(self.critic, ((target - value) ** 2).mean())

    def _episode(self, epsilon: float) -> list[Decision]:
        """Return the decisions of one trace, each with its Q."""
        cluster = PsCluster(self.config, draw_trace(self.config, int(self.rng.integers(2**31))))
        decisions: list[Decision] = []
        rewards: list[float] = []

        def choose(state: PlacementState, actions: Ints) -> int:
            seen = self._see(state, actions)
            chances = self._chances(seen)
            heuristic = (tetris, load_balancing)[int(self.rng.integers(2))](state, actions)
            explores = self.rng.random() < epsilon
            chosen = heuristic if explores else int(self.rng.choice(len(actions), p=chances))
            likelihood = (1 - epsilon) * chances[chosen] + epsilon * (0.5 if chosen == heuristic else 0.0)
            decisions.append(Decision(seen, chosen, max(float(likelihood), 1e-3), _summary(state), len(rewards)))
            return chosen

        while not cluster.over:
            rows = cluster.place(choose)
            rewards.append(cluster.play(rows, self._speeds(cluster, rows) if self.use.reward_model else None))
        values, value = np.zeros(len(rewards)), 0.0
        for t in range(len(rewards) - 1, -1, -1):
            value = values[t] = rewards[t] + GAMMA * value
        return [
            Decision(one.seen, one.chosen, one.likelihood, one.state, one.interval, float(values[one.interval]))
            for one in decisions
        ]

    def _speeds(self, cluster: PsCluster, rows: Ints) -> Floats:
        tasks = cluster.tasks[:, rows].reshape(len(cluster.tasks), -1)
        return self.reward_model.predict(cluster.x[rows], tasks) / cluster.trace.alone[rows]

    def _sample(self) -> list[Decision]:
        return [self.replay[int(k)] for k in self.rng.integers(0, len(self.replay), BATCH)]

    def _log_likelihoods(self, batch: Sequence[Decision]) -> tuple[Any, Any]:
        """Return log π of what was chosen, and the entropy of π, (row,); actions that are not feasible have none."""
        counts = torch.tensor([len(one.seen) for one in batch])
        feasible = torch.arange(int(counts.max()))[None, :] < counts[:, None]  # (row, action)
        seen = torch.from_numpy(np.concatenate([one.seen for one in batch]).astype(np.float32))
        scores = torch.full(feasible.shape, -1e9).masked_scatter(feasible, self.policy(seen)[:, 0])
        logs = torch.log_softmax(scores, dim=1)
        chosen = torch.tensor([one.chosen for one in batch])
        return logs[torch.arange(len(batch)), chosen], -(logs.exp() * logs).sum(dim=1)


def _summary(state: PlacementState) -> Floats:
    """Return what the value network sees: free resources, numbers of jobs, and their types."""
    running = state.tasks.any(axis=(0, 2))
    free = (state.v / state.unit).mean(axis=0)
    counts = [running.sum() / 10.0, state.new.sum() / 10.0]
    types = np.array((running, state.new)) @ state.x  # numbers of jobs
    return np.concatenate((free, counts, types.ravel() / 4.0))


def _step(optimiser: Any, loss: Any) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
