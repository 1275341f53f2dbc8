"""Gavel's own answers to nine problems: ours are as good or better in the objective that each policy maximises.

Gavel's allocations come from a general solver and are not unique, so values are compared; where an answer is unique
(isolation, queues) it is the same. Needs the published instances; docs/gavel-answers.md tells by how much ours are
better.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import oracles

from eunomia.model.answers import Answer, Order, Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import Policy
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.view import View
from eunomia.policies import build
from eunomia.throughputs import Throughputs, load

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
CLOSE = 1e-6
OWN_COLUMN = {  # policy: (what it maximises, or minimises)
    "max_min_fairness_perf": "min_normalised",
    "max_min_fairness_packed": "min_normalised",
    "max_min_fairness_water_filling_perf": "min_normalised",
    "finish_time_fairness_perf": "max_rho",
    "finish_time_fairness_packed": "max_rho",
    "min_total_duration_perf": "max_duration",
    "min_total_duration_packed": "max_duration",
    "max_sum_throughput_perf": "sum_throughput",
    "max_sum_throughput_normalized_by_cost_perf": "sum_throughput_per_cost",
}
UNIQUE = ("isolated", "fifo_perf")


@lru_cache(maxsize=1)
def instances() -> dict[str, Any]:
    """Return the published problems by name; none where the data are not there."""
    path = DATA / "policy_instances.json"
    found = json.loads(path.read_text(encoding="utf-8"))["instances"] if path.is_file() else []
    return {one["id"]: one for one in found}


@lru_cache(maxsize=1)
def speeds() -> Throughputs:
    """Return Gavel's measured throughputs."""
    return load(str(DATA / "simulation_throughputs.json.gz"), ("v100", "p100", "k80"), base=Path())


def posed(names: tuple[str, ...]) -> list[Any]:
    """Return a test case for every answer that Gavel gave under one of these names."""
    if not instances():
        return [pytest.param("", "", marks=pytest.mark.skip(reason=f"no instances under {DATA}"))]
    return [
        pytest.param(name, policy, id=f"{name}-{policy}")
        for name, one in instances().items()
        for policy in names
        if policy in one["results"] and "error" not in one["results"][policy]
    ]


class Problem:
    """One instance as a view, and its columns of figures for any effective throughputs."""

    def __init__(self, said: Any):
        self.jobs = said["jobs"]
        self.types = tuple(said["cluster"])
        self.C = np.array([said["cluster"][name] for name in self.types], dtype=float)
        self.price = np.array([said["prices_usd_per_gpu_hour"][name] for name in self.types])
        self.z = np.array([job["scale_factor"] for job in self.jobs], dtype=np.int64)
        self.w = np.array([job["priority_weight"] for job in self.jobs], dtype=float)
        self.r = np.array([job["steps_remaining"] for job in self.jobs], dtype=float)
        self.t = np.array([job["time_since_start"] for job in self.jobs], dtype=float)
        self.gangs = [(job["job_type"], job["scale_factor"]) for job in self.jobs]
        self.T = np.array([self._alone(*gang) for gang in self.gangs])
        self.entities = [job["entity"] for job in self.jobs]
        self.entity_weights = said["entity_weights"]

    def _alone(self, job_type: str, size: int) -> Floats:
        return speeds().solo_throughput(job_type, size)[self._of_types()]

    def _of_types(self) -> list[int]:
        return [speeds().types.index(name) for name in self.types]

    def view(self, policy: Policy) -> View:
        """Return what the policy needs to see; time 0 is now."""
        tenants = Tenants.of(self.entities, {name: Tenant(weight) for name, weight in self.entity_weights.items()})
        kinds = list(dict.fromkeys(self.gangs))
        columns = {
            "throughput": self.T, "capacity": self.C, "scale_factor": self.z, "weight": self.w, "remaining": self.r,
            "submitted": -self.t, "price": self.price,
            "equal_share_throughput": oracles.isolated_speed(self.T, self.z, self.C),
            "tenant": np.array([tenants.row_of(name) for name in self.entities]), "tenants": tenants,
            "on_type": np.full(len(self.jobs), -1), "job_class": np.array([kinds.index(gang) for gang in self.gangs]),
            "packed_throughput": self.paired(kinds) if "packed_throughput" in policy.info.needs else None,
        }  # fmt: skip
        needed = {name: columns[name] for name in policy.info.needs}
        memory = {name: np.full(len(self.jobs), value) for name, value in policy.info.memory_columns.items()}
        return View(at=0.0, types=self.types, jobs=len(self.jobs), columns=needed, memory=memory)

    def paired(self, kinds: list[tuple[str, int]]) -> Floats:
        """Return steps/s of each kind beside each."""
        table = np.zeros((len(kinds), len(kinds), len(self.types)))
        for i, (mine, size) in enumerate(kinds):
            for j, (other, same) in enumerate(kinds):
                if size == same:
                    table[i, j] = speeds().packed_throughput(mine, other, size)[self._of_types()]
        return table

    def effective(self, answer: Answer, view: View) -> Floats:
        """Return the effective throughput of each job."""
        if isinstance(answer, Order):
            return self._served(answer)
        assert isinstance(answer, Shares)
        if answer.rows is None:
            return np.asarray((self.T * answer.x).sum(axis=1))
        got, rows = np.zeros(len(self.jobs)), answer.rows
        mates = rows.filled()[0]
        for m, n, j, x in zip(rows.job, mates, rows.type, answer.x, strict=True):
            got[m] += x * (self.T[m, j] if n < 0 else view.packed_throughput[view.job_class[m], view.job_class[n], j])
            if n >= 0:
                got[n] += x * view.packed_throughput[view.job_class[n], view.job_class[m], j]
        return got

    def _served(self, order: Order) -> Floats:
        """Return throughputs when the order is served on an empty cluster."""
        got, free = np.zeros(len(self.jobs)), self.C.copy()
        for m in dict.fromkeys(order.rows.job.tolist()):
            fits = [j for j in order.rows.type[order.rows.job == m].tolist() if free[j] >= self.z[m]]
            if fits:
                free[fits[0]] -= self.z[m]
                got[m] = self.T[m, fits[0]]
            elif order.misfit == "stop":
                break
        return got

    def figures(self, got: Floats, per_cost: float) -> dict[str, float]:
        """Return the columns of the published results."""
        normal = self.T @ (self.C / self.C.sum())
        alone = oracles.isolated_speed(self.T, self.z, self.C)
        with np.errstate(divide="ignore"):
            return {
                "min_normalised": float((self.z * got / (self.w * normal)).min()),
                "max_rho": float(((self.t + self.r / got) / (self.r / alone)).max()),
                "max_duration": float((self.r / got).max()),
                "sum_throughput": float(got.sum()),
                "sum_throughput_per_cost": per_cost,
            }


