"""Symphony's network: graph networks on the topology and on the tasks, an LSTM, and a score of each choice.

Both graph networks have the published sizes: block 1 φ^e (64, 32), φ^v (32, 16), φ^u (16, 16), sums; block 2, on the
topology, φ^e (64, 32), φ^u (32, 16), ReLU and a sum. Vertices of the topology are processors and resources, labelled by
the belief. The black-box twin has three layers on the counters instead of belief and topology. A score is an MLP of
task, processor, state of the LSTM and the pair. The same code runs on arrays of NumPy and of PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.learning.model_file import Feature, ModelFile, read_model
from eunomia.learning.perceptron import Perceptron, best_row
from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats, Ints
from eunomia_reproduction.symphony import belief
from eunomia_reproduction.symphony.belief import NumpyOps
from eunomia_reproduction.symphony.counters import COUNTERS
from eunomia_reproduction.symphony.machine import CPU, KERNELS, MEMORY, NIC, PCIE, PROCESSORS, RESOURCES
from eunomia_reproduction.symphony.schedulers import wait_s
from eunomia_reproduction.symphony.world import NO_OP, WINDOW, KernelDecision, KernelMoment

MODEL = Path(__file__).parent.parent / "models" / "symphony.safetensors"  # ships with this package
U, K, OUT = len(PROCESSORS), len(KERNELS), 16
CHILDREN = 3  # of a task, the first ones
VERTEX = [*RESOURCES, *(f"processor{u}" for u in range(U))]
PER_VERTEX, PER_TASK, PER_CHILD, PER_PAIR = 3 + 7, K + 3, K + 1, 5
FEATURES = (
    *(Feature(name=f"counter{c}", unit="as read") for c in range(COUNTERS)),
    *(Feature(name=f"is_{kernel.name}") for kernel in KERNELS),
    Feature(name="data_on_second_socket"), Feature(name="path", unit="log s"), Feature(name="ready", unit="log s"),
    Feature(name="seconds", unit="log s"), Feature(name="seconds_over_best", unit="log"),
    Feature(name="reconfigures"), Feature(name="wait_for_best", unit="log, over best seconds"), Feature(name="busy"),
)  # fmt: skip


def _edges() -> list[tuple[int, int]]:
    found = [(NIC, PCIE), (MEMORY, MEMORY + 1), (PCIE, MEMORY), (PCIE + 1, MEMORY + 1)]
    for u, one in enumerate(PROCESSORS):
        near = one.core if one.kind == CPU else PCIE + one.socket
        found += [(len(RESOURCES) + u, near), (len(RESOURCES) + u, MEMORY + one.socket)]
    return [*found, *((b, a) for a, b in found)]


EDGES = np.array(_edges())
_INTO = [np.flatnonzero(EDGES[:, 1] == vertex) for vertex in range(len(VERTEX))]
_MOST = max(map(len, _INTO))
INTO = np.array([[*into, *[len(EDGES)] * (_MOST - len(into))] for into in _INTO])  # the row after the last is 0
_KIND = np.zeros((len(VERTEX), 7))
_KIND[np.arange(len(RESOURCES)), [3] * 4 + [4] * 2 + [5] * 2 + [6]] = 1.0
_KIND[len(RESOURCES) + np.arange(U), [one.kind for one in PROCESSORS]] = 1.0

COMMON = {
    "child": [PER_TASK + PER_CHILD, 64, 32], "task": [PER_TASK + 32, 32, OUT], "tasks": [OUT, OUT, OUT],
    "gates": [3 * OUT, 4 * OUT], "pair": [3 * OUT + PER_PAIR, 32, 1], "wait": [OUT + WINDOW, OUT, 1],
    "value": [OUT, OUT, 1],
}  # fmt: skip
TOPOLOGY = {
    "edge1": [2 * PER_VERTEX, 64, 32], "vertex": [PER_VERTEX + 32, 32, OUT], "machine1": [OUT, OUT, OUT],
    "edge2": [3 * OUT, 64, 32], "machine2": [OUT + 32, 32, OUT],
}  # fmt: skip
BLACK_BOX = {"counters": [COUNTERS, 64, 32, OUT], "processor": [OUT + U + 1, 32, OUT]}


def architecture(*, black_box: bool) -> dict[str, Any]:
    """Return the layer sizes of each part."""
    return {**COMMON, **(BLACK_BOX if black_box else TOPOLOGY)}


class Seen(NamedTuple):
    """The inputs of a decision; with a first axis they are those of several."""

    values: Any  # (sample, counter)
    busy: Any  # (processor,)
    tasks: Any  # (task, feature)
    children: Any  # (task, child, feature), features 0 and real 0 where there is none
    real_child: Any  # (task, child)
    real: Any  # (task,)
    pairs: Any  # (task, processor, feature)
    legal: Any  # (task · processor + 1,), the last: wait


def see(moment: KernelMoment, rng: np.random.Generator) -> Seen:
    """Return the inputs of a moment."""
    work, count = moment.work, len(moment.tasks)
    eye = np.eye(K)
    tasks, children = np.zeros((WINDOW, PER_TASK)), np.zeros((WINDOW, CHILDREN, PER_CHILD))
    tasks[:count, :K], tasks[:count, K] = eye[moment.kernel], moment.data
    tasks[:count, K + 1] = elementary.log(work.path_s[moment.tasks]) / 4
    tasks[:count, K + 2] = elementary.log(1.0 + moment.ready_s) / 4
    real_child = np.zeros((WINDOW, CHILDREN))
    for row, task in enumerate(moment.tasks.tolist()):
        for k, child in enumerate(work.children[task][:CHILDREN]):
            children[row, k, :K], children[row, k, K] = eye[work.kernel[child]], len(work.parents[child]) / 2
            real_child[row, k] = 1.0
    seconds, best = moment.seconds, work.machine.best_s[moment.kernel]
    can = np.isfinite(seconds)
    wait = np.min(np.where(can, seconds + wait_s(moment), np.inf), axis=1)
    known = np.where(can, seconds, 1.0)
    pairs = np.zeros((WINDOW, U, PER_PAIR))
    pairs[:count, :, 0] = elementary.log(known) / 4
    pairs[:count, :, 1] = elementary.log(known / best[:, None])
    pairs[:count, :, 2] = moment.reconfigures
    pairs[:count, :, 3] = elementary.log(wait / best)[:, None]
    pairs[:count, :, 4] = moment.data[:, None] != np.array([one.socket for one in PROCESSORS])
    legal = np.zeros((WINDOW, U), dtype=bool)
    legal[:count] = moment.legal
    return Seen(
        belief.sample_values(moment.counters.readings, rng), (~moment.idle).astype(float), tasks, children, real_child,
        (np.arange(WINDOW) < count).astype(float), pairs, np.append(legal.ravel(), not moment.must_act),
    )  # fmt: skip


def embed(parts: Mapping[str, Any], beliefs: Mapping[str, Any], seen: Seen, ops: Any) -> tuple[Any, Any, Any]:
    """Return embeddings of tasks (…, task, 16), processors (…, processor, 16), and machine and tasks (…, 32)."""
    size = len(seen.busy)
    if "counters" in parts:
        hidden = ops.relu(parts["counters"](seen.values.mean(1)))
        each = ops.array(np.broadcast_to(np.eye(U), (size, U, U)))
        wide = hidden[:, None] + ops.array(np.zeros((size, U, OUT)))
        processors, machine = ops.relu(parts["processor"](ops.cat((wide, each, seen.busy[..., None])))), hidden
    else:
        processors, machine = _topology(parts, beliefs, seen, ops)
    own = seen.tasks[:, :, None] + ops.array(np.zeros((size, WINDOW, CHILDREN, PER_TASK)))
    edges = ops.relu(parts["child"](ops.cat((own, seen.children)))) * seen.real_child[..., None]
    tasks = ops.relu(parts["task"](ops.cat((seen.tasks, edges.sum(2))))) * seen.real[..., None]
    return tasks, processors, ops.cat((machine, ops.relu(parts["tasks"](tasks.sum(1)))))


def _topology(parts: Mapping[str, Any], beliefs: Mapping[str, Any], seen: Seen, ops: Any) -> tuple[Any, Any]:
    size = len(seen.busy)
    sampled = belief.utilisations(beliefs, seen.values, ops)  # (…, sample, resource)
    mean = sampled.mean(1)
    spread = ops.sqrt(((sampled - mean[:, None]) * (sampled - mean[:, None])).mean(1) + 1e-8)
    nothing = ops.array(np.zeros((size, U)))
    unlabelled = ops.array(np.zeros((size, len(RESOURCES))))
    labels = (ops.cat((mean, nothing)), ops.cat((spread, nothing)), ops.cat((unlabelled, seen.busy)))
    vertices = ops.cat((ops.stack(labels), ops.array(np.broadcast_to(_KIND, (size, *_KIND.shape)))))
    edges = ops.relu(parts["edge1"](ops.cat((vertices[:, EDGES[:, 0]], vertices[:, EDGES[:, 1]]))))
    padded = ops.join_rows(edges, ops.array(np.zeros((size, 1, 32))))
    hidden = ops.relu(parts["vertex"](ops.cat((vertices, padded[:, INTO].sum(2)))))
    machine = ops.relu(parts["machine1"](hidden.sum(1) * 0.1))
    wide = machine[:, None] + ops.array(np.zeros((size, len(EDGES), OUT)))
    edges = ops.relu(parts["edge2"](ops.cat((hidden[:, EDGES[:, 0]], hidden[:, EDGES[:, 1]], wide))))
    machine = ops.relu(parts["machine2"](ops.cat((machine, edges.sum(1) * 0.1))))
    return hidden[:, len(RESOURCES) :], machine


def lstm(parts: Mapping[str, Any], inputs: Any, state: tuple[Any, Any], ops: Any) -> tuple[Any, Any]:
    """Return (h, c), (…, 16) each, after one step."""
    gates = parts["gates"](ops.cat((inputs, state[0])))
    keep, add, show = (ops.sigmoid(gates[..., k * OUT : (k + 1) * OUT]) for k in range(3))
    cell = keep * state[1] + add * (2.0 * ops.sigmoid(2.0 * gates[..., 3 * OUT :]) - 1.0)
    return show * (2.0 * ops.sigmoid(2.0 * cell) - 1.0), cell


def scores(parts: Mapping[str, Any], tasks: Any, processors: Any, hidden: Any, seen: Seen, ops: Any) -> Any:
    """Return a score of each choice (…, task · processor + 1), the last: wait."""
    size = len(seen.busy)
    zero = ops.array(np.zeros((size, WINDOW, U, OUT)))
    wide = (tasks[:, :, None] + zero, processors[:, None] + zero, hidden[:, None, None] + zero, seen.pairs)
    pairs = parts["pair"](ops.cat(wide)).reshape(size, WINDOW * U)
    return ops.cat((pairs, parts["wait"](ops.cat((hidden, seen.pairs[:, :, 0, 3])))))


class _Rows:
    """A perceptron on arrays with any number of axes."""

    def __init__(self, layers: Perceptron):
        self._layers = layers

    def __call__(self, x: Floats) -> Floats:
        return self._layers(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class SymphonyNetwork:
    """The network in float64, with the same bits on every machine."""

    parts: Mapping[str, Perceptron]
    beliefs: Mapping[str, Floats]

    @classmethod
    def of(cls, model: ModelFile) -> SymphonyNetwork:
        """Return the network of a model. Raises InvalidInput for one of other features or layers."""
        model.check_features(FEATURES)
        names = architecture(black_box="counters" in model.header.architecture)
        beliefs = {name: model.floats(f"belief.{name}", shape) for name, shape in belief.SHAPES.items()}
        return cls({name: Perceptron.of(model, name) for name in names}, beliefs)

    @classmethod
    def shipped(cls) -> SymphonyNetwork:
        """Return the network of the model that ships with this package."""
        return cls.of(read_model(MODEL))

    @classmethod
    def drawn(cls, rng: np.random.Generator, *, black_box: bool = False) -> SymphonyNetwork:
        """Return an untrained network."""
        sizes = architecture(black_box=black_box)
        return cls({name: Perceptron.drawn(one, rng) for name, one in sizes.items()}, belief.initial())

    def arrays(self) -> dict[str, Array]:
        """Return its arrays as a model file names them."""
        arrays = {key: array for name, part in self.parts.items() for key, array in part.arrays(name).items()}
        return {**arrays, **{f"belief.{name}": array for name, array in self.beliefs.items()}}


class Symphony:
    """The learned scheduler: a network, and the state of its LSTM, 0 at the start of an episode."""

    def __init__(self, network: SymphonyNetwork, seed: int = 0):
        self._beliefs = network.beliefs
        self._parts = {name: _Rows(part) for name, part in network.parts.items()}
        self._rng = np.random.default_rng(seed)
        self._state = (np.zeros((1, OUT)), np.zeros((1, OUT)))

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return the legal choice with the largest score; of equal ones the first."""
        seen = Seen(*(np.asarray(one)[None] for one in see(moment, self._rng)))
        tasks, processors, both = embed(self._parts, self._beliefs, seen, NumpyOps)
        self._state = lstm(self._parts, both, self._state, NumpyOps)
        found = scores(self._parts, tasks, processors, self._state[0], seen, NumpyOps)
        return decision_of(moment, best_row(found[0], seen.legal[0]))

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Learn nothing while it runs."""


def decision_of(moment: KernelMoment, choice: int) -> KernelDecision:
    """Return the decision of a choice."""
    if choice == WINDOW * U:
        return KernelDecision(NO_OP)
    return KernelDecision(int(moment.tasks[choice // U]), choice % U)


def choice_of(moment: KernelMoment, decision: KernelDecision) -> int:
    """Return the choice of a decision."""
    if decision.task == NO_OP:
        return WINDOW * U
    return int(np.flatnonzero(moment.tasks == decision.task)[0]) * U + decision.processor
