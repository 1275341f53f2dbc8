"""Runs a scenario in real time, as on local processes, with the scheduler, loop, record and metrics of a simulation.

A stopped run is resumed by replaying its journal, including recorded answers, and continuing from there: see `journal`,
`run_directory` and `resumed_world`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from eunomia.backends.inputs import BackendInputs, RealBackend
from eunomia.backends.processes.folder import last_lines
from eunomia.backends.protocol import Backend
from eunomia.backends.run_clock import read_clock
from eunomia.records.record import JOURNAL, RECORD, Record
from eunomia.records.run import Observer, run
from eunomia.runs import run_directory
from eunomia.runs.job_states import JobStates, Watcher
from eunomia.runs.journal import Journal, JournaledWorld, Past, ResumedPolicyRunner, create, pack
from eunomia.runs.measurement_window import measured_figures, measured_jobs, measured_note
from eunomia.runs.result_files import Refusals
from eunomia.runs.results_dir import refused_out
from eunomia.runs.resumed_world import ResumedWorld, check_same_run
from eunomia.runs.run_time_estimates import RunTimeEstimating, described_estimates, estimates_note, estimating_run_times
from eunomia.runs.simulation import Result, timing
from eunomia.runs.throughput_learning import ThroughputLearning, learning_note, learnt_table, throughput_learner
from eunomia.scenario import Scenario
from eunomia.setup.plugins import find_backend
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig, backend_inputs, with_lost_time
from eunomia.setup.tuner_setup import observes_losses, settings_of, with_tuners
from eunomia.verdict.run_figures import JobOutcome

GRACE_S = 10.0  # for a job to save
LOG_LINES = 20  # kept of the log of a job that did not finish


def run_real(
    scenario: Scenario,
    out: Path,
    *,
    resume: bool = False,
    restart: bool = False,
    watcher: Watcher | None = None,
    report: Callable[[Result, Path], object] | None = None,
) -> Result:
    """Run the scenario's jobs in real time, or resume the run in `out`; write the results there.

    However this function ends, `out` holds journal, logs and checkpoints, and `resume` continues from them. `restart`
    removes an earlier run first; `report` adds its files to the results. Logs and checkpoints are in `out`/work unless
    the scenario names another folder. Raises InvalidInput when the backend is a simulation, a job has no command, or
    the run in `out` is a different one.
    """
    _check_backend(scenario)
    wall, cpu = time.perf_counter(), time.process_time()
    setup = set_up(scenario)
    inputs = _inputs(setup, out)
    setup.backend.check(inputs)
    measured = measured_jobs(scenario, setup.jobs)
    metrics, refusals, states = setup.metrics(), Refusals(), JobStates(setup.topology, len(setup.jobs))
    estimating: RunTimeEstimating | None = None
    with run_directory.locked(out, restart=restart):
        past = _past(setup, out, resume=resume)
        policy_runner = ResumedPolicyRunner(setup.policy, past.answers)
        with Journal(out / JOURNAL) as journal, cast(RealBackend, setup.backend.build(inputs)) as world:
            if watcher is not None:
                states.show_changes_to(watcher, lambda: not journal.repeated)
            observers: list[Observer] = [metrics, refusals, journal, states]
            backend = _backend(setup, world, past, out, journal)
            learner = throughput_learner(setup)
            if learner is not None:
                backend = ThroughputLearning(backend, learner)
            if scenario.belief.duration != "declared":
                backend = estimating = estimating_run_times(setup, backend, real=True)
            stalled = run(setup.scheduler(), backend, policy_runner, observers)
        results = run_directory.make_results(out)
        pack(out / JOURNAL, results)
        figures = setup.origins.added_to(measured_figures(with_lost_time(metrics, None), measured, metrics.metrics))
        said = () if estimating is None else estimates_note(estimating.run_s, figures.jobs)
        if learner is not None:
            said = (*said, learning_note(learner, metrics.end_s * setup.topology.devices))
        estimates = described_estimates(setup, figures.jobs)
        result = Result(
            scenario=scenario,
            figures=figures,
            timing=timing(wall, cpu, policy_runner, setup),
            notes=setup.notes + measured_note(measured, setup.jobs) + estimates + said,
            estimates=setup.origins.sentences + estimates,
            refusals=refusals.why,
            given_up=stalled,
            offered_load=setup.offered_load(),
            own_measure=setup.policy.info.own_measure,
            throughputs=learnt_table(setup),
        )
        result = replace(result, outcomes=_outcomes(world, states, result))
        result.write(results)
        if report is not None:
            report(result, results)
        run_directory.publish(out)
    return replace(result, record=Record(out / RECORD))


def _check_backend(scenario: Scenario) -> None:
    if not find_backend(scenario).real_time:
        rule = "eunomia run starts real processes, which this backend does not"
        fix = 'set backend = "local", or use eunomia simulate'
        raise scenario.refused(("world", "backend"), rule, fix, scenario.world.backend)


def _past(setup: RunConfig, out: Path, *, resume: bool) -> Past:
    """Return the journal of an earlier process of the run; create the journal if there is none."""
    if not (out / JOURNAL).exists():
        create(out / JOURNAL, setup.record_header())
        return Past()
    if not resume:
        raise refused_out(out, "the folder holds a run that is not finished", "resume it, or give another one")
    record = Record(out / JOURNAL)
    check_same_run(record.header, setup.record_header(), setup.scenario, out)
    return Past.of(record)


def work_folder(scenario: Scenario, out: Path) -> Path:
    """Return the folder of the jobs' folders."""
    workdir = scenario.world.workdir
    return out / run_directory.WORK if workdir is None else scenario.resolve(workdir)


def _inputs(setup: RunConfig, out: Path) -> BackendInputs:
    reads_losses = setup.tuners or observes_losses(setup.policy)
    return backend_inputs(
        setup,
        workdir=work_folder(setup.scenario, out),
        grace_s=GRACE_S,
        settings=settings_of(setup.jobs, setup.tuners) if reads_losses else None,
        clock=out / run_directory.CLOCK,
        wait_s=run_directory.STOPPING_S,
    )


def _backend(setup: RunConfig, world: RealBackend, past: Past, out: Path, journal: Journal) -> Backend:
    """Return the backend: recorded moments first, then real ones, with the tuners of the scenario."""
    resumed = ResumedWorld(world, past.moments, read_clock(out / run_directory.CLOCK))
    if not setup.tuners:
        return resumed
    journaled = JournaledWorld(resumed, world.loss, journal, past)
    return with_tuners(journaled, setup.jobs, setup.tuners, journaled.loss)


def _outcomes(world: RealBackend, states: JobStates, result: Result) -> tuple[JobOutcome, ...]:
    """Return how each job ended, with the last lines of its log if it did not finish."""
    outcomes = []
    columns = (result.jobs[name].tolist() for name in ("job_id", "status", "jct_s"))
    for job_id, status, jct_s in zip(*columns, strict=True):
        state, log = states.by_id[job_id], world.log(job_id)
        lines = () if status == "finished" else tuple(last_lines(log, LOG_LINES))
        outcomes.append(
            JobOutcome(
                job_id=job_id,
                status=status,
                reason=state.reason if status != "finished" else "",
                starts=state.epoch,
                jct_s=jct_s,
                log=str(log) if state.epoch else "",
                last_lines=lines,
            )
        )
    return tuple(outcomes)
