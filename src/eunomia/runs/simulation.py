"""Runs a scenario on a simulated backend."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eunomia.backends.inputs import VirtualBackend
from eunomia.backends.protocol import Backend, TunableBackend
from eunomia.inputs.atomic_write import write_whole
from eunomia.metrics import Figures, Metrics
from eunomia.model.arrays import Array
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.policy import Policy
from eunomia.policies.order.fifo import Fifo
from eunomia.records.record import Record, Recorder
from eunomia.records.run import InlinePolicyRunner, Observer, run
from eunomia.runs.as_it_was import AS_IT_WAS, past_metrics
from eunomia.runs.measurement_window import StopWhenMeasured, measured_figures, measured_jobs, measured_note
from eunomia.runs.pair_profiling import PairProfiling, ProfilerSettings
from eunomia.runs.result_files import Refusals, completion_sentences, write_columns, write_json
from eunomia.runs.run_time_estimates import RunTimeEstimating, described_estimates, estimates_note, estimating_run_times
from eunomia.runs.scenario_variants import spelling
from eunomia.runs.throughput_learning import (
    ThroughputLearner,
    ThroughputLearning,
    learning_note,
    learnt_table,
    throughput_learner,
)
from eunomia.scenario import Scenario, load_scenario, scenario_from_dict
from eunomia.setup.belief_estimate import EstimatedSpeeds
from eunomia.setup.policy_lookup import changed_parameters, knows_durations
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig, virtual_backend, with_lost_time
from eunomia.setup.tuner_setup import drawn_loss, observes_losses, with_tuners
from eunomia.verdict.number_format import shown
from eunomia.verdict.run_figures import JobOutcome

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[int, int, float], None]  # ended jobs, all jobs, virtual time in s
_PROGRESS_MOMENTS = 500  # between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """The results of one run. `jobs` has the columns of jobs.csv; `notes` state assumptions behind the numbers."""

    scenario: Scenario
    figures: Figures
    timing: Mapping[str, float | int | None]
    notes: tuple[str, ...]
    record: Record | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)  # job id → reason
    given_up: str = ""  # why the run was ended early, if it was
    outcomes: tuple[JobOutcome, ...] = ()  # of the jobs of a real run
    offered_load: float | None = None  # mean demand of the jobs ÷ capacity while they arrive
    estimates: tuple[str, ...] = ()  # of a typical job and job type, whose run times and pairs are estimated
    own_measure: str = ""  # number of summary.json that the policy is meant to keep small; "" = none
    throughputs: str = ""  # what was learnt of throughputs, as a table for [throughputs] source; "" = nothing
    knows_durations: bool = False  # the policy uses durations of jobs that a real cluster does not know

    @property
    def summary(self) -> Mapping[str, float | int | None]:
        """Return the numbers of summary.json."""
        return self.figures.summary

    @property
    def jobs(self) -> Mapping[str, Array]:
        """Return the columns of jobs.csv."""
        return self.figures.jobs

    @property
    def endings(self) -> tuple[str, ...]:
        """Return sentences on the jobs that did not finish, and why; none when all did."""
        return (*completion_sentences(self.summary, self.jobs, self.refusals), *filter(None, (self.given_up,)))

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Return why jobs are unfinished; nothing if none is. Jobs outside a measured window are not counted."""
        return self.endings if self.given_up or self.summary["jobs_unfinished"] else ()

    def __repr__(self) -> str:
        done, jobs = self.summary["jobs_finished"], self.summary["jobs_submitted"]
        mean = shown(self.summary["jct_mean_s"], "s")
        return f"<Result of {spelling(self.scenario)}: {done:,} of {jobs:,} jobs finished, {mean} on average>"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: the numbers of summary.json, and what was estimated in words."""
        return {**self.summary, **({"estimates": list(self.estimates)} if self.estimates else {})}

    def frame(self) -> pa.Table:
        """Return the jobs as an Arrow table, one row each, which pandas, polars and duckdb read."""
        import pyarrow as pa  # 34 MiB, which a run does without

        return pa.table({name: pa.array(column.tolist()) for name, column in self.jobs.items()})

    def write(self, folder: Path) -> None:
        """Write summary.json, jobs.csv, tenants.csv, timing.json, and if there are apps apps.csv into a folder."""
        write_json(folder / "summary.json", self.summary)
        write_columns(folder / "jobs.csv", self.jobs)
        write_columns(folder / "tenants.csv", tenants_table([(spelling(self.scenario), self)]))
        if self.figures.apps:
            write_columns(folder / "apps.csv", self.figures.apps)
        if self.throughputs:
            write_whole(folder / "throughputs.csv", self.throughputs.encode())
        write_json(folder / "timing.json", self.timing)


def tenants_table(results: Sequence[tuple[str, Result]]) -> dict[str, Array]:
    """Return the columns of tenants.csv: the rows of each labelled run in turn."""
    labels = [np.full(len(one.figures.tenants["tenant"]), label, dtype=object) for label, one in results]
    names = results[0][1].figures.tenants
    return {
        "policy": np.concatenate(labels),
        **{name: np.concatenate([one.figures.tenants[name] for _, one in results]) for name in names},
    }


class ProgressReporter:
    """An observer that reports the progress of a run."""

    def __init__(self, jobs: int, metrics: Metrics, report: Progress):
        self._jobs, self._metrics, self._report = jobs, metrics, report
        self._moments = 0

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self._count(1, moment.at)

    def observe_batch(self, batch: MomentBatch) -> None:
        self._count(len(batch), batch.at.item(-1))

    def _count(self, moments: int, at: float) -> None:
        self._moments += moments
        if self._moments >= _PROGRESS_MOMENTS:
            self._moments = 0
            self._report(self._metrics.ended, self._jobs, at)


def simulate(
    scenario: Scenario | Path | str | Mapping[str, Any],
    *,
    policy: str | Policy | None = None,
    record_to: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run a scenario in virtual time.

    Takes a scenario, the path of a scenario file, or its content as a mapping. `policy`, spelt as after `--policy` or
    an object, takes the place of the scenario's. Writes moments and decisions to `record_to`. Raises
    InvalidInput with everything that is wrong with the input.
    """
    if isinstance(scenario, Mapping):
        scenario = scenario_from_dict(scenario, Path.cwd())
    elif not isinstance(scenario, Scenario):
        scenario = load_scenario(Path(scenario))
    wall, cpu = time.perf_counter(), time.process_time()
    if isinstance(policy, str):
        scenario = scenario.with_policy(policy)
    elif policy is not None:
        scenario = scenario.with_policy_of(policy.info.name, changed_parameters(policy))
    if scenario.policy.name == AS_IT_WAS and record_to is None:
        return _as_it_was(scenario, wall, cpu)
    setup = set_up(scenario, policy=None if isinstance(policy, str) else policy)
    policy_runner = InlinePolicyRunner(setup.policy)
    with ExitStack() as stack:
        opened, observers = OpenRun(setup), list[Observer]()
        if record_to is not None:
            observers.append(stack.enter_context(Recorder(record_to, setup.record_header())))
        if progress is not None:
            observers.append(ProgressReporter(len(setup.jobs), opened.metrics, progress))
        backend, scheduler = opened.backend(), setup.scheduler()
        opened.metrics.follow(scheduler.state.register)
        stalled = run(scheduler, backend, policy_runner, [*opened.observers, *observers])
    del backend, scheduler
    if progress is not None:
        progress(opened.metrics.ended, opened.metrics.ended, opened.metrics.end_s)
    return replace(
        opened.result(stalled, lambda: timing(wall, cpu, policy_runner, setup)),
        record=None if record_to is None else Record(record_to),
    )


