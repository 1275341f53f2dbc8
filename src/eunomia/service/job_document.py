"""Jobs as users submit them: a JSON document each, checked as a whole, with every problem named."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from eunomia.inputs.bounds import LEAST, MOST_S, MOST_STEPS, MOST_WEIGHT
from eunomia.inputs.json_text import unusable_texts
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario.schema_models import Demand, Finite, Section
from eunomia.scenario.source_locations import shown

NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}"
NOTIFY = r"^(mail|webhook:[A-Za-z0-9_-]{1,40})(@(started|ended|failed))?$"
MOST_SHAPES = 64
MOST_ARRAY = 10_000
MOST_TEXT = 4096  # characters of a command's word or of an environment value
OWN_PREFIX = "EUNOMIA_"
LONGEST_DEBUG_S = 600.0

Word: TypeAlias = Annotated[str, Field(max_length=MOST_TEXT)]
Size: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds: TypeAlias = Annotated[Finite, Field(gt=0, ge=LEAST, le=MOST_S)]


class CheckpointTerms(Section):
    """How a job is asked to save before it is stopped."""

    signal: Annotated[str, Field(pattern="^TERM$")] = Field(default="TERM", description="signal that asks it to save")
    grace_s: Annotated[Finite, Field(ge=0, le=3600)] = Field(default=10.0, description="seconds until it is killed")


class JobDocument(Section):
    """One job. A job with neither `total_steps` nor `duration_s` is normal: its length is then estimated."""

    name: Annotated[str, Field(pattern=f"^{NAME}$")] | None = Field(default=None, description="for display only")
    tenant: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="who is charged; left out: the tenant of the token"
    )
    app: Annotated[str, Field(max_length=200)] = Field(default="", description="application that the job belongs to")
    command: Annotated[tuple[Word, ...], Field(strict=False, min_length=1, max_length=4096)] = Field(
        description="argv: program and arguments; no shell reads it"
    )
    cwd: Annotated[str, Field(max_length=MOST_TEXT)] = Field(
        default="", description="absolute folder to start in; empty: the job's own folder"
    )
    env: dict[str, Word] = Field(default_factory=dict, max_length=1000, description="environment variables to add")
    accelerators: Size = Field(default=1, description="accelerators of the gang")
    processes: Literal["one", "per_accelerator"] = Field(
        default="one",
        description="processes of the gang: one, or one for each accelerator with RANK, WORLD_SIZE, LOCAL_RANK, "
        "MASTER_ADDR and MASTER_PORT as torchrun sets them",
    )
    stderr: Literal["log", "apart"] = Field(
        default="log", description="where standard error goes: to the log, or to a log of its own"
    )
    types: Annotated[tuple[str, ...], Field(strict=False, max_length=100)] = Field(
        default=(), description="accelerator types, any of which will do; empty = any"
    )
    job_type: Annotated[str, Field(max_length=200)] = Field(default="", description="what it trains: its throughputs")
    total_steps: Annotated[Finite, Field(gt=0, ge=LEAST, le=MOST_STEPS)] | None = Field(
        default=None, description="declared length"
    )
    duration_s: Seconds | None = Field(default=None, description="declared length on the reference type")
    weight: Annotated[Finite, Field(gt=0, ge=LEAST, le=MOST_WEIGHT)] = Field(
        default=1.0, description="share among its tenant's jobs"
    )
    deadline_s: Seconds | None = Field(default=None, description="seconds from submission")
    retries: Annotated[int, Field(ge=0, le=1000)] = Field(default=0, description="further attempts after a failure")
    max_run_s: Seconds | None = Field(default=None, description="longest time on its seats, in one piece")
    min_accelerators: Size | None = Field(default=None, description="smallest gang at which it may run")
    max_accelerators: Size | None = Field(default=None, description="largest gang at which it may run")
    cpus: Demand = Field(default=0.0, description="CPUs of the whole gang: a limit where control groups have one")
    memory_gib: Demand = Field(default=0.0, description="memory of the whole gang in GiB: it is ended above that")
    accelerator_memory_gib: Annotated[Finite, Field(gt=0, ge=LEAST, le=1e6)] | None = Field(
        default=None, description="memory that it needs on each accelerator in GiB; left out: what like jobs have used"
    )
    debug: bool = Field(
        default=False, description="a job of at most 10 min that starts at once, where the site has a debug lane"
    )
    after: Annotated[tuple[str, ...], Field(strict=False, max_length=1000)] = Field(
        default=(),
        description="jobs that must succeed first: ids; afterany:ID: it must have ended, afternotok:ID: without "
        "success; singleton: each earlier job of its user with its name must have ended",
    )
    array: Annotated[str, Field(pattern=r"^[0-9]{1,7}-[0-9]{1,7}(%[1-9][0-9]{0,5})?$")] | None = Field(
        default=None,
        description="first and last index, as in 0-99: one job each, with EUNOMIA_ARRAY_INDEX; 0-99%4: at most four "
        "of them at once",
    )
    priority: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        default=0, description="order among the waiting jobs of its user alone: the higher ones start first"
    )
    notify: Annotated[tuple[Annotated[str, Field(pattern=NOTIFY)], ...], Field(strict=False, max_length=20)] = Field(
        default=(),
        description="where the service says what became of it: mail, or webhook:NAME of the site; with @started or "
        "@failed then, else when it has ended",
    )
    checkpoint: CheckpointTerms = CheckpointTerms()
    interruptible: bool | None = Field(
        default=None,
        description="it can save and go on from there, so it may be preempted; left out: what it gives as checkpoint, "
        "or shows by eunomia.lease or by the steps that it reports, and until then it is not preempted",
    )
    interactive: Literal["shell", "notebook"] | None = Field(
        default=None,
        description="it is used at a terminal, or runs a notebook server, until its time is over; it is not preempted",
    )
    labels: Annotated[dict[str, Annotated[str, Field(max_length=200)]], Field(max_length=50)] = Field(
        default_factory=dict, description="for the users' own searches"
    )

    def spec(self) -> dict[str, Any]:
        """Return the document as JSON, with every key that was given a value."""
        given = self.model_dump(mode="json", exclude_unset=True)
        spec = {key: value for key, value in given.items() if value is not None}  # null: as if it were left out
        if self.interactive is not None:
            spec = {"interruptible": False, **spec}
        return {"max_run_s": LONGEST_DEBUG_S, **spec} if self.debug else spec

    def indices(self) -> tuple[int | None, ...]:
        """Return the index of each job of the array; a single None for a plain job."""
        if self.array is None:
            return (None,)
        first, last, _ = array_parts(self.array)
        return tuple(range(first, last + 1))

    @property
    def count(self) -> int:
        """How many jobs it makes."""
        if self.array is None:
            return 1
        first, last, _ = array_parts(self.array)
        return last - first + 1

    def other_sizes(self) -> tuple[int, ...]:
        """Return the further sizes of an elastic gang."""
        low = self.min_accelerators or self.accelerators
        high = self.max_accelerators or self.accelerators
        return tuple(size for size in range(low, high + 1) if size != self.accelerators)


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong in a request: the field, its value, the rule, and how to fix it."""

    field: str
    value: str | None
    rule: str
    fix: str


