"""The options of `eunomia tune job`, checked as a whole: what to search, how to measure, and where to keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eunomia.cli.options import argument, flag, numbers_by_type, option
from eunomia.cli.service_session import CaOption, TokenFileOption, UrlOption
from eunomia.inputs.problems import InvalidInput, Problem, Together, refused

if TYPE_CHECKING:
    from eunomia.job_tuning.measurements import MeasuredShape
    from eunomia.job_tuning.search import JobSearch, SearchFolder
    from eunomia.job_tuning.shapes import JobShape, ShapeSpace
    from eunomia.service.client import Client

MOST_TABLE = 20_000  # shapes of the grid that a table spans
MOST_STEPS = 1e9  # of a measurement, and of its seconds
EXAMPLE = "for example --workers 1-4 --out tuned -- python train.py --workers {workers}"


@dataclass(frozen=True, kw_only=True)
class JobTuningOptions:
    """The options of the command, as they were typed."""

    command: Annotated[
        list[str] | None,
        argument(
            "-- COMMAND…",
            "Program and arguments, after two dashes; {workers}, {servers} and {type} in it are filled in.",
        ),
    ] = None
    workers: Annotated[
        str | None, option("1-8", "Numbers of workers: 1-8, or 1,2,4,8. A worker has an accelerator.")
    ] = None
    servers: Annotated[str | None, option("0-2", "Numbers of parameter servers. Without: 0.")] = None
    type_: Annotated[
        str | None, option("A,B", "Accelerator types. Without: cpu, seats that need no device.", "--type")
    ] = None
    steps: Annotated[float, option("N", "Steps that a measurement counts.", min=1)] = 20.0
    warm_up: Annotated[float, option("N", "Steps before them that do not count.", min=0)] = 5.0
    limit: Annotated[float, option("S", "Longest time of a measurement on its accelerators.", min=1)] = 600.0
    objective: Annotated[str, option("NAME", "What is maximised: speed (steps/s) or price (steps/US$).")] = "speed"
    price: Annotated[
        list[str] | None,
        option(
            "TYPE=X",
            "US$ an hour of a type, or of a server as server=X; without, the catalogue's. May be repeated.",
            "--price",
        ),
    ] = None
    table: Annotated[
        Path | None, option("FILE", "Take measurements from a CSV (workers, servers, type, steps_per_s), run none.")
    ] = None
    service: Annotated[bool, flag("Measure by short jobs of a running service, not on this machine.", "--service")] = (
        False
    )
    url: UrlOption = None
    token_file: TokenFileOption = None
    ca: CaOption = None
    out: Annotated[Path | None, option("DIR", "Folder of the measurements; resumes a search in it.")] = None
    method: Annotated[str, option("NAME", "gp-ei, gp-lcb, rf-ei, rf-lcb, random or grid.")] = "gp-ei"
    budget: Annotated[int, option("N", "Shapes that are measured at most.", min=1)] = 15
    epsilon: Annotated[
        float, option("X", "End when less than this share of improvement is expected.", min=0.0, max=1.0)
    ] = 0.01
    seed: Annotated[int, option("S", "Draws the first shapes.", min=0)] = 0
    dry_run: Annotated[bool, flag("List what would be measured; start nothing.", "--dry-run")] = False


@dataclass(frozen=True, kw_only=True)
class JobTuningPlan:
    """The checked options: what to search, how to measure, and where to keep it."""

    request: JobSearch
    command: tuple[str, ...]  # empty with a table
    measure: Callable[[JobShape], MeasuredShape]
    folder: SearchFolder | None
    known: Sequence[MeasuredShape]

    @property
    def left_out(self) -> list[MeasuredShape]:
        """Measurements in the folder of shapes that are not searched now; they are kept."""
        return [one for one in self.known if self.request.space.point(one.shape) is None]


def plan_job_tuning(given: JobTuningOptions) -> JobTuningPlan:
    """Check the options, all of them before anything runs. Raises InvalidInput with every problem."""
    from eunomia.inputs.options import one_of
    from eunomia.job_tuning.measurements import read_measurements
    from eunomia.job_tuning.objective import OBJECTIVES, objective_of
    from eunomia.job_tuning.search import JobSearch
    from eunomia.solvers.bayesian import METHODS

    together, rows, space, objective = Together(), list["MeasuredShape"](), None, None
    with together.check():
        one_of("command line", "--method", given.method, METHODS)
    with together.check():
        one_of("command line", "--objective", given.objective, OBJECTIVES)
    with together.check():
        _check_source(given)
    if given.table is not None:
        with together.check():
            rows = read_measurements(given.table)
    with together.check():
        space = _space(given, rows)
    with together.check():
        prices = numbers_by_type("--price", given.price, most=1e6, example="v100=2.48")
        if space is not None:
            objective = objective_of(given.objective, space.types, space.servers, prices)
    together.raise_if_any()
    assert space is not None
    assert objective is not None
    possible = frozenset(one.shape for one in rows if space.point(one.shape) is not None) if rows else None
    request = JobSearch(
        space=space,
        objective=objective,
        method=given.method,
        budget=given.budget,
        seed=given.seed,
        epsilon=given.epsilon,
        possible=possible,
    )
    if given.table is not None:
        by_shape = {one.shape: one for one in rows}
        subject = {"table": str(given.table.resolve())}
        folder, measure, known = _folder(given.out, subject), by_shape.__getitem__, ()
        if folder is not None:
            folder.known()  # refuses a folder with something else in it
        return JobTuningPlan(request=request, command=(), measure=measure, folder=folder, known=known)
    return _measuring_plan(given, request)


def _check_source(given: JobTuningOptions) -> None:
    """Raise InvalidInput unless there is either a table, or a command with what it needs."""
    problems = []

    def add(column: str, rule: str, fix: str, value: str | None = None) -> None:
        problems.append(Problem(file="command line", column=column, value=value, rule=rule, fix=fix))

    if given.table is not None and given.command:
        add("--table", "a table stands in place of a command", "leave one of the two out", str(given.table))
    if given.table is not None and given.service:
        add("--table", "nothing runs with a table, so there is nothing for a service", "leave one of the two out")
    for column, value in (("--url", given.url), ("--token-file", given.token_file), ("--ca", given.ca)):
        if value is not None and not given.service:
            add(column, "it does nothing without --service", "add --service, or leave it out", str(value))
    if given.table is None and not given.command:
        add("COMMAND", "there is nothing to measure", f"give a command, {EXAMPLE}, or a --table of measured steps")
    if given.table is None and given.workers is None:
        add("--workers", "it is not said how many workers the job may have", "give them as in --workers 1-8")
    for column, most in (("--steps", given.steps), ("--warm-up", given.warm_up), ("--limit", given.limit)):
        if not most <= MOST_STEPS:
            add(column, f"must be a number up to {MOST_STEPS:g}", "give a smaller one", str(most))
    if given.table is None and given.out is None:
        add("--out", "measurements take long, so they are kept", "give a folder as in --out tuned")
    if problems:
        raise InvalidInput(problems)


def _space(given: JobTuningOptions, rows: Sequence[MeasuredShape]) -> ShapeSpace | None:
    """Return the shapes to search, by the options or, where these are left out, by the table; None without workers."""
    from eunomia.job_tuning.shapes import ShapeSpace, parse_counts

    spanned = ShapeSpace.of([one.shape for one in rows])
    types = [word.strip() for word in (given.type_ or "").split(",") if word.strip()]
    together, workers, servers = Together(), spanned.workers, spanned.servers or (0,)
    if given.workers is not None:
        with together.check():
            workers = parse_counts("--workers", given.workers, 1)
    if given.servers is not None:
        with together.check():
            servers = parse_counts("--servers", given.servers, 0)
    together.raise_if_any()
    if not workers or (given.table is not None and not rows):
        return None
    space = ShapeSpace(workers, servers, tuple(dict.fromkeys(types)) or spanned.types or ("cpu",))
    if given.table is not None:
        if not any(space.point(one.shape) is not None for one in rows):
            rule, fix = "the table has no row of such a shape", "leave out --workers, --servers and --type for all"
            raise refused(str(given.table), None, None, rule, fix)
        if space.grid().points > MOST_TABLE:
            rule = f"its workers, servers and types combine to more than {MOST_TABLE:,} shapes"
            raise refused(str(given.table), None, None, rule, "give fewer of them by --workers, --servers and --type")
    elif given.command and len(space.servers) > 1 and not any("{servers}" in word for word in given.command):
        rule = "the command does not say {servers}, so that all numbers of servers would measure the same"
        raise refused("command line", "COMMAND", None, rule, "write {servers} where your program takes it")
    return space


def _folder(out: Path | None, subject: Mapping[str, Any]) -> SearchFolder | None:
    from eunomia.job_tuning.search import SearchFolder

    return None if out is None else SearchFolder(out, subject)


def _measuring_plan(given: JobTuningOptions, request: JobSearch) -> JobTuningPlan:
    """Return the plan of a search that runs the command. Raises InvalidInput for what is not here."""
    from eunomia.job_tuning.local_steps import LocalSteps, accelerators_here, check_program
    from eunomia.job_tuning.progress import StepsToMeasure

    assert given.command
    assert given.out is not None
    command, cwd, together = tuple(given.command), Path.cwd(), Together()
    wanted = StepsToMeasure(warm_up=given.warm_up, steps=given.steps, limit_s=given.limit)
    where = "a service" if given.service else "this machine"
    folder = _folder(given.out, {"command": list(command), "cwd": str(cwd), "measured_by": where})
    assert folder is not None
    known: list[MeasuredShape] = []
    measure: Callable[[JobShape], MeasuredShape]
    with together.check():
        known = folder.known()
    if given.service:
        client = _client(given)
        with together.check():
            measure = _through_service(client, request.space, command, wanted)
    else:
        with together.check():
            check_program(command, cwd)
        with together.check():
            topology = accelerators_here(request.space)
            measure = LocalSteps(command=command, topology=topology, wanted=wanted, folder=given.out, cwd=cwd).measure
    together.raise_if_any()
    return JobTuningPlan(request=request, command=command, measure=measure, folder=folder, known=known)


def _client(given: JobTuningOptions) -> Client:
    from eunomia.service.client import Client, find_service

    return Client(find_service(given.url, given.token_file, given.ca))


def _through_service(
    client: Client, space: ShapeSpace, command: tuple[str, ...], wanted: Any
) -> Callable[[JobShape], MeasuredShape]:
    from eunomia.cli.service_jobs import shell_variables
    from eunomia.job_tuning.service_steps import ServiceSteps, check_types

    check_types(client, space)
    return ServiceSteps(
        client=client, command=command, wanted=wanted, cwd=Path.cwd(), variables=shell_variables(client)
    ).measure