class OpenRun:
    """A run of a scenario in virtual time: its backend, its observers, and its result at the end."""

    def __init__(self, setup: RunConfig) -> None:
        self.setup, self.metrics, self.refusals = setup, setup.metrics(), Refusals()
        self.measured = measured_jobs(setup.scenario, setup.jobs)
        self._counted = setup.jobs if self.measured is None and setup.measuring else self.measured
        self._profiling: PairProfiling | None = None
        self._estimating: RunTimeEstimating | None = None
        self._learner: ThroughputLearner | None = None
        self.observers: tuple[Observer, ...] = (self.metrics, self.refusals)
        self._world: VirtualBackend | None = None

    def backend(self) -> Backend:
        """Return the backend, with searches, losses and estimates of run times where the scenario has them."""
        setup, scenario = self.setup, self.setup.scenario
        self._world = world = virtual_backend(setup)
        backend: Backend = world
        reports = observes_losses(setup.policy)
        if setup.tuners or reports:
            if not isinstance(world, TunableBackend):
                rule, fix = "it does not report steps of jobs, which tuners need", "choose another, or leave [apps] out"
                raise scenario.refused(("world", "backend"), rule, fix, scenario.world.backend)
            backend = with_tuners(world, setup.jobs, setup.tuners, drawn_loss(scenario.seed), reports=reports)
        belief = scenario.belief
        if isinstance(setup.believed, EstimatedSpeeds) and setup.measuring:
            settings = ProfilerSettings(
                budget=belief.budget, slice_s=belief.profile_s, telling=belief.choose == "telling",
                caution=belief.caution, tolerance=0.02 if belief.tolerance is None else belief.tolerance,
                seed=scenario.seed, matching=belief.solver if belief.method == "match" else "",
            )  # fmt: skip
            backend = self._profiling = PairProfiling(
                backend, setup.believed, setup.measuring, setup.topology, settings
            )
        self._learner = throughput_learner(setup)
        if self._learner is not None:
            backend = ThroughputLearning(backend, self._learner)
        if belief.duration != "declared":
            backend = self._estimating = estimating_run_times(setup, backend)
        if self.measured is not None and scenario.measure.stop:
            backend = StopWhenMeasured(backend, self.measured)
        elif setup.measuring:
            backend = StopWhenMeasured(backend, setup.jobs)
        return backend

    def result(self, stalled: str, timed: Callable[[], Mapping[str, float | int | None]]) -> Result:
        """Return the results of the run, which has ended; `timed` gives the numbers of timing.json."""
        setup, metrics, world = self.setup, self.metrics, self._world
        assert world is not None
        losses, given_up = world.losses(metrics.end_s), stalled or world.given_up
        self._world = world = None  # its memory is used again for the figures
        figures = measured_figures(with_lost_time(metrics, losses), self._counted, metrics.metrics)
        figures = setup.origins.added_to(figures)
        said: tuple[str, ...] = ()
        if self._estimating is not None:
            said = estimates_note(self._estimating.run_s, figures.jobs)
        if self._profiling is not None:
            said = (*said, self._profiling.note())
        if self._learner is not None:
            said = (*said, learning_note(self._learner, metrics.end_s * setup.topology.devices))
        estimates = described_estimates(setup, figures.jobs)
        return Result(
            scenario=setup.scenario,
            figures=figures,
            timing=timed(),
            notes=setup.notes + measured_note(self.measured, setup.jobs) + estimates + said,
            estimates=setup.origins.sentences + estimates,
            refusals=self.refusals.why,
            given_up=given_up,
            offered_load=setup.offered_load(),
            own_measure=setup.policy.info.own_measure,
            throughputs=learnt_table(setup),
            knows_durations=knows_durations(setup.policy, setup.scenario),
        )