class InvalidRequest(ValueError):
    """A request that cannot be accepted. Nothing was changed."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.rule}" for problem in problems[:3]))
        self.problems = tuple(problems)


_RULES = {
    "missing": ("is missing", "add it"),
    "string_type": ("must be a text", "write it in quotes"),
    "int_type": ("must be a whole number", "write it without quotes and without a point"),
    "float_type": ("must be a number", "write a number without quotes"),
    "finite_number": ("must be finite", "give a finite number"),
    "greater_than": ("must be above {gt:g}", "give a number above {gt:g}"),
    "greater_than_equal": ("must be at least {ge:g}", "give {ge:g} or more"),
    "less_than_equal": ("must be at most {le:g}", "give {le:g} or less"),
    "string_too_long": ("has at most {max_length} characters", "shorten it"),
    "string_too_short": ("must not be empty", "write it, or leave it out"),
    "too_short": ("must not be empty", "give at least one"),
    "too_long": ("has at most {max_length} entries", "give fewer"),
    "literal_error": ("must be {expected}", "choose one"),
    "dict_type": ("must be an object", 'write it as in {{"key": "value"}}'),
    "tuple_type": ("must be a list", 'write it as in ["python", "train.py"]'),
    "string_pattern_mismatch": ("must match {pattern}", "choose another one"),
}


# An interactive job is one process that starts once, and is not asked to save.
_NOT_INTERACTIVE: dict[str, tuple[Any, ...]] = {  # keys, each with the values that are as if it were left out
    "interruptible": (None, False), "retries": (0,), "array": (None,), "processes": ("one",),
    "min_accelerators": (None,), "max_accelerators": (None,),
}  # fmt: skip


def parse_job(data: Any, place: str = "") -> JobDocument:
    """Check one document; `place` goes before the field in messages. Raises InvalidRequest with all problems."""
    if not isinstance(data, dict):
        fix = 'send {"command": ["python", "train.py"], "accelerators": 1}'
        raise InvalidRequest([FieldProblem(place or "body", shown(data), "a job is a JSON object", fix)])
    refuse_unusable(data, place)
    try:
        job = JobDocument.model_validate(data)
    except ValidationError as error:
        raise InvalidRequest(list(_found(error, place))) from None
    problems = [FieldProblem(f"{place}{field}", value, rule, fix) for field, value, rule, fix in _contradictions(job)]
    if problems:
        raise InvalidRequest(problems)
    return job


def refuse_unusable(data: Any, place: str = "") -> None:
    """Raise InvalidRequest for texts that no process and no database takes."""
    if wrong := unusable_texts(data):
        problems = [(re.sub(r"\[\d+\]$", "", field), what) for field, what in wrong]  # the list is the field
        raise InvalidRequest([
            FieldProblem(f"{place}{field}", None, f"has {what}", "leave it out") for field, what in problems
        ])  # fmt: skip


def _found(error: ValidationError, place: str) -> list[FieldProblem]:
    problems = []
    for details in error.errors(include_url=False):
        path, context = details["loc"], details.get("ctx", {})
        field = place + ".".join(str(part) for part in path if part != "[key]")
        if details["type"] == "extra_forbidden":
            rule, fix = "is no key of a job", nearest(str(path[-1]), tuple(JobDocument.model_fields))
        else:
            rule, fix = _RULES.get(details["type"], (details["msg"], "give a value that obeys the rule"))
            rule, fix = rule.format(**context), fix.format(**context)
        value = None if details["type"] == "missing" else shown(details["input"])
        problems.append(FieldProblem(field, value, rule, fix))
    return problems


def _contradictions(job: JobDocument) -> list[tuple[str, str | None, str, str]]:
    """Return what no single key says."""
    found: list[tuple[str, str | None, str, str]] = []
    if not job.command[0]:
        found.append(("command", "", "its first word names the program", "give a program"))
    if job.cwd and not job.cwd.startswith("/"):
        found.append(("cwd", job.cwd, "must be an absolute path", "start it with /"))
    for name in job.env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            found.append(("env", name, "is no name of a variable", "use letters, digits and underscores"))
        elif name.startswith(OWN_PREFIX):
            found.append(("env", name, f"names with {OWN_PREFIX} are set by Eunomia", "choose another name"))
    if job.total_steps is not None and job.duration_s is not None:
        found.append(("duration_s", str(job.duration_s), "stands beside total_steps", "give one of the two"))
    if job.debug and (job.max_run_s or LONGEST_DEBUG_S) > LONGEST_DEBUG_S:
        rule = f"a debug job runs for at most {LONGEST_DEBUG_S:g} s"
        found.append(("max_run_s", str(job.max_run_s), rule, "give less, or submit it without debug"))
    if job.interactive is not None:
        for key, plain in _NOT_INTERACTIVE.items():
            if (given := getattr(job, key)) not in plain:
                found.append((key, str(given)[:40], "does not go with interactive", "leave it out"))
    low, high = job.min_accelerators or job.accelerators, job.max_accelerators or job.accelerators
    if not low <= job.accelerators <= high:
        rule = "min_accelerators ≤ accelerators ≤ max_accelerators must hold"
        found.append(("accelerators", str(job.accelerators), rule, "change one of the three"))
    elif high - low > MOST_SHAPES:
        found.append(("max_accelerators", str(high), f"a gang has at most {MOST_SHAPES} further sizes", "narrow it"))
    if job.array is not None:
        first, last, _ = array_parts(job.array)
        if not 0 <= last - first < MOST_ARRAY:
            found.append(("array", job.array, f"has 1 to {MOST_ARRAY:,} indices", "give first-last, split long ones"))
    return found


def array_parts(array: str) -> tuple[int, int, int | None]:
    """Return first and last index of an array, and how many of its jobs may run at once; None = any number."""
    span, _, most = array.partition("%")
    first, last = map(int, span.split("-"))
    return first, last, int(most) if most else None


def declared_end(job: Mapping[str, Any], submitted: float) -> float:
    """Return the deadline of a spec in seconds of the service's time; inf = none."""
    deadline = job.get("deadline_s")
    return math.inf if deadline is None else submitted + float(deadline)
