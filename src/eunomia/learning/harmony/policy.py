"""Placement by a trained network.

    while a waiting gang fits:  argmax_(n, m)  π(n, m | x, r, w, p, v, d)

n one of the oldest waiting jobs, m a server with a free accelerator of the fastest type that has room for the whole
gang now; one inference for each worker. Scores are rounded to 30 bits, and of equal ones the first job and server
count. Running jobs are never moved. The gangs of this cluster have no parameter servers, so p = 0.

Example (examples/two_jobs.json). The model knows neither type of job, so their scores are equal and the
earlier one goes first. Text takes a v100, on which it is fastest; image finds room on a k80 only.

Reference: Y. Bao, Y. Peng and C. Wu, "Deep Learning-based Job Placement in Distributed Machine Learning Clusters"
(Harmony), INFOCOM 2019. The network scores each action by itself with shared weights, where the published one reads the
state as one vector of a fixed number of jobs and servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.learning.harmony.state import PlacementState, action_features, normalised, place_all, see_actions
from eunomia.learning.model_file import ModelFile
from eunomia.learning.perceptron import Perceptron, best_row
from eunomia.learning.shipped import load_model, tell_training
from eunomia.model.answers import Grants
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.grants_builder import FREE, LOST, GrantsBuilder

WINDOW = 20  # oldest waiting jobs that are considered at once
CPUS = 2.0, 4.0  # of a worker and of a server per accelerator, as in training


@dataclass(frozen=True, eq=False)
class PlacementNetwork:
    """The policy network of a model file."""

    layers: Perceptron
    types: tuple[str, ...]

    @classmethod
    def of(cls, model: ModelFile) -> PlacementNetwork:
        """Return the network. Raises InvalidInput for a model of something else, or of other features."""
        if model.header.trained != "harmony":
            rule = f"it is a model of {model.header.trained!r}, and placement needs one of 'harmony'"
            raise refused(model.name, "trained", None, rule, "name a model that `eunomia train harmony` wrote")
        types = tuple(str(name) for name in model.header.architecture.get("types", ()))
        model.check_features(action_features(types))
        return cls(Perceptron.of(model, "policy"), types)

    def choose(self, state: PlacementState, actions: Ints) -> int:
        """Return the row of the best action."""
        return best_row(self.scores(state, actions), np.ones(len(actions), dtype=bool))

    def scores(self, state: PlacementState, actions: Ints) -> Floats:
        """Return the score of each action, (action,)."""
        seen = normalised(see_actions(state, actions), action_features(self.types))
        return np.asarray(self.layers(seen)[:, 0])


def load_network(path: str) -> PlacementNetwork:
    """Return the network of a file, or of the shipped one for ""."""
    return PlacementNetwork.of(load_model(path, "harmony"))


@dataclass(frozen=True)
class Harmony:
    """Gangs are placed where a trained network expects the least interference.

    `model` is a file of `eunomia train harmony`, the shipped one if it is left out: trained on eight synthetic types of
    jobs on six servers (docs/learning.md).

    Use it when jobs on one machine slow each other down, and which ones do has been measured but is not understood.

    The worst-off is a job of a type that the network was not trained on: it is placed as if nothing was known of it.
    """

    model: str = ""

    network: ClassVar[PlacementNetwork]  # that of the model, set for each instance
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="harmony",
        answer_type="grants",
        objective="mean completion time where jobs on one machine interfere",
        technique="reinforcement learning: a network trained by actor-critic",
        paper="Bao et al., Harmony, INFOCOM 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True),
        needs=frozenset({"scale_factor", "throughput", "on_type", "job_type", "topology", "holder", "capacity"}),
        mechanism=ENDLESS,
        fallback="locality",
    )

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "network", load_network(self.model))
            tell_training(self, load_model(self.model, "harmony"))
        except ValueError as error:
            raise ValueError(f"model: {error}") from error

    def decide(self, view: View) -> Grants:
        """Return seats for waiting gangs."""
        network, topology = self.network, view.topology
        could = ((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity)).any(axis=1)
        waiting = np.flatnonzero((view.on_type < 0) & could)[:WINDOW]
        if not len(waiting):
            return GrantsBuilder().build()
        jobs = np.union1d(np.flatnonzero(view.on_type >= 0), waiting)
        tasks = np.zeros((topology.nodes, len(jobs), 2))
        held = np.flatnonzero(view.holder >= 0)
        row = np.searchsorted(jobs, view.holder[held]).astype(np.int64)
        np.add.at(tasks[:, :, 0], (topology.node[held], row), 1.0)
        state = _state(view, network, jobs, tasks)
        placed = place_all(state, network.choose)
        given, free = GrantsBuilder(), view.holder == FREE
        for n in placed:
            nodes = np.repeat(np.arange(topology.nodes), state.tasks[:, n, 0].astype(np.int64))
            seats = []
            for node in nodes.tolist():
                first = int(topology.first[node])
                seats.append(first + int(np.flatnonzero(free[first : first + topology.size[node]])[0]))
                free[seats[-1]] = False
            given.give(int(jobs[n]), int(topology.node_type[nodes[0]]), np.array(seats))
        return given.build()


def _state(view: View, network: PlacementNetwork, jobs: Ints, tasks: Floats) -> PlacementState:
    """Return the published state of these jobs, with the servers of one type open to each gang."""
    topology = view.topology
    size = np.add.reduceat((view.holder != LOST).astype(np.int64), topology.first)
    free = np.add.reduceat((view.holder == FREE).astype(np.int64), topology.first)
    capacity = np.stack((CPUS[1] * topology.size, topology.size), axis=1).astype(float)
    left = np.stack((CPUS[1] * topology.size - CPUS[0] * (size - free), free), axis=1).astype(float)
    r = np.zeros((len(jobs), 6))
    r[:, 0], r[:, 1], r[:, 2] = view.scale_factor[jobs], CPUS[0], 1.0
    names = view.job_type[jobs]
    x = (names[:, None] == np.array(network.types, dtype=object)[None, :]).astype(float).reshape(len(jobs), -1)
    runs = view.throughput[jobs]

    def allowed(state: PlacementState) -> Bools:
        room = np.bincount(topology.node_type, weights=state.v[:, 1], minlength=len(view.types))
        fits = (runs > 0) & (view.scale_factor[jobs][:, None] <= room)
        best = np.where(fits, runs, 0.0).argmax(axis=1)
        best[~fits.any(axis=1)] = -1
        if state.begun >= 0:
            best[state.begun] = topology.node_type[np.flatnonzero(state.tasks[:, state.begun, 0])[0]]
        return np.asarray(best[:, None] == topology.node_type[None, :])

    return PlacementState(
        x=x,
        r=r,
        v=left,
        d=tasks.reshape(len(tasks), -1),
        new=view.on_type[jobs] < 0,
        capacity=capacity,
        allowed=allowed,
    )
