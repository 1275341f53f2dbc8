"""`eunomia run`: real jobs on this machine, in a folder that outlives whatever ends the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import FAILED, INTERRUPTED, answering_errors, mistakes_of_plugins
from eunomia.cli.live import printable, say

if TYPE_CHECKING:
    from eunomia.report.outcomes import JobOutcome
    from eunomia.runs.simulation import Result

LAST_LINES = 5  # of the log of a failed job, on the terminal
MOST_FAILED = 20  # jobs that are named there


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="What to run: see docs/scenario.md.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the run, from its start: record, logs, checkpoints.")
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one key, such as policy.name=las. May be repeated."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the unfinished run in DIR.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Begin anew; remove the run or results in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout, errors included.")] = False,
) -> None:
    """Run the jobs for real, on this machine.

    They start as processes, are called back and go on as the scenario's policy decides. Writes what simulate writes,
    and the record. Whatever ends the command, DIR keeps the record, the logs and the checkpoints, and --resume goes
    on. Exit code 1 when a job did not finish.
    """
    with answering_errors(as_json):
        from eunomia.cli.live import watching
        from eunomia.runs.local_run import run_real, work_folder
        from eunomia.runs.run_directory import RunDirectoryState, demand_place
        from eunomia.scenario import load_scenario

        command = _resume_command(scenario, out, set_ or [])
        found = demand_place(out, resume=resume, force=force, command=command)
        if resume and found is RunDirectoryState.FINISHED:
            _show_finished(out, as_json)
            return
        wanted = load_scenario(scenario, set_ or [])
        verb = "resuming the run" if resume else "run"
        with _kept(out, command), watching() as watcher:
            begun = _Announced(watcher, f"{verb} in {out}; logs and checkpoints: {work_folder(wanted, out)}", command)
            title = f"{scenario.stem}: a real run"
            result = run_real(wanted, out, resume=resume, anew=force, title=title, watcher=begun)
        _show(result, out, as_json)
        if not all(outcome.done for outcome in result.outcomes):
            raise typer.Exit(FAILED)


class _Announced:
    """A watcher that first says where the run is, and how to go on with it should it be killed."""

    def __init__(self, watcher: Any, where: str, command: str):
        self._watcher, self._where, self._command = watcher, where, command

    def begin(self, states: Any) -> None:
        say(self._where)
        say(f"if it is interrupted, go on with: {self._command}")
        self._watcher.begin(states)

    def changed(self, at: float, state: Any) -> None:
        self._watcher.changed(at, state)


@contextmanager
def _kept(out: Path, command: str) -> Iterator[None]:
    """Say how to go on with a run that something ended."""
    from eunomia.runs.run_directory import RunDirectoryState, look_into

    def tell() -> bool:
        unfinished = look_into(out) is RunDirectoryState.UNFINISHED
        if unfinished:
            say(f"the record, the logs and the checkpoints are kept in {out}; to go on, type:")
            say(f"  {command}")
        return unfinished

    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        say("interrupted")
        if not tell():
            say("nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    except mistakes_of_plugins() as error:
        say(f"error: the policy or the search failed: {error}")
        tell()
        raise typer.Exit(FAILED) from None
    except BaseException:
        tell()
        raise


def _resume_command(scenario: Path, out: Path, overrides: list[str]) -> str:
    said = [word for override in overrides for word in ("--set", override)]
    return shlex.join(["eunomia", "run", str(scenario), *said, "--out", str(out), "--resume"])


def _show_finished(out: Path, as_json: bool) -> None:
    """Say that there is nothing to resume."""
    if as_json:
        print(json.dumps(json.loads((out / "summary.json").read_text(encoding="utf-8"))))
        return
    print(f"the run in {out} is finished; nothing was changed")
    print(f"report: {out / 'report.html'}")


def _show(result: Result, out: Path, as_json: bool) -> None:
    """Print the results, and each job that did not finish with its reason."""
    from eunomia.cli.output import show_summary
    from eunomia.report.outcomes import by_urgency
    from eunomia.runs.scenario_variants import spelling

    left = [outcome for outcome in by_urgency(result.outcomes) if not outcome.done]
    if as_json:
        named = [{"job_id": one.job_id, "status": one.status, "reason": one.reason, "log": one.log} for one in left]
        print(json.dumps({**result.summary, "not_finished": named}, allow_nan=False))
        return
    for outcome in left[:MOST_FAILED]:
        _name(outcome, lambda line: print(printable(line)))
    if len(left) > MOST_FAILED:
        print(f"and {len(left) - MOST_FAILED:,} jobs more that did not finish; the report names them")
    show_summary([(spelling(result.scenario), result)], result.notes)
    print(f"report: {out / 'report.html'}")


def _name(outcome: JobOutcome, show: Callable[[str], None]) -> None:
    """Name a job that did not finish, with its reason and the last lines of its log."""
    show(f"job {outcome.job_id} {outcome.status}{': ' * bool(outcome.reason)}{outcome.reason}")
    for line in outcome.last_lines[-LAST_LINES:]:
        show(f"    {line}")
    if outcome.log:
        show(f"  log: {outcome.log}")
