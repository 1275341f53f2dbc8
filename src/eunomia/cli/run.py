"""`eunomia run`: runs real jobs on this machine, in a folder from which the run can be resumed."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.check import check_policies_of_files
from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED, INTERRUPTED, plugin_errors
from eunomia.cli.live import printable, say
from eunomia.cli.options import ScenarioArgument, flag, option, results_folder, title_of
from eunomia.inputs.interruption import is_interruption

if TYPE_CHECKING:
    from eunomia.runs.simulation import Result
    from eunomia.verdict.run_figures import JobOutcome

LOG_LINES = 5  # shown of the log of an unfinished job
SHOWN_JOBS = 20  # unfinished


@command
def run(
    output: Output,
    scenario: ScenarioArgument,
    out: Annotated[
        Path | None, option("DIR", "Folder of the run: record, logs, checkpoints. Without: out/NAME.")
    ] = None,
    set_: Annotated[
        list[str] | None, option("KEY=VALUE", "Override one key, such as policy.name=las. May be repeated.", "--set")
    ] = None,
    resume: Annotated[bool, flag("Resume the unfinished run in DIR.", "--resume")] = False,
    force: Annotated[bool, flag("Start again; remove the run or results in DIR.", "--force")] = False,
) -> None:
    """Run the jobs for real, on this machine.

    Starts jobs as processes, and stops and resumes them as the scenario's policy decides. Writes what simulate writes,
    and the record. However the command ends, DIR keeps the record, the logs and the checkpoints, and --resume
    continues from them. Exit code 1 when a job did not finish.
    """
    from eunomia.cli.live import watching
    from eunomia.report.run_report import write_run_report
    from eunomia.runs.local_run import run_real, work_folder
    from eunomia.runs.run_directory import RunDirectoryState, check_folder
    from eunomia.runs.scenario_variants import spelling
    from eunomia.scenario import load_scenario

    out = results_folder(out, scenario)
    command = _resume_command(scenario, out, set_ or [])
    state = check_folder(out, resume=resume, force=force, command=command)
    if resume and state is RunDirectoryState.FINISHED:
        output.show(
            lambda: json.loads((out / "summary.json").read_text(encoding="utf-8")),
            f"the run in {out} is finished; nothing was changed",
            f"report: {out / 'report.html'}",
        )
        return
    wanted = load_scenario(scenario, set_ or [])
    check_policies_of_files([wanted])
    verb = "resuming the run" if resume else "run"
    with _resumable(out, command), watching() as watcher:
        announcing = _Announcing(watcher, f"{verb} in {out}; logs and checkpoints: {work_folder(wanted, out)}", command)

        def report(result: Result, folder: Path) -> None:
            write_run_report([(spelling(wanted), result)], f"{title_of(scenario)}: a real run", folder)

        result = run_real(wanted, out, resume=resume, restart=force, watcher=announcing, report=report)
    _show(result, out, output)
    if not all(outcome.done for outcome in result.outcomes):
        raise typer.Exit(FAILED)


class _Announcing:
    """A watcher that first prints the folder of the run and the command that resumes it."""

    def __init__(self, watcher: Any, where: str, command: str):
        self._watcher, self._where, self._command = watcher, where, command

    def begin(self, states: Any) -> None:
        say(self._where)
        say(f"if it is interrupted, resume with: {self._command}")
        self._watcher.begin(states)

    def changed(self, at: float, state: Any) -> None:
        self._watcher.changed(at, state)


@contextmanager
def _resumable(out: Path, command: str) -> Iterator[None]:
    """Print how to resume a run that ended early."""
    from eunomia.runs.run_directory import RunDirectoryState, state_of

    def show_command() -> bool:
        unfinished = state_of(out) is RunDirectoryState.UNFINISHED
        if unfinished:
            say(f"the record, the logs and the checkpoints are kept in {out}; to resume, type:")
            say(f"  {command}")
        return unfinished

    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interruption(error):
            raise
        with _uninterrupted():
            say("interrupted")
            if not show_command():
                say("nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    except plugin_errors() as error:
        from eunomia.records.policy_call import policy_problem

        if policy_problem(error) is not None:
            show_command()
            raise
        say(f"error: the policy or the search failed: {error}")
        show_command()
        raise typer.Exit(FAILED) from None
    except BaseException:
        show_command()
        raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore a further Ctrl-C while the command to resume is printed."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _resume_command(scenario: Path, out: Path, overrides: list[str]) -> str:
    options = [word for override in overrides for word in ("--set", override)]
    return shlex.join(["eunomia", "run", str(scenario), *options, "--out", str(out), "--resume"])


def _show(result: Result, out: Path, output: Output) -> None:
    """Print the results, and each job that did not finish with its reason."""
    from eunomia.cli.output import show_summary
    from eunomia.runs.scenario_variants import spelling
    from eunomia.verdict.run_figures import by_urgency

    unfinished = [outcome for outcome in by_urgency(result.outcomes) if not outcome.done]
    named = [{"job_id": one.job_id, "status": one.status, "reason": one.reason, "log": one.log} for one in unfinished]
    lines = [printable(line) for outcome in unfinished[:SHOWN_JOBS] for line in _outcome_lines(outcome)]
    if len(unfinished) > SHOWN_JOBS:
        lines.append(f"and {len(unfinished) - SHOWN_JOBS:,} jobs more that did not finish; the report names them")
    output.show(
        lambda: {**result.as_dict(), "not_finished": named},
        *lines,
        lambda: show_summary([(spelling(result.scenario), result)], result.notes),
        f"report: {out / 'report.html'}",
    )


def _outcome_lines(outcome: JobOutcome) -> list[str]:
    """Return an unfinished job with its reason and the last lines of its log."""
    lines = [f"job {outcome.job_id} {outcome.status}{': ' * bool(outcome.reason)}{outcome.reason}"]
    lines += [f"    {line}" for line in outcome.last_lines[-LOG_LINES:]]
    return [*lines, f"  log: {outcome.log}"] if outcome.log else lines
