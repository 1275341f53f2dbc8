"""Every policy that ships brings every run to its end, however much there is to do and however time is cut."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.model.events import Answered, Progressed
from eunomia.policies import POLICIES
from eunomia.policies import load as load_policy
from eunomia.records import run as loop
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import simulate

if TYPE_CHECKING:
    from conftest import Desk

MECHANISMS: dict[str, dict[str, Any] | None] = {
    "own": None,
    "rounds": {"name": "leases", "length_s": 360.0, "aligned": True},
    "recalled at any moment": {"name": "leases", "length_s": math.inf, "aligned": False, "recall": True},
    "leases that end apart": {"name": "leases", "length_s": 600.0, "aligned": False},
    "gavel": {"name": "gavel"},
    "ideal": {"name": "ideal"},
}
ALL_DOORS = ("shares", "order", "grants")
DOORS = {"gavel": ("shares", "order"), "ideal": ("shares",)}  # which answers a mechanism takes, where not all
WORKLOADS = {"demo": (12, 4.0), "crowded": (16, 60.0), "idle": (6, 0.2)}  # jobs, and how many come in an hour
ACCELERATORS = {"demo": 36, "crowded": 4, "idle": 8}  # of each type


def scenario(policy: str, load: str, mechanism: str) -> dict[str, Any]:
    """Return the demo, or as many jobs at a busier or quieter cluster, with time cut like that."""
    jobs, rate = WORKLOADS[load]
    bare = mechanism in ("gavel", "ideal")
    return {
        "cluster": {
            "accelerators": dict.fromkeys(("v100", "p100", "k80"), ACCELERATORS[load]),
            "accelerators_per_node": 4,
        },
        "workload": {
            "generator": "philly-like",
            "jobs": jobs,
            "rate_per_hour": rate,
            "job_types": "mix:default",
        },
        "throughputs": {"source": "catalogue", "reference_type": "v100"},
        "overheads": {} if bare else {"start_s": 20, "checkpoint_s": 10, "restore_s": 30},
        "policy": {"name": policy},
        **({} if MECHANISMS[mechanism] is None else {"mechanism": MECHANISMS[mechanism]}),
    }


def most_asks_for_one_cause(record: Record) -> float:
    """Return how often a policy was asked at one instant, for each time that something happened there by itself."""
    asks, causes = Counter[float](), Counter[float]()
    for _, moment, _ in record.steps():
        asks[moment.at] += any(isinstance(event, Answered) for event in moment.events)
        causes[moment.at] += not all(isinstance(event, Answered | Progressed) for event in moment.events)
    return max(asks[at] / causes[at] for at in asks)


QUICK = {"fifo", "las", "lottery", "max_min_fairness", "slaq", "tiresias"}  # the others are slow tests
LONGEST = {"quincy"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "policy",
    [
        name
        if name in QUICK
        else pytest.param(name, marks=[pytest.mark.slow, *([pytest.mark.nightly] if name in LONGEST else [])])
        for name in POLICIES
    ],
)
def test_every_policy_ends_the_demo_a_crowded_and_an_idle_cluster(policy: str, mechanism: str, tmp_path: Path) -> None:
    for load in WORKLOADS if mechanism == "own" else ["crowded"]:
        try:
            result = simulate(scenario(policy, load, mechanism), record_to=tmp_path / f"{load}.jsonl.gz")
        except InvalidInput:
            assert load_policy(policy).info.answer_type not in DOORS.get(mechanism, ALL_DOORS)
            continue
        assert result.unfinished == (), load
        assert result.record is not None
        assert most_asks_for_one_cause(result.record) <= 2, load
        assert first_difference(result.record) is None, load


CHANGES_ITS_MIND = """\
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from eunomia.model.answers import Order, Rows
from eunomia.model.policy import ROUNDS, PolicyInfo

