"""Training of Symphony and of its black-box twin: imitation of the oracle at first, then advantage actor–critic.

One step is an iteration as published: 2 environments × 20 decisions, and the LSTM unrolled over them. All parameters,
those of the Bayesian network included, are trained end to end; its gradients are pathwise, of 32 samples. The reward
between two decisions is minus Σ dt / τ over the tasks that could start and have not ended, τ their best isolated
seconds: the printed −Σ 1 / T_i would grow with T_i. In the first 90 % of the steps L_A is the cross-entropy to the
oracle of true loads in the states that the policy itself visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from eunomia.learning.model_file import Feature
from eunomia.learning.torch_state import layers_of, perceptron_of, restore_torch, torch_state
from eunomia.model.arrays import Array, Floats
from eunomia.scenario import Scenario
from eunomia_reproduction.symphony import belief
from eunomia_reproduction.symphony.network import (
    FEATURES,
    OUT,
    Seen,
    Symphony,
    SymphonyNetwork,
    architecture,
    choice_of,
    decision_of,
    embed,
    lstm,
    scores,
    see,
)
from eunomia_reproduction.symphony.schedulers import Oracle, play
from eunomia_reproduction.symphony.world import KernelWorld, draw_workload

ENVIRONMENTS, STEPS, TASKS = 2, 20, 128
GAMMA, ENTROPY, LEARNING_RATE, CLIP = 0.99, 0.01, 0.005, 1.0
GENTLE = 0.1  # of the learning rate, for the actor–critic and at the end
BELIEF_RATE = 5.0  # times the learning rate: there are few parameters, and each is larger than a weight
REWARD = 0.05  # the scale of rewards
LOADS = (0.4, 1.2)
JUDGED, JUDGED_TASKS, JUDGED_FROM = 6, 96, 800_000


class TorchOps:
    """The operations of `belief.NumpyOps` on tensors."""

    @staticmethod
    def cat(parts: Any) -> Any:
        """Join along the last axis."""
        return torch.cat(tuple(parts), -1)

    @staticmethod
    def stack(parts: Any) -> Any:
        """Join along a new last axis."""
        return torch.stack(tuple(parts), -1)

    @staticmethod
    def join_rows(a: Any, b: Any) -> Any:
        """Join along the axis before the last."""
        return torch.cat((a, b), -2)

    relu, sigmoid, sqrt = torch.relu, torch.sigmoid, torch.sqrt

    @staticmethod
    def array(x: Floats) -> Any:
        """Return a tensor."""
        return torch.tensor(x, dtype=torch.float32)


class _Net(nn.Module):
    def __init__(self, start: SymphonyNetwork):
        super().__init__()
        self.parts = nn.ModuleDict({name: layers_of(part) for name, part in start.parts.items()})
        found = {name: nn.Parameter(TorchOps.array(value)) for name, value in start.beliefs.items()}
        self.beliefs = nn.ParameterDict(found)

    def forward(self, seen: Seen, state: tuple[Any, Any], begins: Any) -> tuple[Any, Any, tuple[Any, Any]]:
        """Return scores (time, environment, choice), values (time, environment) and the last state.

        `begins` (time, environment) is 1 where an episode begins, and the state is 0.
        """
        flat = Seen(*(one.flatten(0, 1) for one in seen))
        tasks, processors, both = embed(self.parts, self.beliefs, flat, TorchOps)
        shape, hidden = begins.shape, []
        for inputs, begin in zip(both.reshape(*shape, -1), begins, strict=True):
            keep = (1.0 - begin)[:, None]
            state = lstm(self.parts, inputs, (state[0] * keep, state[1] * keep), TorchOps)
            hidden.append(state[0])
        h = torch.cat(hidden)
        found = scores(self.parts, tasks, processors, h, flat, TorchOps).masked_fill(~flat.legal, -1e9)
        return found.reshape(*shape, -1), self.parts["value"](h).reshape(shape), state


def n_step_returns(rewards: Any, begins: Any, after: Any, gamma: float) -> Any:
    """Return Σ_j γ^j r[t+j] + γ^(n−t) V(s_n), (n, environment), of rewards (n, environment); `after` is V(s_n).

    `begins` (n + 1, environment) is 1 where an episode begins: what comes then does not count.
    """
    returns = torch.zeros_like(rewards)
    for t in range(len(rewards) - 1, -1, -1):
        after = rewards[t] + gamma * after * (1.0 - begins[t + 1])
        returns[t] = after
    return returns


class _Episode:
    """An environment that begins again when it ends; all of it is drawn from the generator of its seed."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)
        self._begin()

    def _begin(self) -> None:
        work = draw_workload(self._rng, tasks=TASKS, load=self._rng.uniform(*LOADS))
        self.world = KernelWorld(work, self._rng)
        self._moments = self.world.moments()
        self.moment, self.begins, self._cost = next(self._moments), True, 0.0

    def next(self) -> float:
        """Go on to the next decision; return the reward since the last one. `begins` says that an episode began."""
        moment = next(self._moments, None)
        cost = self._so_far()
        reward = REWARD * (self._cost - cost)
        if moment is None:
            self._begin()
        else:
            self.moment, self.begins, self._cost = moment, False, cost
        return reward

    def _so_far(self) -> float:
        begun = np.isfinite(self.world.ready)
        until = np.minimum(self.world.end[begun], self.world.at)
        return float(((until - self.world.ready[begun]) / self.world.work.best_s[begun]).sum())


