"""What preemption costs where a history is judged, at which cost a verdict turns, and the log's own wait beside it."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eunomia import simulate
from eunomia.cli.app import app
from eunomia.history import judged_comparison
from eunomia.history.judged_comparison import MOST_JOBS, run_each, sample_of
from eunomia.history.turning_point import ASSUMED, CANNOT_SAVE, CostRange, Outcome, at_cost, preemption_s, with_costs
from eunomia.history.weeks import LoggedWait, Period, baseline_of, logged_wait
from eunomia.scenario import Scenario, load_scenario, scenario_from_dict
from eunomia.traces.table import trace_of

Write = Callable[..., Path]
RUN = CliRunner()
DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
HEADER = "JobID|Account|State|Submit|Start|End|ElapsedRaw|NodeList|AllocTRES|ReqTRES"


def scenario_of(tmp_path: Path, *, started: bool = True, extra: str = "") -> Path:
    """One accelerator; at 0 s a job of 10,000 s comes, at 100 s one of 1,000 s. In the log both waited 50 s."""
    rows = ["a,0,1,any,10000,50", "b,100,1,any,1000,150"] if started else ["a,0,1,any,10000,", "b,100,1,any,1000,"]
    (tmp_path / "jobs.csv").write_text(
        "\n".join(["job_id,submitted_s,scale_factor,job_type,duration_s,started_s", *rows, ""])
    )
    path = tmp_path / "own.toml"
    path.write_text(
        '[cluster]\naccelerators = { v100 = 1 }\n[workload]\ntrace = "jobs.csv"\n[throughputs]\nsource = "uniform"\n'
        + '[policy]\nname = "fifo"\n'
        + extra
    )
    return path


def free(costs: str = "checkpoint_s = 0") -> str:
    return f"[overheads]\n{costs}\n"


def mean_under_srtf(cost_s: float) -> float:
    """By hand: a runs 100 s, b 1,000 s, then a the rest after its cost: b takes 1,000 s, a 11,000 s + the cost."""
    return (1000 + 11_000 + cost_s) / 2


FIFO_MEAN_S = (10_000 + 10_900) / 2  # b waits 9,900 s and runs 1,000 s


def range_of(tmp_path: Path, extra: str) -> CostRange:
    base = load_scenario(scenario_of(tmp_path, extra=extra))
    return CostRange({name: base.with_policy(name) for name in ("srtf", "fifo")}, "srtf", run_each)


@pytest.mark.parametrize("cost_s", [0.0, 60.0, 3000.0])
def test_a_preemption_costs_what_it_is_said_to_cost(tmp_path: Path, cost_s: float) -> None:
    found = range_of(tmp_path, free()).outcomes(cost_s)
    assert found == {"srtf": Outcome(mean_under_srtf(cost_s), 1), "fifo": Outcome(FIFO_MEAN_S, 0)}


def test_the_turn_is_bracketed_by_two_costs_that_were_run(tmp_path: Path) -> None:
    """By hand: srtf is best while (12,000 + c) / 2 ≤ 10,450 / 0.99, so up to c = 9,111 s: above the ladder's end."""
    costs = range_of(tmp_path, free())
    assert costs.turn([0.0, 3840.0, 7680.0]) is None
    low, high = costs.turn([0.0, 7680.0, 15_360.0]) or (0.0, 0.0)
    assert low <= 2 * FIFO_MEAN_S / 0.99 - 12_000 < high
    assert (low, high) == (7680.0, 11_520.0)


def test_a_policy_that_preempts_nothing_is_not_run_again(tmp_path: Path) -> None:
    ran: list[str] = []

    def counted(scenarios: list[Scenario]) -> list[Outcome]:
        ran.extend(one.policy.name for one in scenarios)
        return run_each(scenarios)

    base = load_scenario(scenario_of(tmp_path, extra=free()))
    costs = CostRange({name: base.with_policy(name) for name in ("srtf", "fifo")}, "srtf", counted)
    assert costs.best(0.0) == costs.best(60.0) == "srtf"
    assert ran == ["srtf", "fifo", "srtf"]


def outcomes_by_cost(turns_at_s: float, *, calm: float = 100.0) -> CostRange:
    """`often` takes 50 s at no cost and 100 s at `turns_at_s`; `never` takes 100 s at every cost."""
    base = scenario_from_dict(
        {"cluster": {"accelerators": {"v100": 1}}, "workload": {"generator": "philly-like", "jobs": 2}}, Path()
    )
    labelled = {name: base.with_policy(name) for name in ("las", "fifo")}

    def run(scenarios: list[Scenario]) -> list[Outcome]:
        return [
            Outcome(calm, 0)
            if one.policy.name == "fifo" or not one.workload.interruptible
            else Outcome(50.0 + 50.0 * preemption_s(one.overheads) / turns_at_s, 7)
            for one in scenarios
        ]

    return CostRange(labelled, "las", run)