def asked(name: str, policy: str) -> tuple[Problem, Floats, dict[str, float]]:
    """Return the problem, our effective throughputs and our figures under the policy that Gavel calls so."""
    problem, ours = Problem(instances()[name]), build(f"gavel:{policy}")
    view = problem.view(ours)
    answer = ours.decide(view)
    got = problem.effective(answer, view)
    plain = isinstance(answer, Shares) and answer.rows is None
    per_cost = float((problem.T * answer.x / problem.price).sum()) if plain else 0.0  # type: ignore[attr-defined]
    return problem, got, problem.figures(got, per_cost)


@pytest.mark.parametrize(("name", "policy"), posed(tuple(OWN_COLUMN)))
def test_our_answer_is_as_good_as_gavels_in_its_own_objective(name: str, policy: str) -> None:
    _, _, mine = asked(name, policy)
    column = OWN_COLUMN[policy]
    published = instances()[name]["results"][policy][column]
    better = mine[column] <= published * (1 + CLOSE) if "max_" in column else mine[column] >= published * (1 - CLOSE)
    assert better, f"{column}: ours {mine[column]}, Gavel's {published}"


@pytest.mark.parametrize(("name", "policy"), posed(("min_total_duration_perf",)))
def test_gavels_makespan_is_up_to_five_per_cent_above_the_exact_one(name: str, policy: str) -> None:
    _, _, mine = asked(name, policy)
    assert 1 - CLOSE <= instances()[name]["results"][policy]["max_duration"] / mine["max_duration"] <= 1.05


@pytest.mark.parametrize(("name", "policy"), posed(UNIQUE))
def test_what_has_one_answer_is_the_same(name: str, policy: str) -> None:
    """Up to the first job that Gavel's queue starts on a type of which its table says that it cannot run there."""
    problem, got, _ = asked(name, policy)
    published = np.array(instances()[name]["results"][policy]["effective_throughputs"])
    stuck = np.flatnonzero((problem.T == 0).any(axis=1) & (got == 0) & (published == 0))
    until = stuck[0] if policy == "fifo_perf" and len(stuck) else len(got)
    assert until > 30 or until == len(got)
    np.testing.assert_allclose(got[:until], published[:until], rtol=1e-6)


@pytest.mark.parametrize(("name", "policy"), posed(("allox",)))
def test_allox_starts_as_many_jobs_on_each_type(name: str, policy: str) -> None:
    """Who of equally long queues is first is a tie; how many queues there are on each type is not."""
    problem, got, _ = asked(name, policy)
    published = np.array(instances()[name]["results"][policy]["effective_throughputs"])
    starts = [np.isclose(served[:, None], problem.T, rtol=1e-6) & (served > 0)[:, None] for served in (got, published)]
    np.testing.assert_array_equal(starts[0].sum(axis=0), starts[1].sum(axis=0))
