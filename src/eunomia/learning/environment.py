"""The Gymnasium environment `eunomia/Cluster-v0`: one step is one ask of the core, an episode is a trace.

Core, backend and metrics are those of `eunomia simulate`, so a policy that is played through the environment gives the
same jobs.csv. Needs the extra `learning`. Importing this module registers the environment.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.inputs.options import number
from eunomia.inputs.problems import refused
from eunomia.learning.compiled_cluster import AGAIN_S, HIGHEST, SERVICE_S, TIME_S
from eunomia.learning.rewards import REWARDS, RewardMeter, last_reward
from eunomia.model.answers import Answer, InvalidAnswer, Order, Shares
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.decisions import Ask
from eunomia.model.policy import ENDLESS, RECALLABLE, ROUNDS, AnswerType, Policy, PolicyInfo
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.view import View
from eunomia.placement.grants_builder import FREE, GrantsBuilder
from eunomia.policies.order.type_choice import by_fastest
from eunomia.records.run import asks_of
from eunomia.runs.scenario_variants import varied
from eunomia.runs.simulation import OpenRun, Result
from eunomia.scenario import Scenario, load_scenario, scenario_from_dict
from eunomia.setup.policy_lookup import find_policy
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig

ID = "eunomia/Cluster-v0"
ROWS = Rule(what="a whole number, at least 1", least=1, whole=True, fix="give the most jobs that are there at once")
LOAD = Rule(what="a finite number above 0", above=0.0, fix="give for example 1.3")
ANSWERS: Mapping[str, AnswerType] = {"order": "order", "grants": "grants", "shares": "shares", "placement": "grants"}
JOB_FEATURES = ("scale_factor", "age", "waiting_time", "service", "runs", "weight")  # then throughput by type, more
SERVER_FEATURES = ("free", "accelerators")
CLUSTER_FEATURES = ("time", "jobs", "free")
MORE_COLUMNS = (  # of the view, a number for each job
    "app", "deadline", "debug", "equal_share_throughput", "failures", "fair_share_service", "job_class", "remaining",
    "run_time", "tenant", "total",
)  # fmt: skip
NEEDS = frozenset(
    {"scale_factor", "submitted", "waiting_time", "service", "on_type", "weight", "throughput", "capacity", "topology",
     "holder"}
)  # fmt: skip


@dataclass(frozen=True)
class _Agent:
    """Stands for the agent in a run: what it is asked, and when."""

    info: PolicyInfo

    def decide(self, view: View) -> Answer:
        raise AssertionError("the environment answers")


def _agent(role: str, more: Sequence[str]) -> _Agent:
    terms = {"order": RECALLABLE, "shares": ROUNDS}.get(role, ENDLESS)
    info = PolicyInfo(
        name="agent", answer_type=ANSWERS[role], objective="", technique="", paper="", needs=NEEDS | {*more},
        oracle="remaining" in more, mechanism=terms,
    )  # fmt: skip
    return _Agent(info)


class ClusterEnv(gymnasium.Env[dict[str, Array], Any]):
    """A cluster that asks for decisions.

    scenario: a scenario, its path, or its content. policy_role: what an action says:
        order      the row of the job that is served first; the others follow by submission
        grants     row · types + type: the gang that gets seats now, close together; the last action: none
        placement  row · servers + server: the gang that gets seats on this server and, where it is too small, on those
                   after it; the last action: none
        shares     (job, type) shares of time, scaled down to what the cluster has
    After a gang is seated the next ask comes at once. An action may also be a whole `Answer`. policy: whose asks these
    are (its columns, mechanism and promises) instead of the agent's own. observation: more columns of the view that are
    shown of each job, after its throughputs. jobs: rows of the observation; a view with more jobs is refused, or with
    `window = "oldest"` the oldest are shown. illegal: "raise", or "penalise" with −1 and no decision.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | Path | str | Mapping[str, Any],
        policy_role: str = "order",
        reward: str = "jct",
        *,
        policy: str | Policy | None = None,
        observation: Sequence[str] = (),
        jobs: int = 64,
        window: str = "refuse",
        illegal: str = "raise",
    ) -> None:
        check_name("policy_role", policy_role, tuple(ANSWERS))
        check_name("reward", reward, REWARDS)
        check_name("window", window, ("refuse", "oldest"))
        check_name("illegal", illegal, ("raise", "penalise"))
        for name in observation:
            check_name("observation", name, MORE_COLUMNS)
        number("environment", "jobs", jobs, ROWS)
        if isinstance(scenario, Mapping):
            scenario = scenario_from_dict(scenario, Path.cwd())
        elif not isinstance(scenario, Scenario):
            scenario = load_scenario(Path(scenario))
        if isinstance(policy, str):
            scenario = scenario.with_policy(policy)
            policy = find_policy(scenario.policy.name, scenario.policy.parameters, scenario.base, scenario.where)
        self.role, self.reward_name, self._scenario = policy_role, reward, scenario
        self._policy = policy or cast(Policy, _agent(policy_role, observation))
        if unseen := [name for name in observation if name not in self._policy.info.needs]:
            rule = f"the policy {self._policy.info.name} does not see this column"
            raise refused("environment", "observation", unseen[0], rule, "leave it out, or leave out policy")
        self._more = tuple(observation)
        self._rows, self._window, self._illegal = jobs, window, illegal
        topology = set_up(scenario, policy=self._policy).topology
        self._types, self._servers = len(topology.types), topology.nodes
        bounds = {"low": 0.0, "high": HIGHEST, "dtype": np.float32}
        shape = (jobs, len(JOB_FEATURES) + self._types + len(observation))
        self.observation_space = gymnasium.spaces.Dict(
            {
                "jobs": gymnasium.spaces.Box(shape=shape, **bounds),
                "job_mask": gymnasium.spaces.MultiBinary(jobs),
                "servers": gymnasium.spaces.Box(shape=(topology.nodes, len(SERVER_FEATURES)), **bounds),
                "cluster": gymnasium.spaces.Box(shape=(len(CLUSTER_FEATURES),), **bounds),
            }
        )
        self.action_space = {
            "order": lambda: gymnasium.spaces.Discrete(jobs),
            "grants": lambda: gymnasium.spaces.Discrete(jobs * self._types + 1),
            "placement": lambda: gymnasium.spaces.Discrete(jobs * topology.nodes + 1),
            "shares": lambda: gymnasium.spaces.Box(0.0, 1.0, (jobs, self._types), np.float32),
        }[policy_role]()
        self._run: OpenRun | None = None
        self._asks: Generator[Ask, Answer, str] | None = None
        self._view: View | None = None
        self._stalled, self._begun = "", False

    # ---- an episode ------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin an episode, by default with the scenario's seed first; later ones draw other workloads.

        Options: `load`, and `trace`, a file.
        """
        self._open(self._drawn(seed, options or {}))
        return self._observation(), self._info()

    def _drawn(self, seed: int | None, options: dict[str, Any]) -> RunConfig:
        """Return what an episode is made from."""
        first, self._begun = not self._begun, True
        super().reset(seed=self._scenario.seed if seed is None and first else seed)
        if seed is None:
            seed = self._scenario.seed if first else int(self.np_random.integers(2**31))
        for name in options:
            check_name("options", name, ("load", "trace"))
        if "load" in options:
            number("environment", "load", options["load"], LOAD)
        scenario = varied(self._scenario, load=options.get("load"), seed=seed)
        if "trace" in options:
            work = {"trace": str(options["trace"]), "load": scenario.workload.load}
            scenario = scenario.model_copy(update={"workload": type(scenario.workload).model_validate(work)})
        return set_up(scenario, policy=self._policy)

    def _open(self, setup: RunConfig) -> None:
        """Begin an episode, and go on to its first ask."""
        self._run, scheduler = OpenRun(setup), setup.scheduler()
        self._meter = RewardMeter(self.reward_name, scheduler, setup.scenario.seed)
        self._asks = asks_of(scheduler, self._run.backend(), [*self._run.observers, self._meter])
        self._stalled = ""
        self._advance(None)
        self._meter.pay()

    def step(self, action: Any) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Answer one ask. Raises InvalidAnswer for an illegal action, and RuntimeError where none is pending."""
        if self._view is None:
            raise RuntimeError("no decision is pending: call reset() first, as the episode has ended or not begun")
        penalty = 0.0
        if isinstance(action, Answer):
            answer = action
        elif reason := self._illegal_reason(action):
            if self._illegal == "raise":
                raise InvalidAnswer(reason)
            answer, penalty = self._nothing(), -1.0
        else:
            answer = self._answer(action)
        self._advance(answer)
        reward = self._meter.pay() + penalty
        ended = self._view is None
        if ended and self.reward_name == "fairness":
            reward += last_reward(self.reward_name, self.result().summary)
        if not math.isfinite(reward):
            raise refused("environment", "reward", reward, f"the reward {self.reward_name} is not a finite number",
                          "check the steps and throughputs of the jobs")  # fmt: skip
        return self._observation(), reward, ended, False, self._info()

    def result(self) -> Result:
        """Return the results of the episode, as `eunomia.simulate` does. Raises RuntimeError before its end."""
        if self._run is None or self._view is not None:
            raise RuntimeError("the episode has not ended, so it has no results yet")
        if not hasattr(self._run, "found"):
            self._run.found = self._run.result(self._stalled, dict)  # type: ignore[attr-defined]
        return self._run.found  # type: ignore[attr-defined,no-any-return]

    def _advance(self, answer: Answer | None) -> None:
        """Go on to the next ask, or to the end of the episode."""
        assert self._asks is not None
        try:
            self._view = (next(self._asks) if answer is None else self._asks.send(answer)).view
        except StopIteration as end:
            self._view, self._stalled = None, end.value
        if self._view is not None:
            jobs, view, self._view = self._view.jobs, self._view, None
            self._check_rows(jobs)
            self._view = view

    def _check_rows(self, jobs: int) -> None:
        """Raise InvalidInput for more jobs than the observation has rows, unless the oldest are shown."""
        if jobs > self._rows and self._window == "refuse":
            rule = f"{jobs} jobs are in the system at once, and the observation has {self._rows} rows"
            raise refused("environment", "jobs", self._rows, rule, 'give more jobs=…, or window="oldest"')

    def _info(self) -> dict[str, Any]:
        self._mask = self._legal()
        return {"view": self._view, "action_mask": self._mask}

    # ---- observations and actions ----------------------------------------------------------------------------------

    def _observation(self) -> dict[str, Array]:
        width = len(JOB_FEATURES) + self._types
        jobs = np.zeros((self._rows, width + len(self._more)), dtype=np.float32)
        mask, servers = np.zeros(self._rows, dtype=np.int8), np.zeros((self._servers, 2), dtype=np.float32)
        cluster = np.zeros(len(CLUSTER_FEATURES), dtype=np.float32)
        view = self._view
        if view is None:
            return {"jobs": jobs, "job_mask": mask, "servers": servers, "cluster": cluster}
        n, has = min(view.jobs, self._rows), view.columns
        mask[:n] = 1
        for k, (name, scale) in enumerate(_JOB_COLUMNS):
            if name in has:
                jobs[:n, k] = has[name][:n] / scale
        if "submitted" in has:
            jobs[:n, 1] = (view.at - has["submitted"][:n]) / TIME_S
        if "on_type" in has:
            jobs[:n, 4] = has["on_type"][:n] >= 0
        if "throughput" in has:
            jobs[:n, len(JOB_FEATURES) : width] = has["throughput"][:n]
        for k, name in enumerate(self._more):
            jobs[:n, width + k] = np.minimum(has[name][:n], HIGHEST)
        free = self._free_by_server()
        if free is not None:
            servers[:, 0], servers[:, 1] = free, has["topology"].size
        cluster[:] = view.at / TIME_S, view.jobs, 0.0 if free is None else free.sum()
        return {"jobs": np.minimum(jobs, HIGHEST), "job_mask": mask, "servers": servers, "cluster": cluster}

    def _free_by_server(self) -> Ints | None:
        """Return the free accelerators of each server, (server,); None where the policy does not see them."""
        view = self._view
        if view is None or not {"holder", "topology"} <= view.columns.keys():
            return None
        return np.add.reduceat((view.holder == FREE).astype(np.int64), view.topology.first)

    def action_masks(self) -> Bools:
        """Return which actions are legal now, as sb3-contrib asks; of shares, which (job, type) may get a share."""
        return self._mask.copy()

    def _legal(self) -> Bools:
        view = self._view
        if self.role == "order":
            mask = np.zeros(self._rows, dtype=bool)
            mask[: min(view.jobs if view is not None else 0, self._rows)] = True
            return mask
        columns = self._servers if self.role == "placement" else self._types
        can = np.zeros((self._rows, columns), dtype=bool)
        if view is not None and view.columns.keys() >= NEEDS:
            n = min(view.jobs, self._rows)
            can[:n] = self._possible()[:n]
        return can.ravel() if self.role == "shares" else np.append(can.ravel(), True)

    def _possible(self) -> Bools:
        """Return (job, type) or (job, server): a gang could run there now, or have a share there."""
        view = self._view
        assert view is not None
        runs = view.throughput > 0
        if self.role == "shares":
            return runs & (view.scale_factor[:, None] <= view.capacity)
        free_by_server = self._free_by_server()
        assert free_by_server is not None
        node_type = view.topology.node_type
        free = np.bincount(node_type, weights=free_by_server, minlength=self._types)
        fits = runs & (view.scale_factor[:, None] <= free) & (view.on_type < 0)[:, None]
        return fits if self.role == "grants" else np.asarray(fits[:, node_type] & (free_by_server > 0))

    def _illegal_reason(self, action: Any) -> str:
        """Return why an action is illegal; "" if it is legal."""
        if self.role == "shares":
            shares = np.asarray(action)
            rule = f"shares are numbers from 0 to 1 of shape {(self._rows, self._types)}"
            if shares.shape != (self._rows, self._types):
                return f"{rule}; got {shares.shape}"
            if shares.dtype.kind not in "fiub" or not ((shares >= 0) & (shares <= 1)).all():
                return f"{rule}, and some are not"
            return ""
        mask, chosen = self._mask, action_number(action)
        if not 0 <= chosen < len(mask):
            return f"action {chosen} is out of range: there are {len(mask)}"
        if mask[chosen]:
            return ""
        needs = {"order": "a row that holds a job", "grants": "a waiting job and a type with room for its gang",
                 "placement": "a waiting job and a server of a type with room for its gang"}  # fmt: skip
        return f"action {chosen} is illegal now: it must name {needs[self.role]}; see action_masks()"

    def _nothing(self) -> Answer:
        """Return an answer that changes as little as possible."""
        assert self._view is not None
        if ANSWERS[self.role] == "grants":
            return GrantsBuilder().build()
        everyone = np.arange(self._view.jobs)
        empty = np.zeros((self._view.jobs, self._types))
        return Shares(empty) if self.role == "shares" else Order(by_fastest(self._view, everyone))

    def _answer(self, action: Any) -> Answer:
        view = self._view
        assert view is not None
        if self.role == "shares":
            return Shares(self._feasible(np.asarray(action, dtype=np.float64)[: view.jobs]))
        if self.role == "order":
            first, rows = int(action), np.arange(view.jobs)
            return Order(by_fastest(view, np.concatenate((rows[first : first + 1], np.delete(rows, first)))))
        job, place = divmod(int(action), self._types if self.role == "grants" else self._servers)
        if job >= self._rows:
            return self._nothing()
        given, size, topology = GrantsBuilder(), int(view.scale_factor[job]), view.topology
        if self.role == "placement":
            type = int(topology.node_type[place])
            ring = np.roll(np.arange(self._servers), -place)
            nodes = ring[topology.node_type[ring] == type]
        else:
            type, free = place, self._free_by_server()
            assert free is not None
            nodes = np.flatnonzero(topology.node_type == type)
            enough = nodes[free[nodes] >= size]
            tightest = enough[np.argsort(free[enough], kind="stable")][:1]
            nodes = tightest if len(tightest) else nodes[np.argsort(-free[nodes], kind="stable")]
        seats = np.concatenate([topology.first[node] + np.arange(topology.size[node]) for node in nodes])
        given.give(job, type, seats[view.holder[seats] == FREE][:size])
        return given.build(again_at=view.at + AGAIN_S)

    def _feasible(self, shares: Floats) -> Floats:
        """Return shares (job, type) that the jobs and the cluster have, scaled down where they are too many."""
        view = self._view
        assert view is not None
        x = np.zeros((view.jobs, self._types))
        x[: len(shares)] = shares
        x = np.where(self._possible(), x, 0.0)
        x = x / np.maximum(x.sum(axis=1, keepdims=True), 1.0)
        used = (view.scale_factor[:, None] * x).sum(axis=0)
        return np.asarray(x / np.maximum(used / view.capacity, 1.0))


_JOB_COLUMNS = (
    ("scale_factor", 1.0), ("", 1.0), ("waiting_time", TIME_S), ("service", SERVICE_S), ("", 1.0), ("weight", 1.0),
)  # fmt: skip


def action_number(action: Any) -> int:
    """Return an action as a whole number. Raises InvalidAnswer for anything else."""
    try:
        return operator.index(action)
    except TypeError:
        raise InvalidAnswer(f"the action is {action!r}, and it must be a whole number; see action_masks()") from None


def check_name(column: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise refused("environment", column, value, "there is none of this name", nearest(value, known))


if ID not in gymnasium.registry:
    gymnasium.register(id=ID, entry_point=f"{__name__}:ClusterEnv", order_enforce=False, disable_env_checker=True)