def test_the_sentence_names_up_to_which_cost_the_policy_is_best_and_what_is_then() -> None:
    text = outcomes_by_cost(100.0).sentence()
    assert "las is best up to 90 s (from 120 s on fifo is better)" in text
    assert "where no job can save, so that none is preempted, it is best" in text


def test_a_calm_policy_is_best_from_a_cost_on() -> None:
    costs = outcomes_by_cost(100.0)
    dear = {label: at_cost(one, 480.0) for label, one in costs.scenarios.items()}
    text = CostRange(dear, "fifo", costs.run).sentence("week 3")
    assert text.startswith("In week 3 alone, by what a preemption costs")
    assert "fifo is best from 120 s on (at 90 s las is better)" in text


def test_where_the_sample_says_otherwise_the_sentence_says_so() -> None:
    costs = outcomes_by_cost(100.0)
    text = CostRange(costs.scenarios, "fifo", costs.run).sentence("the busiest week")
    assert text == "In the busiest week alone las is best, not fifo: the cost at which that turns is not known."
    whole = CostRange(costs.scenarios, "fifo", costs.run).sentence()
    assert whole.startswith("By the mean completion time alone las is best, not fifo:")


def test_without_preemptions_there_is_nothing_to_say(tmp_path: Path) -> None:
    base = load_scenario(scenario_of(tmp_path))
    assert CostRange({"fifo": base, "fifo?backfill=skip": base}, "fifo", run_each).sentence() == ""


