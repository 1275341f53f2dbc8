"""One decision of every policy about one problem: what it says, and that rows stay with their jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eunomia
from eunomia.allocation import Solution, problem_of, solve, write_solution
from eunomia.allocation.problem import BY_JOB
from eunomia.allocation.view_from_problem import SOURCES
from eunomia.inputs.problems import InvalidInput
from eunomia.model.answers import Answer, Rows, Shares
from eunomia.model.certificate import Certificate
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import COLUMNS, View
from eunomia.policies import POLICIES, load
from eunomia.testing.policy_rules import full_view

Fields = dict[str, Any]
Draw = Callable[..., Fields]


@dataclass(frozen=True)
class Says:
    """A policy with a fixed answer."""

    answer: Answer
    needs: frozenset[str] = frozenset()

    @property
    def info(self) -> PolicyInfo:
        return PolicyInfo(name="says", answer_type="shares", objective="", technique="", paper="", needs=self.needs)

    def decide(self, view: View) -> Answer:
        return self.answer


def shuffled(fields: Fields, order: list[int]) -> Fields:
    """Return the problem with row i being what row order[i] was."""
    by_job = {*BY_JOB, "job_type"}
    return {name: [value[m] for m in order] if name in by_job else value for name, value in fields.items()}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_answers_a_problem_that_says_everything(full: Draw, name: str) -> None:
    found = solve(name, full())
    problem = found.problem
    assert found.x.shape == (7, 3)
    assert ((found.x >= 0) & (found.x <= 1 + 1e-9)).all()
    assert (found.x.sum(axis=1) <= 1 + 1e-9).all()
    if found.rows is None:
        assert (problem.scale_factor @ found.x <= problem.capacity + 1e-9).all()
    assert (found.effective_throughput >= 0).all()
    assert (found.effective_throughput <= problem.throughput.max(axis=1) * (1 + 1e-9)).all()
    if found.certificate is not None:
        assert found.status == "optimal"
    result = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert (result["policy"], result["types"], len(result["why"])) == (name, list(problem.types), 7)


@pytest.mark.parametrize("name", POLICIES)
def test_jobs_in_another_order_get_what_they_got(full: Draw, name: str) -> None:
    order = np.random.default_rng(1).permutation(7).tolist()
    one, other = solve(name, full()), solve(name, shuffled(full(), order))
    np.testing.assert_array_equal(other.x, one.x[order])
    np.testing.assert_array_equal(other.effective_throughput, one.effective_throughput[order])
    assert other.why() == [one.why()[m] for m in order]


@pytest.mark.parametrize("name", POLICIES)
def test_an_objective_does_not_depend_on_the_order_of_the_jobs(full: Draw, name: str) -> None:
    fields = {name: value for name, value in full(2).items() if name != "submitted_s"}
    one, other = (solve(name, asked).certificate for asked in (fields, shuffled(fields, [3, 1, 6, 0, 5, 2, 4])))
    if one is None or other is None:
        assert one is other, "only one of the two has a proof"
    else:
        assert other.objective == pytest.approx(one.objective, rel=1e-7)


def test_every_column_of_a_view_has_a_source() -> None:
    assert set(SOURCES) == COLUMNS


def test_a_problem_shows_a_policy_columns_of_the_kind_that_a_simulation_shows(full: Draw) -> None:
    seen: list[View] = []

    class Looks(Says):
        def decide(self, view: View) -> Answer:
            seen.append(view)
            return self.answer

    solve(Looks(Shares(np.zeros((7, 3))), COLUMNS), full())
    simulated = full_view(0)
    for column in COLUMNS - {"apps", "longest_lease", "tenants", "topology"}:
        mine, theirs = seen[0].columns[column], simulated.columns[column]
        assert (mine.ndim, mine.dtype) == (theirs.ndim, theirs.dtype), column
    assert type(seen[0].longest_lease) is type(simulated.longest_lease) is float
    assert type(seen[0].tenants) is type(simulated.tenants)
    assert type(seen[0].apps) is type(simulated.apps)
    assert seen[0].topology.capacity().tolist() == [4.0, 6.0, 8.0]
    assert seen[0].topology.size.tolist() == [2, 2, 4, 2, 4, 4]
    assert len(seen[0].holder) == 18


def test_what_was_before_is_seen_as_time_before_now_and_as_memory(plain: Fields) -> None:
    seen: list[View] = []

    class Remembers(Says):
        @property
        def info(self) -> PolicyInfo:
            needs, remembers = frozenset({"submitted"}), {"alone_time": 0.0, "part": -1.0}
            return replace(super().info, needs=needs, memory_columns=remembers)

        def decide(self, view: View) -> Answer:
            seen.append(view)
            return self.answer

    policy = Remembers(Shares(np.zeros((2, 2))))
    solve(policy, {**plain, "elapsed_s": [30.0, 10.0], "isolated_time_s": [7.0, 8.0]})
    solve(policy, {**plain, "elapsed_s": [30.0, 10.0]})
    assert (seen[0].submitted - seen[0].at).tolist() == [-30.0, -10.0]
    assert seen[0].memory["alone_time"].tolist() == [7.0, 8.0]
    assert seen[0].memory["part"].tolist() == [-1.0, -1.0]
    assert seen[-1].memory["alone_time"].tolist() == [0.0, 0.0]  # a policy may be asked twice, to tell its time


@pytest.mark.parametrize(
    ("column", "field"),
    [("remaining", "steps_remaining"), ("submitted", "elapsed_s"), ("service", "attained_service"), ("price", "price"),
     ("deadline", "deadline_s"), ("tenant", "entity"), ("job_class", "job_type"), ("packed_throughput", "pairs"),
     ("spread_throughput", "throughput_apart"), ("topology", "accelerators_per_node")],
)  # fmt: skip
def test_a_field_that_the_policy_needs_is_asked_for_by_name(plain: Fields, column: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        solve(Says(Shares(np.zeros((2, 2))), frozenset({column})), plain)
    (problem,) = caught.value.problems
    assert (problem.column, problem.fix.split()[:2]) == (field, ["add", f"{field},"])


def test_all_fields_that_are_missing_are_asked_for_once(plain: Fields) -> None:
    with pytest.raises(InvalidInput) as caught:
        solve(Says(Shares(np.zeros((2, 2))), frozenset({"price", "tenant", "tenants"})), plain)
    assert [problem.column for problem in caught.value.problems] == ["price", "entity"]


def test_the_throughput_alone_is_that_of_an_equal_part_unless_it_is_given(plain: Fields) -> None:
    problem = problem_of(plain)
    assert SOURCES["equal_share_throughput"].read(problem).tolist() == [2.0, 2.0]
    assert SOURCES["equal_share_throughput"].read(problem_of({**plain, "isolated_throughput": [5, 6]})).tolist() == [
        5.0,
        6.0,
    ]


def test_an_order_gives_whole_shares_until_the_accelerators_are_used_up(plain: Fields) -> None:
    found = solve("fifo", {**plain, "throughput": [[3.0, 1.0], [3.0, 1.0], [3.0, 1.0]]})
    assert found.x.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert found.effective_throughput.tolist() == [3.0, 1.0, 0.0]
    assert (found.status, found.certificate) == ("decided", None)
    assert found.as_dict()["objective"] is None


def test_a_gang_that_does_not_fit_holds_up_the_queue_unless_the_policy_skips_it() -> None:
    fields = {"types": ["gpu"], "capacity": [3], "throughput": [[1.0]] * 3, "scale_factor": [2, 2, 1]}
    assert solve("fifo", fields).x[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert solve("fifo?backfill=skip", fields).x[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_a_short_job_runs_before_a_reservation_when_the_remaining_steps_are_known() -> None:
    sizes = {"types": ["gpu"], "capacity": [3], "throughput": [[1.0]] * 3, "scale_factor": [2, 3, 1]}
    for left, runs in (([10, 10, 5], 1.0), ([10, 10, 50], 0.0)):
        assert solve("fifo?backfill=easy", {**sizes, "steps_remaining": left}).x[2, 0] == runs


def test_who_was_submitted_first_is_served_first(plain: Fields) -> None:
    alike = {**plain, "throughput": [[3.0, 1.0], [3.0, 1.0]]}
    assert solve("fifo", alike).x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert solve("fifo", {**alike, "submitted_s": [9.0, 4.0]}).x.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def _paired(plain: Fields) -> Fields:
    pair = {"type": "v100", "job_type": "LM", "partner_job_type": "CNN", "steps_per_s": 2.0, "partner_steps_per_s": 0.5}
    return {**plain, "job_ids": ["a", "b"], "job_type": ["LM", "CNN"], "pairs": [pair]}


def test_jobs_that_share_go_as_fast_as_they_go_beside_each_other(plain: Fields) -> None:
    rows = Rows(np.array([0, 1, 0]), np.array([0, 1, 1]), partner=np.array([1, -1, -1]))
    found = solve(Says(Shares(np.array([0.5, 0.25, 0.0]), rows)), _paired(plain))
    assert found.effective_throughput.tolist() == [0.5 * 2.0, 0.5 * 0.5 + 0.25 * 3.0]
    assert found.x.tolist() == [[0.5, 0.0], [0.5, 0.25]]
    assert found.as_dict()["x"] == [
        {"job": "a", "partner": "b", "type": "v100", "share": 0.5},
        {"job": "b", "partner": None, "type": "k80", "share": 0.25},
    ]
    assert found.partners(5) == [["b"], ["a"]]


def test_rows_with_partners_go_back_to_where_their_jobs_stand(plain: Fields) -> None:
    rows = Rows(np.array([0]), np.array([0]), partner=np.array([1]))
    proof = Certificate(objective=1.0, bound=1.0, binding=np.array([0, 1]))
    answer = Shares(np.array([0.5]), rows, why={0: "late", 1: "second"}, late=(0,), certificate=proof)
    found = solve(Says(answer), {**_paired(plain), "submitted_s": [2.0, 1.0]})
    assert found.as_dict()["x"] == [{"job": "b", "partner": "a", "type": "v100", "share": 0.5}]
    assert found.as_dict()["late"] == ["b"]
    assert found.why()[0] == "second"
    assert found.why()[1] == "late"


def test_a_gang_wider_than_a_machine_goes_as_fast_as_it_goes_apart(plain: Fields) -> None:
    rows = Rows(np.array([0, 1]), np.array([0, 0]), within=np.array([0, -1]))
    sized = {"capacity": [8, 8], "scale_factor": [2, 4], "accelerators_per_node": [2, 2]}
    apart = {"throughput_apart": [[2.0, 0.5], [0.25, 2.0]]}
    found = solve(Says(Shares(np.array([1.0, 1.0]), rows)), {**plain, **sized, **apart})
    assert found.effective_throughput.tolist() == [3.0, 0.25]


@pytest.mark.parametrize(("bound", "status"), [(1.0, "optimal"), (1 + 1e-7, "feasible"), (2.0, "feasible")])
def test_nothing_is_called_optimal_without_its_proof(plain: Fields, bound: float, status: str) -> None:
    proof = Certificate(objective=1.0, bound=bound)
    assert solve(Says(Shares(np.zeros((2, 2)), certificate=proof)), plain).status == status


def test_what_is_not_finite_is_null(plain: Fields) -> None:
    proof = Certificate(objective=1.0, bound=float("inf"))
    result = solve(Says(Shares(np.zeros((2, 2)), certificate=proof)), plain).as_dict()
    assert (result["bound"], result["gap"], result["status"]) == (None, None, "feasible")


def test_deadlines_that_cannot_all_be_met_name_the_fewest_that_are_late() -> None:
    fields = {
        "types": ["gpu"], "capacity": [1], "throughput": [[1.0]] * 3, "job_ids": ["a", "b", "c"], "price": [1.0],
        "steps_remaining": [60.0, 60.0, 5.0], "deadline_s": [100.0, 100.0, None],
    }  # fmt: skip
    found = solve("throughput_per_cost?deadlines=true&objective=sum", fields)
    assert len(found.as_dict()["late"]) == 1
    assert set(found.as_dict()["late"]) <= {"a", "b"}
    kept = ({"a", "b"} - set(found.as_dict()["late"])).pop()
    assert found.effective_throughput["ab".index(kept)] >= 0.6 - 1e-9
    assert "late" in found.why()["ab".index(found.as_dict()["late"][0])]


def test_the_fields_a_file_and_a_problem_get_the_same_answer(tmp_path: Path, plain: Fields) -> None:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(plain))
    asked = [plain, str(path), path, problem_of(plain)]
    assert (
        len(
            {
                json.dumps({**eunomia.solve("isolated", one).as_dict(), "seconds": 0, "compile_seconds": 0})
                for one in asked
            }
        )
        == 1
    )
    assert solve(load("isolated")(), plain).policy == "isolated"


def test_a_solution_as_arrays_says_what_it_says_as_json(tmp_path: Path, plain: Fields) -> None:
    proof = Certificate(objective=1.0, bound=1.0, price=np.array([0.5, 0.5]), binding=np.array([0, 1]))
    found = solve(Says(Shares(np.eye(2), late=(1,), certificate=proof)), plain)
    write_solution(found, tmp_path / "answer.npz")
    write_solution(found, tmp_path / "answer.json")
    result = json.loads((tmp_path / "answer.json").read_text())
    assert result == found.as_dict()
    with np.load(tmp_path / "answer.npz", allow_pickle=False) as arrays:
        assert arrays["reasons"][arrays["why"]].tolist() == result["why"]
        for name in ("status", "policy", "objective", "bound", "gap", "types", "x", "prices", "late", "seconds"):
            assert arrays[name].tolist() == result[name], name
        assert "job_ids" not in arrays


def test_a_table_of_jobs_says_what_json_says(tmp_path: Path, full: Draw) -> None:
    found = solve("max_min_fairness", full(jobs=9))
    write_solution(found, tmp_path / "answer.arrow")
    table = pa.ipc.open_file(tmp_path / "answer.arrow").read_all()
    facts = json.loads(table.schema.metadata[b"eunomia"])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    assert list(columns) == ["job_ids", "x", "effective_throughput", "why"]
    assert {**facts, **columns} == found.as_dict()


def test_a_table_of_jobs_has_the_rows_of_pairs(tmp_path: Path, full: Draw) -> None:
    found = solve("max_min_fairness?space_sharing=true", full(jobs=9))
    assert isinstance(found, Solution)
    assert found.rows is not None
    write_solution(found, tmp_path / "answer.arrow")
    table = pa.ipc.open_file(tmp_path / "answer.arrow").read_all()
    name = found.problem.name
    listed = [
        {**row, "job": name(m), "partner": None if row["partner"] is None else name(row["partner"])}
        for m, rows in enumerate(table["rows"].to_pylist())
        for row in rows
    ]
    place = {name(m): m for m in range(found.problem.jobs)}
    assert listed == sorted(found.row_records(), key=lambda row: place[row["job"]])
    assert table["x"].to_pylist() == found.x.tolist()


@pytest.mark.parametrize("ending", ["json", "npz", "arrow"])
def test_a_problem_as_json_and_as_arrays_has_the_same_answer(tmp_path: Path, full: Draw, ending: str) -> None:
    fields = full(jobs=40)
    del fields["pairs"], fields["entity_weight"], fields["entity_inner"]
    (tmp_path / "problem.json").write_text(json.dumps(fields))
    fields["deadline_s"] = [np.inf if at is None else at for at in fields["deadline_s"]]
    np.savez(tmp_path / "problem.npz", **{name: np.asarray(value) for name, value in fields.items()})
    files = []
    for name in ("problem.json", "problem.npz"):
        found = solve("max_min_fairness", tmp_path / name)
        assert isinstance(found, Solution)
        path = tmp_path / f"{name}.{ending}"
        write_solution(replace(found, seconds=0.0, compile_seconds=0.0), path)
        files.append(path.read_bytes())
    assert files[0] == files[1]
