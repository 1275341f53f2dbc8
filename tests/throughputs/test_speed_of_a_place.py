"""A policy that looks at places and the world agree on the speed of a gang in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.allocation import solve
from eunomia.runs.simulation import simulate
from eunomia.scenario import scenario_from_dict

SENSITIVE = "max_min_fairness?placement=sensitive"
STEPS = 36_000.0


def scenario_of(
    folder: Path, types: list[str], rates: np.ndarray, nodes: list[list[int]], size: int, policy: str, physics: str
) -> dict[str, Any]:
    """Return a scenario with one gang of `size`; rates (type, 2) on one machine and on several, nodes by type."""
    rows = [
        f"{name},job,{size},{rate},{where}"
        for name, both in zip(types, rates.tolist(), strict=True)
        for rate, where in zip(both, ("consolidated", "unconsolidated"), strict=True)
    ]
    (folder / "rates.csv").write_text("\n".join(["type,job_type,scale_factor,steps_per_s,placement", *rows]))
    (folder / "jobs.csv").write_text(
        f"job_id,submitted_s,scale_factor,job_type,total_steps\none,0,{size},job,{STEPS}\n"
    )
    machines = [{"type": name, "accelerators": n} for name, some in zip(types, nodes, strict=True) for n in some]
    name, _, option = policy.partition("?")
    chosen = {"name": name, **(dict([option.split("=")]) if option else {})}
    return {
        "cluster": {"nodes": machines},
        "workload": {"trace": "jobs.csv"},
        "throughputs": {"source": "rates.csv"},
        "policy": chosen,
        "physics": {"placement": physics},
    }


def ends_at(folder: Path, *said: Any, physics: str = "throughputs") -> float:
    result = simulate(scenario_from_dict(scenario_of(folder, *said, physics), folder))
    return float(result.jobs["jct_s"][0])


@pytest.mark.parametrize("policy", [SENSITIVE, "max_min_fairness"])
def test_a_row_measured_on_several_machines_holds_for_a_gang_that_no_machine_holds(tmp_path: Path, policy: str) -> None:
    """Four V100 in machines of two: 6 steps/s and not 10. On a P100 machine of four 8: the gang runs there."""
    v100, p100 = (["v100"], np.array([[10.0, 6.0]]), [[2, 2]]), (["p100"], np.array([[8.0, 5.0]]), [[4]])
    both = (["v100", "p100"], np.array([[10.0, 6.0], [8.0, 5.0]]), [[2, 2], [4]])
    assert ends_at(tmp_path, *v100, 4, policy) == pytest.approx(STEPS / 6)
    assert ends_at(tmp_path, *p100, 4, policy) == pytest.approx(STEPS / 8)
    assert ends_at(tmp_path, *both, 4, policy) == pytest.approx(STEPS / 8)
    problem = {
        "types": ["v100", "p100"], "capacity": [4, 4], "scale_factor": [4], "throughput": [[10.0, 8.0]],
        "throughput_apart": [[6.0, 5.0]], "accelerators_per_node": [2, 4],
    }  # fmt: skip
    found = solve(policy, problem)
    assert (found.x.tolist(), found.effective_throughput.tolist()) == ([[0.0, 1.0]], [8.0])


@pytest.mark.parametrize("policy", [SENSITIVE, "max_min_fairness", "fifo"])
def test_rows_of_several_machines_hold_without_being_asked_for(tmp_path: Path, policy: str) -> None:
    v100 = (["v100"], np.array([[10.0, 6.0]]), [[2, 2]])
    assert ends_at(tmp_path, *v100, 4, policy, physics="auto") == pytest.approx(STEPS / 6)
    assert ends_at(tmp_path, *v100, 4, policy, physics="off") == pytest.approx(STEPS / 10)
    assert ends_at(tmp_path, *v100, 2, policy, physics="auto") == pytest.approx(STEPS / 10)


@pytest.mark.parametrize("seed", range(12))
def test_one_decision_and_the_simulation_agree_on_the_speed(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, types = int(rng.choice([2, 3, 4, 8])), ["a", "b", "c"][: int(rng.integers(1, 4))]
    per_node = rng.choice([1, 2, 4, 8], len(types))
    nodes = [[int(n)] * int(-(-size // n) + rng.integers(0, 2)) for n in per_node]
    together = rng.uniform(1.0, 10.0, len(types)).round(3)
    rates = np.stack((together, (together * rng.uniform(0.3, 1.0, len(types))).round(3)), axis=1)
    problem = {
        "types": types, "capacity": [sum(some) for some in nodes], "scale_factor": [size],
        "throughput": [rates[:, 0].tolist()], "throughput_apart": [rates[:, 1].tolist()],
        "accelerators_per_node": per_node.tolist(),
    }  # fmt: skip
    for policy in (SENSITIVE, "max_min_fairness"):
        speed = solve(policy, problem).effective_throughput[0]
        best = max(both[int(n < size)] for both, n in zip(rates.tolist(), per_node, strict=True))
        assert speed == pytest.approx(best)
        assert ends_at(tmp_path, types, rates, nodes, size, policy) == pytest.approx(STEPS / speed)


def test_a_world_without_places_says_that_it_has_none(tmp_path: Path) -> None:
    said = (["v100"], np.array([[10.0, 6.0]]), [[2, 2]], 4)
    for policy, physics, noted in ((SENSITIVE, "off", True), (SENSITIVE, "throughputs", False), ("fifo", "off", False)):
        notes = simulate(scenario_from_dict(scenario_of(tmp_path, *said, policy, physics), tmp_path)).notes
        assert any("slower on several machines" in note for note in notes) == noted