class SymphonyTraining:
    """Trains Symphony in its own world; of the scenario only the seed counts."""

    default_steps: ClassVar[int] = 2000
    judge_every: ClassVar[int] = 20
    black_box: ClassVar[bool] = False
    imitation: ClassVar[float] = 0.9  # of the steps; with 0 it is actor–critic from random weights, as published
    features: tuple[Feature, ...] = FEATURES

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator):
        torch.set_num_threads(1)
        self.architecture: Mapping[str, Any] = architecture(black_box=self.black_box)
        self._steps, self._rng = steps, rng
        self._net = _Net(SymphonyNetwork.drawn(rng, black_box=self.black_box))
        self._optimizer = torch.optim.Adam(
            [{"params": self._net.parts.parameters(), "scale": 1.0},
             {"params": self._net.beliefs.parameters(), "scale": BELIEF_RATE}], lr=LEARNING_RATE
        )  # fmt: skip
        self._episodes: list[_Episode] = []
        self._state = (torch.zeros(ENVIRONMENTS, OUT), torch.zeros(ENVIRONMENTS, OUT))
        self._judged = [
            (draw_workload(np.random.default_rng(JUDGED_FROM + k), tasks=JUDGED_TASKS, load=load), JUDGED_FROM + k)
            for k, load in enumerate(np.linspace(*LOADS, JUDGED).tolist())
        ]
        self._oracle = [play(work, Oracle(), seed).response.mean() for work, seed in self._judged]

    def train(self, step: int) -> None:
        """Do one iteration. Every `judge_every` steps the environments begin anew, as after `--resume`."""
        if step % self.judge_every == 0:
            self._episodes = [_Episode(int(self._rng.integers(2**62))) for _ in range(ENVIRONMENTS)]
            self._state = (torch.zeros(ENVIRONMENTS, OUT), torch.zeros(ENVIRONMENTS, OUT))
        imitates = step < self.imitation * self._steps
        start = tuple(one.detach() for one in self._state)
        seen, begins, chosen, wanted, rewards = self._rollout()
        found, values, _ = self._net(seen, start, begins)
        returns = n_step_returns(rewards, torch.cat((begins, self._begin()[None])), self._last_value(), GAMMA)
        log = torch.log_softmax(found, -1)
        chance = log.exp()
        critic = 0.5 * torch.square(returns - values).mean()
        if imitates:
            actor = -log.gather(-1, wanted[..., None]).mean()
        else:
            gain = (returns - values).detach()
            gain = gain / (gain.std() + 1e-6)
            entropy = -(chance * log.clamp(min=-50.0)).sum(-1).mean()
            actor = -(log.gather(-1, chosen[..., None])[..., 0] * gain).mean() - ENTROPY * entropy
        for group in self._optimizer.param_groups:
            group["lr"] = group["scale"] * self._rate(step)
        self._optimizer.zero_grad()
        (actor + critic).backward()
        nn.utils.clip_grad_norm_(self._net.parameters(), CLIP)
        self._optimizer.step()

    def _rate(self, step: int) -> float:
        """Return the learning rate: the published one without imitation, else it falls."""
        if not self.imitation:
            return LEARNING_RATE
        share = step / (self.imitation * self._steps)
        return LEARNING_RATE * (1.0 - (1.0 - GENTLE) * min(share, 1.0)) * (1.0 if share < 1.0 else GENTLE)

    def _begin(self) -> Any:
        return torch.tensor([float(one.begins) for one in self._episodes])

    def _see(self) -> Seen:
        each = [see(one.moment, self._rng) for one in self._episodes]
        arrays = [np.stack(column) for column in zip(*each, strict=True)]
        return Seen(*(torch.tensor(one if one.dtype == bool else one.astype(np.float32))[None] for one in arrays))

    def _rollout(self) -> tuple[Seen, Any, Any, Any, Any]:
        """Play 20 decisions in each environment; return inputs, begins, choices, the oracle's, rewards."""
        oracle, rows = Oracle(), []
        for _ in range(STEPS):
            seen, begins = self._see(), self._begin()[None]
            with torch.no_grad():
                found, _, self._state = self._net(seen, self._state, begins)
            chances = torch.softmax(found[0].double(), -1).numpy().cumsum(axis=1)
            chosen, wanted, rewards = [], [], []
            for one, chance, legal in zip(self._episodes, chances, seen.legal[0].numpy(), strict=True):
                drawn = int(np.searchsorted(chance, self._rng.random() * chance[-1], side="right"))
                choice = drawn if drawn < len(legal) and legal[drawn] else int(np.flatnonzero(legal)[-1])
                wanted.append(choice_of(one.moment, oracle.handle(one.moment)))
                one.world.carry_out(decision_of(one.moment, choice))
                rewards.append(one.next())
                chosen.append(choice)
            rows.append((seen, begins, torch.tensor([chosen]), torch.tensor([wanted]), torch.tensor([rewards])))
        seen = Seen(*(torch.cat(column) for column in zip(*(row[0] for row in rows), strict=True)))
        return (seen, *(torch.cat([row[k] for row in rows]) for k in range(1, 5)))

    def _last_value(self) -> Any:
        with torch.no_grad():
            return self._net(self._see(), self._state, self._begin()[None])[1][0]

    def judge(self) -> Mapping[str, float]:
        """Return minus the mean loss over the oracle of true loads, on workloads that training does not see."""
        network = self._network()
        runs = [play(work, Symphony(network, seed), seed).response.mean() for work, seed in self._judged]
        return {"minus_loss_over_oracle": 1.0 - float(np.mean(np.array(runs) / self._oracle))}

    def _network(self) -> SymphonyNetwork:
        parts = {name: perceptron_of(layers) for name, layers in self._net.parts.items()}
        beliefs = {name: self._net.beliefs[name].detach().numpy().astype(np.float64) for name in belief.SHAPES}
        return SymphonyNetwork(parts, beliefs)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        return self._network().arrays()

    def state(self) -> dict[str, Array]:
        """Return the weights and the optimiser's moments."""
        return torch_state(self._net, self._optimizer)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        restore_torch(self._net, self._optimizer, state)


class BlackBoxTraining(SymphonyTraining):
    """Trains the twin without belief and topology."""

    black_box: ClassVar[bool] = True