def _as_it_was(scenario: Scenario, wall: float, cpu: float) -> Result:
    """Return the results of the schedule as it was."""
    setup = set_up(scenario, policy=Fifo())
    measured, (metrics, notes) = measured_jobs(scenario, setup.jobs), past_metrics(setup)
    return Result(
        scenario=scenario,
        figures=setup.origins.added_to(measured_figures(metrics.figures(), measured, metrics.metrics)),
        timing=timing(wall, cpu, InlinePolicyRunner(setup.policy), setup),
        notes=setup.notes + notes + measured_note(measured, setup.jobs),
        offered_load=setup.offered_load(),
        estimates=setup.origins.sentences,
    )


def timing(wall: float, cpu: float, runner: InlinePolicyRunner, setup: RunConfig) -> dict[str, float | int | None]:
    """Return the numbers of timing.json; `wall` and `cpu` are the clocks at the start of the run, in s."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    cpu_s = time.process_time() - cpu
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": cpu_s,
        "policy_cpu_s": runner.cpu_s,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
        "rounds": runner.asks,
        "solves": runner.asks if setup.policy.info.answer_type == "shares" else 0,
        "round_cpu_ms_mean": 1000 * cpu_s / runner.asks if runner.asks else None,
        "decision_ms_p50": _latency_ms(runner, 50),
        "decision_ms_p99": _latency_ms(runner, 99),
    }


def _latency_ms(runner: InlinePolicyRunner, percentile: int) -> float | None:
    """Return a percentile of the decision latency, in ms."""
    return 1000 * float(np.percentile(runner.latency_s, percentile)) if runner.latency_s else None
