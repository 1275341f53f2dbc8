"""The `eunomia` command. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import io
import json
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from eunomia import __version__
from eunomia.cli.calibrate import calibrate
from eunomia.cli.check import check as check_policy
from eunomia.cli.check import check_policies_of_files
from eunomia.cli.command import Output, command
from eunomia.cli.command_groups import GroupedCommands
from eunomia.cli.data import app as data
from eunomia.cli.errors import FAILED, INTERRUPTED, MISUSED, fail_if_unfinished, finished_before_interruption
from eunomia.cli.estimate import estimate
from eunomia.cli.failures import app as failures
from eunomia.cli.figure import figure
from eunomia.cli.history import app as history
from eunomia.cli.options import (
    OutOption,
    PictureOptions,
    ScenarioArgument,
    TurnOption,
    argument,
    flag,
    new_results_folder,
    option,
    title_of,
    with_default_formats,
)
from eunomia.cli.plan import plan
from eunomia.cli.plugins import add_commands
from eunomia.cli.policies import policies
from eunomia.cli.run import run
from eunomia.cli.service import add_service_commands
from eunomia.cli.sweep import sweep
from eunomia.cli.trace import app as trace
from eunomia.cli.train import train
from eunomia.cli.tune_job import app as tune
from eunomia.cli.whatif import whatif
from eunomia.cli.world import app as world
from eunomia.inputs.problems import InvalidInput, Problem, Together

if TYPE_CHECKING:
    from eunomia.history.judged_comparison import JudgedHistory
    from eunomia.runs.compare import Case
    from eunomia.scenario import Scenario

app = typer.Typer(
    name="eunomia",
    cls=GroupedCommands,
    help="Schedule deep-learning jobs on shared accelerators: replay a trace under several policies, compare waiting "
    "times and costs, and run the policy you chose on real jobs.",
    epilog="Start here:  eunomia compare examples/demo.toml --out demo-out   (then open demo-out/report.html)",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SetOption = Annotated[
    list[str] | None, option("KEY=VALUE", "Override one key, such as workload.load=1.3. May be repeated.", "--set")
]
ForceOption = Annotated[bool, flag("Replace an existing results folder.", "--force")]
CheckOption = Annotated[bool, flag("Check every invariant after every moment (slow).", "--check")]
RECORD_HELP = "A record.jsonl.gz, or the folder of its run."
RecordOption = Annotated[bool, flag("Write moments and decisions to record.jsonl.gz.", "--record")]

USUAL = ["fifo", "las", "max_min_fairness_agnostic", "max_min_fairness"]  # policies that `compare` defaults to

_FURTHER_VALUE = {  # options that take several values, and the pattern of a further value
    "--set": re.compile(r"[\w.-]+\s*=.*", re.DOTALL),
    "--load": re.compile(r"[0-9.]+(e[0-9]+)?"),
    "--seed": re.compile(r"[0-9]+"),
}
_MISUSE: type[Exception] = typer.BadParameter.__mro__[1]  # base of all usage errors, which typer does not export


@app.callback(invoke_without_command=True)
def eunomia(version: Annotated[bool, flag("Print the version.", "--version")] = False) -> None:
    """Print the version if asked."""
    if version:
        print(f"eunomia {__version__}")
        raise typer.Exit


@app.command(epilog="Example:  eunomia simulate examples/demo.toml --policy las")
@command
def simulate(
    output: Output,
    scenario: ScenarioArgument,
    out: OutOption = None,
    set_: SetOption = None,
    policy: Annotated[str | None, option("NAME", "Use this policy: NAME, NAME?key=value&…, or path.py:Class.")] = None,
    record: RecordOption = False,
    check: CheckOption = False,
    drawing: PictureOptions = PictureOptions(),
    force: ForceOption = False,
) -> None:
    """Replay one scenario in virtual time.

    Writes summary.json, jobs.csv, tenants.csv, timing.json and report.html into DIR. Exit code 1 when jobs were left
    unfinished.
    """
    from eunomia.cli.output import progress_bar, show_summary
    from eunomia.report.run_report import write_run_report
    from eunomia.runs.results_dir import check_free, whole_folder
    from eunomia.runs.scenario_variants import spelling, varied
    from eunomia.runs.simulation import simulate as run
    from eunomia.scenario import load_scenario

    place, given = new_results_folder(out, scenario, force=force), Together()
    with given.check():
        check_free(place, force=force)
    with given.check():
        pictures = drawing.parsed()
    with given.check():
        wanted = varied(load_scenario(scenario, set_ or []), policy=policy, check=check or None)
    given.raise_if_any()
    label = pictures.names.get(spelling(wanted), spelling(wanted))
    check_policies_of_files([wanted])
    with whole_folder(place, force=force) as folder, progress_bar(output.as_json) as bar:
        result = run(wanted, record_to=folder / "record.jsonl.gz" if record else None, progress=bar(label))
        result.write(folder)
        write_run_report(
            [(label, result)],
            f"{title_of(scenario)} under {label}",
            folder,
            charts=pictures.formats,
            style=pictures.style,
        )

    report = f"report: {place / 'report.html'}"
    output.show(result.as_dict, lambda: show_summary([(label, result)], result.notes), report)
    fail_if_unfinished([(label, result.unfinished)])


@app.command(
    epilog="Example:  eunomia compare examples/demo.toml --policy fifo --policy 'las?types=agnostic' --seed 0 1 2"
)
@command
def compare(
    output: Output,
    scenario: ScenarioArgument,
    out: OutOption = None,
    policy: Annotated[
        list[str] | None,
        option("NAME", f"A policy to compare: NAME or 'NAME?key=value'. May be repeated. Without: {', '.join(USUAL)}."),
    ] = None,
    load: Annotated[list[float] | None, option("X", "Divide submission times by this. May be repeated.")] = None,
    seed: Annotated[list[int] | None, option("N", "A seed. May be repeated.")] = None,
    set_: SetOption = None,
    record: RecordOption = False,
    check: CheckOption = False,
    drawing: PictureOptions = PictureOptions(),
    turn: TurnOption = True,
    force: ForceOption = False,
) -> None:
    """Replay jobs under several policies.

    Every policy meets the same jobs, at every load and with every seed. Writes compare.csv, one report.html about all
    of them, and a folder for each into DIR. Where the jobs are a history, a preemption has a cost even if the scenario
    declares none, and the verdict says at which cost it turns. Exit code 1 when a run left jobs unfinished. After
    Ctrl-C DIR has the runs that are finished, and the same command makes the others.
    """
    from eunomia.cli.output import progress_bar, show_comparison
    from eunomia.report.run_report import write_run_report
    from eunomia.runs.compare import as_rows, write_table, write_tenants
    from eunomia.runs.compare import compare as run
    from eunomia.runs.results_dir import check_free, whole_folder
    from eunomia.runs.scenario_variants import varied
    from eunomia.runs.unfinished_comparison import copy_runs, finished_runs, keep_unfinished
    from eunomia.scenario import load_scenario

    place = new_results_folder(out, scenario, force=force, goes_on=True)
    given, done, history = Together(), {}, None
    with given.check():
        pictures = drawing.parsed()
    with given.check():
        wanted = varied(load_scenario(scenario, set_ or []), check=check or None)
        history, combinations = _judged_cases(wanted, policy or USUAL, load or [], seed or [], turn)
        done = {} if force else finished_runs(place, combinations)
    replaces = force or bool(done)
    with given.check():
        check_free(place, force=replaces)
    given.raise_if_any()
    check_policies_of_files(case.scenario for case in combinations)
    with whole_folder(place, force=replaces) as folder, progress_bar(output.as_json, len(combinations)) as bar:
        copy_runs(place, folder, list(done))
        labels = {case.folder: _label(case, combinations) for case in combinations}
        running = run(combinations, folder, record=record, progress=lambda case: bar(labels[case.folder]), done=done)
        results = finished_before_interruption(running)
        interrupted = len(results) < len(combinations)
        write_table(folder / "compare.csv", results)
        write_tenants(folder / "tenants.csv", results)
        shown = [(pictures.names.get(case.policy, case.policy), result) for case, result in results]
        content = write_run_report(
            shown,
            f"{title_of(scenario)}: {_compared(combinations)}",
            folder,
            charts=pictures.formats,
            style=pictures.style,
            folders=[case.folder for case, _ in results],
            judge=None if interrupted or history is None else history.judge(results, pictures.names),
        )
        if interrupted:
            keep_unfinished(folder, results)
    if interrupted:
        finished = f"{len(results)} of {len(combinations)} runs are finished, in {place}"
        same = f"the same command{' without --force' * force}"
        print(f"interrupted; {finished}; {same} goes on from there", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    report = f"report: {place / 'report.html'}"
    output.show(lambda: as_rows(results), lambda: show_comparison(shown, content), report)
    fail_if_unfinished([(_label(case, combinations), result.unfinished) for case, result in results])


def _judged_cases(
    scenario: Scenario, policies: Sequence[str], loads: Sequence[float], seeds: Sequence[int], turn: bool
) -> tuple[JudgedHistory | None, list[Case]]:
    """Return every combination, and the history if the jobs are one: preemption then has a cost."""
    from eunomia.history.judged_comparison import judged
    from eunomia.runs.compare import cases

    history = judged(scenario, looks_for_turn=turn)
    return history, cases(scenario if history is None else history.scenario, policies, loads, seeds)


def _compared(cases: list[Case]) -> str:
    """Return how many policies are compared, and at how many loads."""
    from eunomia.runs.as_it_was import AS_IT_WAS

    policies = len({case.policy for case in cases if case.scenario.policy.name != AS_IT_WAS})
    loads = len({case.load for case in cases})
    text = f"{policies} polic{'y' if policies == 1 else 'ies'} compared"
    return f"{text} at {loads} loads" if loads > 1 else text


def _label(case: Case, combinations: list[Case]) -> str:
    """Name a run by its policy, and by load and seed if there are several."""
    label = case.policy
    if len({other.load for other in combinations}) > 1:
        label += f", load {case.load:g}"
    if len({other.seed for other in combinations}) > 1:
        label += f", seed {case.seed}"
    return label


@app.command(epilog="Example:  eunomia replay out/demo")
@command
def replay(output: Output, record: Annotated[Path, argument("FILE", RECORD_HELP)]) -> None:
    """Check that a record decides the same again.

    Feeds its events to a new scheduler. Exit code 0: the same throughout; 1: with the first difference.
    """
    from eunomia.records.record import Record
    from eunomia.records.replay import first_difference

    difference = first_difference(Record(record))
    if difference is None:
        output.show({"identical": True}, "identical")
        return
    sides = {"recorded": difference.recorded, "decided": difference.decided}
    lines = (
        f"first difference at line {difference.row}, {difference.at:g} s",
        f"  recorded: {json.dumps(difference.recorded)}",
        f"  decided:  {json.dumps(difference.decided)}",
    )
    output.show({"identical": False, "index": difference.row, "at": difference.at, **sides}, "\n".join(lines))
    raise typer.Exit(FAILED)


@app.command(epilog="Example:  eunomia explain job-17 --record out/demo")
@command
def explain(
    output: Output,
    job: Annotated[str, argument("JOB", "The job's id.")],
    record: Annotated[Path, option("FILE", RECORD_HELP)],
    at: Annotated[float | None, option("T", "Only the wait at that second.")] = None,
    details: Annotated[bool, flag("Every interval, not only the longest.", "--details")] = False,
) -> None:
    """Say why a job waited, and how it ended.

    First a summary with the parts of its wait, such as no capacity, fragmentation or jobs ahead, then the longest
    intervals. Times are dates where the trace has them.
    """
    from eunomia.cli.output import show_explanation
    from eunomia.records.explain import explain as ask
    from eunomia.records.record import Record

    explanation = ask(Record(record), job, at)
    output.show(explanation.as_dict, lambda: show_explanation(explanation, at, details=details))


@app.command(epilog="Example:  eunomia solve --policy max_min_fairness --problem examples/two_jobs.json")
@command
def solve(
    output: Output,
    policy: Annotated[str, option("NAME", "NAME, 'NAME?key=value&…', or path.py:Class.")],
    problem: Annotated[Path, option("FILE", "The problem, .json or .npz: see docs/solve.md.")],
    out: Annotated[Path | None, option("FILE", "Write the whole answer to this .json, .npz or .arrow.")] = None,
    belief: Annotated[
        Path | None, option("FILE", "Table of throughputs by job type, in place of the problem's throughput.")
    ] = None,
    force: Annotated[bool, flag("Replace an existing file.", "--force")] = False,
) -> None:
    """Ask a policy once, without a simulation.

    Prints the share of time of each job on each accelerator type, the objective, and a bound on the optimum.
    """
    from eunomia.allocation import SUFFIXES, AuctionResult, write_solution
    from eunomia.allocation import solve as ask
    from eunomia.cli.output import show_auction, show_solution
    from eunomia.inputs.atomic_write import check_place

    if out is not None:
        check_place(out, force=force, endings=SUFFIXES, column="--out")
    solution = ask(policy, problem, belief=belief)
    if out is not None:
        write_solution(solution, out)
    written = [] if out is None else [f"answer: {out}"]
    if isinstance(solution, AuctionResult):
        output.show(solution.as_dict, lambda: show_auction(solution), *written)
    else:
        output.show(lambda: solution.named, lambda: show_solution(solution), *written)


@app.command(epilog="Example:  eunomia schema > scenario.schema.json")
def schema(as_json: Annotated[bool, flag("Print JSON to stdout, which it always does.", "--json")] = False) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from eunomia.scenario import json_schema

    print(json.dumps(json_schema(), indent=2))


app.command(epilog="Example:  eunomia check mine.py:WidestFirst")(check_policy)
app.command(epilog="Example:  eunomia run examples/local/local.toml")(run)
app.command(epilog="Example:  eunomia policies themis, or eunomia policies --where objective=deadline")(policies)
app.add_typer(trace, name="trace")
app.add_typer(data, name="data")
app.add_typer(failures, name="failures")
app.add_typer(history, name="import")
app.add_typer(world, name="world")
app.command(epilog="Example:  eunomia sweep examples/sweep.toml --dry-run")(sweep)
app.command(epilog="Example:  eunomia figure out/sweep --y jct_p99_s --x load --out fig.pdf")(figure)
app.command(epilog='Example:  eunomia whatif ours/scenario.toml --add "h100=16"')(whatif)
app.command(epilog="Example:  eunomia plan ours/scenario.toml --budget-usd 500000 --out bought")(plan)
app.add_typer(tune, name="tune")
app.command()(estimate)
app.command()(calibrate)
app.command(epilog="Example:  eunomia train harmony examples/harmony.toml --out harmony.safetensors")(train)
add_service_commands(app)
add_commands(app)


def _repeat_options(words: list[str]) -> list[str]:
    """Allow several values after --set, --load and --seed: `--load 1.0 1.3` is `--load 1.0 --load 1.3`."""
    repeated: list[str] = []
    option = ""  # whose values are being read
    for i, word in enumerate(words):
        if word == "--":
            return repeated + words[i:]  # the command of a job
        first = i > 0 and words[i - 1] == option
        if option and not first and _FURTHER_VALUE[option].fullmatch(word):
            repeated.append(option)
        elif not first:
            option = word if word in _FURTHER_VALUE else ""
        repeated.append(word)
    return repeated


_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """Run the command line and exit with its code.

    SIGTERM is handled like Ctrl-C (`serve` has its own way); so is SIGINT even if it was ignored, as in a script's
    background jobs, and SIGHUP unless it was ignored, as by `nohup`.
    """
    for number in _ENDING_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals whose encoding lacks ρ
    ours = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv
    as_json = "--json" in ours
    try:
        sys.exit(app(with_default_formats(_repeat_options(sys.argv[1:])), standalone_mode=not as_json))
    except _MISUSE as error:
        rule = str(getattr(error, "format_message", error.__str__)())
        refusal = InvalidInput([Problem(file="command line", rule=rule, fix="see eunomia COMMAND --help")])
        print(json.dumps(refusal.as_dict()))
        sys.exit(MISUSED)
    finally:  # the code and what was printed are final; another Ctrl-C must not replace them by a traceback
        for number in _ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