@dataclass(frozen=True)
class Restless:
    later: float = 360.0
    info: ClassVar[PolicyInfo] = PolicyInfo(name="restless", answer_type="order", objective="", technique="", paper="",
                                            needs=frozenset(), mechanism=ROUNDS)

    def decide(self, view):
        rows = view.rng().permutation(view.jobs)
        type = view.rng().integers(0, len(view.types), view.jobs)
        return Order(Rows(job=rows, type=type), again_at=view.at + self.later)
"""
RECALLED = CHANGES_ITS_MIND.replace("ROUNDS", "RECALLABLE")
TWO_TYPES = ("--set", "cluster.accelerators={ v100 = 4, k80 = 4 }", "--set", "mechanism.length_s=20")


def test_an_answer_that_changes_every_time_is_asked_for_once_a_round(desk: Desk) -> None:
    desk.write("restless.py", CHANGES_ITS_MIND)
    out = desk.simulate("--policy", "restless.py:Restless", *TWO_TYPES)
    assert most_asks_for_one_cause(Record(out)) <= 2


def test_a_policy_that_wants_to_be_asked_at_once_again_and_again_is_given_up_with_the_reason(desk: Desk) -> None:
    desk.write("restless.py", RECALLED)
    words = ("simulate", "tiny.toml", "--policy", "restless.py:Restless?later=1e-9", "--out", "out", "--record")
    assert desk.type(*words) == 1
    assert "given up: at " in desk.stdout
    for part in ("error: restless.py:Restless", "time stopped advancing", "policy 'restless' was asked", "`again_at`"):
        assert part in desk.stderr
    asks = json.loads((desk.folder / "out" / "timing.json").read_text())["rounds"]
    assert asks <= loop.MAX_MOMENTS + 3 * loop.MAX_MOMENTS_PER_JOB
    assert desk.type("replay", "out") == 0


def test_a_run_that_is_given_up_leaves_the_others_of_a_comparison_and_of_a_sweep_as_they_are(desk: Desk) -> None:
    desk.write("restless.py", RECALLED)
    policies = ("fifo", "restless.py:Restless?later=1e-9")
    words = [word for name in policies for word in ("--policy", name)]
    assert desk.type("compare", "tiny.toml", *words, "--out", "out", "--json") == 1
    assert [row["jobs_finished"] for row in json.loads(desk.stdout)] == [3, 0]
    assert "error: restless.py:Restless?later=1e-9: 0 of 2 jobs finished; 2 were left unfinished" in desk.stderr
    desk.write("sweep.toml", f'scenario = "tiny.toml"\n[axes]\npolicy = {json.dumps(policies)}\n')
    for _ in range(2):  # made, and found to be done
        assert desk.type("sweep", "sweep.toml", "--out", "swept", "--jobs", "1", "--json") == 1, desk.stderr
        (left,) = json.loads(desk.stdout)["unfinished"]
        assert left["policy"] == policies[1]
        assert any("given up: at " in why for why in left["why"])


CHOOSY = (
    CHANGES_ITS_MIND.replace("needs=frozenset()", 'needs=frozenset({"scale_factor"})')
    .replace("view.rng().permutation(view.jobs)", "np.flatnonzero(view.scale_factor == 1)")
    .replace("view.rng().integers(0, len(view.types), view.jobs)", "np.zeros_like(rows)")
)


def test_jobs_that_are_never_seated_make_the_exit_code_1_but_not_outside_a_measured_window(desk: Desk) -> None:
    desk.write("choosy.py", CHOOSY)  # seats single accelerators alone
    words = ("simulate", "tiny.toml", "--policy", "choosy.py:Restless", "--force", "--out", "out")
    assert desk.type(*words) == 1
    assert "error: choosy.py:Restless: 2 of 3 jobs finished; 1 was left unfinished; " in desk.stderr  # after progress
    assert "given up: no job ran for 30 days, and no pending job was placed" in desk.stderr
    assert desk.type(*words, "--set", "measure.first_job=1", "--set", "measure.last_job=2") == 0, desk.stderr