@pytest.mark.parametrize("inside_compiled_code", [False, True])
def test_ctrl_c_in_the_search_for_the_cost_keeps_the_comparison(
    inside_compiled_code: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(scenarios: object) -> list[Outcome]:
        if inside_compiled_code:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setattr(judged_comparison, "run_each", interrupted)
    out = tmp_path / "out"
    words = ["compare", str(scenario_of(tmp_path)), "--policy", "fifo", "--policy", "srtf", "--out", str(out)]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "the search was interrupted" in " ".join(done.output.split())
    assert (out / "compare.csv").is_file()


def test_another_cost_keeps_the_parts_of_save_and_restore() -> None:
    base = scenario_from_dict(
        {
            "cluster": {"accelerators": {"v100": 1}},
            "workload": {"generator": "philly-like", "jobs": 2},
            "overheads": {"start_s": 7, "checkpoint_s": 10, "restore_s": 30, "restore_by_size": {"2": 70}},
        },
        Path(),
    )
    costs = at_cost(base, 80.0).overheads
    assert (costs.start_s, costs.checkpoint_s, costs.restore_s, costs.restore_by_size) == (7, 20, 60, {"2": 140})
    assert not at_cost(base, CANNOT_SAVE).workload.interruptible


def test_costs_are_assumed_where_none_are_declared_and_only_there(tmp_path: Path) -> None:
    priced = with_costs(load_scenario(scenario_of(tmp_path)))
    assert priced.scenario.overheads == ASSUMED
    assert "the scenario declares no [overheads]" in priced.assumed[0]
    assert "30 s to save and 90 s to start again" in priced.assumed[0]
    declared = with_costs(load_scenario(scenario_of(tmp_path, extra=free())))
    assert preemption_s(declared.scenario.overheads) == 0
    assert declared.assumed == ("a preemption costs nothing, as [overheads] of the scenario says",)
    ideal = load_scenario(scenario_of(tmp_path, extra='[mechanism]\nname = "ideal"\n'))
    assert with_costs(ideal).scenario is ideal
    assert "knows no [overheads]" in with_costs(ideal).assumed[0]


def compared(path: Path, out: Path, *words: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return what was printed, as one line, and the rows of compare.csv."""
    done = RUN.invoke(app, ["compare", str(path), "--out", str(out), *words])
    assert done.exit_code == 0, done.output
    rows = {one["policy"]: one for one in csv.DictReader((out / "compare.csv").read_text().splitlines())}
    return " ".join(done.stdout.split()), rows


def test_a_comparison_on_a_history_counts_preemption_and_says_where_its_verdict_turns(tmp_path: Path) -> None:
    words = ("--policy", "fifo", "--policy", "srtf")
    text, rows = compared(scenario_of(tmp_path), tmp_path / "out", *words)
    assert float(rows["srtf"]["jct_mean_s"]) == mean_under_srtf(120)
    assert "the scenario declares no [overheads]: a preemption costs its job 30 s to save" in text
    assert "srtf is best at every cost that was tried, 0 to 7,680 s" in text
    assert "where no job can save, so that none is preempted, it is best" in text
    assert "The log itself shows a mean wait of 50.0 s to the first start (2 jobs)" in text
    assert "save and restore together" in (tmp_path / "out" / "report.html").read_text()
    quick, _ = compared(scenario_of(tmp_path), tmp_path / "quick", *words, "--no-turn")
    assert "save and restore together" not in quick
    assert "declares no [overheads]" in quick


def test_a_trace_without_starts_is_no_history_and_keeps_its_costs(tmp_path: Path) -> None:
    path = scenario_of(tmp_path, started=False)
    text, rows = compared(path, tmp_path / "out", "--policy", "fifo", "--policy", "srtf")
    assert float(rows["srtf"]["jct_mean_s"]) == mean_under_srtf(0)
    assert "preemption costs" not in text


@pytest.mark.parametrize(
    ("log_s", "simulated_s", "says"),
    [
        (54_000.0, 3360.0, "explains 56.0 min of that (6.2 %): the rest has other causes, and is not credited"),
        (600.0, 0.0, "explains none of that"),
        (600.0, 900.0, "makes them wait 15.0 min, so it explains all of that"),
        (600.0, 3600.0, "makes them wait 60.0 min: the cluster as it was is not that of the scenario"),
        (1.0, 60.0, "so it explains all of that"),
    ],
)
def test_the_logs_own_wait_stands_beside_the_baseline(log_s: float, simulated_s: float, says: str) -> None:
    text = LoggedWait(mean_s=log_s, jobs=200).beside(simulated_s, "fifo?backfill=easy with durations known")
    assert says in text
    assert "fifo?backfill=easy with durations known" in text


def sacct(jobs: int = 40) -> str:
    """Every day two long jobs come, then two short ones; the log has each start an hour after its submission."""
    lines = [HEADER]
    for k in range(jobs):
        day, first = 1 + k // 4, 6 + k % 4
        last = 20 if k % 4 < 2 else first + 2
        times = [f"2024-01-{day:02d}T{hour:02d}:00:00" for hour in (first - 1, first, last)]
        lines.append(
            f"{k}|lab|COMPLETED|{'|'.join(times)}|{3600 * (last - first)}|g1|gres/gpu:a100=1,gres/gpu=1|gres/gpu=1"
        )
    return "\n".join([*lines, ""])


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    (tmp_path / "sacct.txt").write_text(sacct())
    (tmp_path / "nodes.txt").write_text("NodeName=g1 Gres=gpu:a100:2 CPUTot=8 State=IDLE\n")
    words = ["import", "slurm", str(tmp_path / "sacct.txt"), "--out", str(tmp_path / "ours")]
    words += ["--nodes", str(tmp_path / "nodes.txt")]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "assumed: a preemption costs its job 30 s to save and 90 s to start again and restore" in done.stdout
    assert "assumed: a preempted job can save" in done.stdout
    return tmp_path / "ours" / "scenario.toml"


def test_an_import_writes_what_it_assumes_of_preemption(imported: Path) -> None:
    scenario = load_scenario(imported)
    assert scenario.overheads == ASSUMED
    assert scenario.workload.interruptible
    assert "# assumed: seconds that a preempted job loses" in imported.read_text()


def test_where_no_job_can_save_nothing_is_assumed_of_the_cost_of_a_preemption(imported: Path) -> None:
    scenario = load_scenario(imported, ["workload.interruptible=false"])
    assert with_costs(scenario).assumed == ("no job is preempted: [workload] interruptible = false",)


def test_a_policy_is_judged_on_an_import_with_its_costs_and_beside_the_log(imported: Path) -> None:
    done = RUN.invoke(app, ["whatif", str(imported), "--policy", "srtf", "--weeks", "1", "--jobs", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["log"] == {"wait_mean_s": 3600.0, "jobs": 28}  # of one week
    assert found["baseline"] == "fifo?backfill=easy with durations known"
    assert "The log itself shows a mean wait of 60.0 min" in found["log_sentence"]
    assert "30 s to save and 90 s to start again and restore, as [overheads] of the" in found["assumed"][0]
    assert "srtf is best" in found["preemption_turn"]
    quick = ["whatif", str(imported), "--policy", "srtf", "--weeks", "1", "--jobs", "1", "--json", "--no-turn"]
    assert json.loads(RUN.invoke(app, quick).stdout.splitlines()[-1])["preemption_turn"] == ""


@pytest.mark.parametrize(
    ("policy", "belief", "knows"),
    [("fifo", "declared", False), ("srtf", "declared", True), ("srtf", "history", False),
     ("slurm_fair_share", "declared", True), ("slurm_fair_share", "history", False)],
)  # fmt: skip
def test_a_baseline_knows_durations_where_it_goes_by_them_and_they_are_not_estimated(
    policy: str, belief: str, knows: bool, tmp_path: Path
) -> None:
    scenario = load_scenario(scenario_of(tmp_path), [f"belief.duration={belief}"]).with_policy(policy)
    assert baseline_of(scenario) == (f"{policy} with durations known" if knows else policy)


def test_the_logs_own_wait_is_the_mean_over_its_jobs_however_they_lie_in_the_periods() -> None:
    submitted_s = np.array([0.0, 10.0, 20.0, 100.0])
    waited_s = np.array([60.0, 60.0, 60.0, 3600.0])
    trace = trace_of("x", tuple("abcd"), submitted_s, np.ones(4, dtype=np.int64), started_s=submitted_s + waited_s)
    ends = {"a": (0.0, 100.0, 3), "b": (100.0, 200.0, 1)}
    periods = [
        Period(name=name, start_s=start_s, end_s=end_s, warm_up_s=0.0, jobs=jobs)
        for name, (start_s, end_s, jobs) in ends.items()
    ]
    assert logged_wait(trace, periods) == LoggedWait(mean_s=(3 * 60 + 3600) / 4, jobs=4)


def test_a_long_history_is_run_again_by_its_busiest_week_or_day() -> None:
    day = 86_400.0
    times = np.sort(np.concatenate([np.linspace(0, 70 * day, MOST_JOBS), np.linspace(15 * day, 16 * day, 500)]))
    trace = trace_of("x", list(map(str, range(len(times)))), times, np.ones(len(times), dtype=np.int64))
    where, period = sample_of(trace)
    assert (where, period.start_s, period.end_s) == ("the busiest week (week 3)", 14 * day, 21 * day)
    assert period.jobs == int(((times >= period.start_s) & (times < period.end_s)).sum())
    assert sample_of(trace.take(np.arange(10)))[0] == ""


def test_a_policy_that_cannot_run_at_a_cost_takes_for_ever(tmp_path: Path) -> None:
    """locality lets every gang leave at the end of its lease: one that restores for as long makes no progress."""
    extra = '[mechanism]\nname = "leases"\nlength_s = 300\n'
    scenario = load_scenario(scenario_of(tmp_path, extra=extra)).with_policy("locality")
    assert run_each([at_cost(scenario, 600.0)])[0].jct_s == math.inf


@pytest.mark.slow
def test_real_jobs_are_judged_at_an_assumed_cost(tmp_path: Path) -> None:
    """The first jobs of Venus with starts as under order of submission on 160 accelerators."""
    real = DATA / "traces" / "helios-venus" / "venus_gpu_jobs.csv.gz"
    if not real.exists():
        pytest.skip(f"{real} is absent; set EUNOMIA_DATA to the folder of real data")
    own = {
        "cluster": {"accelerators": {"v100": 160}, "accelerators_per_node": 8},
        "workload": {"trace": str(real), "format": "venus", "max_jobs": 1500},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "fifo"},
    }
    jobs = simulate(own).jobs
    lines = ["job_id,submitted_s,scale_factor,job_type,duration_s,started_s"]
    for job, at, size, start, end in zip(
        *(jobs[name].tolist() for name in ("job_id", "submitted_s", "scale_factor", "first_started_s", "finished_s")),
        strict=True,
    ):
        lines.append(f"{job},{at},{size},any,{end - start},{start}")
    (tmp_path / "jobs.csv").write_text("\n".join([*lines, ""]))
    path = tmp_path / "own.toml"
    path.write_text(
        '[cluster]\naccelerators = { v100 = 160 }\naccelerators_per_node = 8\n[workload]\ntrace = "jobs.csv"\n'
        '[throughputs]\nsource = "uniform"\n[policy]\nname = "fifo"\n'
    )
    text, rows = compared(path, tmp_path / "out", "--policy", "fifo", "--policy", "srtf")
    assert "declares no [overheads]" in text
    assert int(rows["srtf"]["preemptions"]) > 0
    assert float(rows["srtf"]["lost_restore_accelerator_s"]) > 0
