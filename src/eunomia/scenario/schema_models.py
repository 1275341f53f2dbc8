"""The tables of a scenario. Every key has its rule, unit and default here, and nowhere else.

The schema, the reference page and every complaint are made from these classes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from eunomia.scenario.expansion import whole_nodes

MOST_ACCELERATORS = 10_000_000  # a topology holds one row for each
MISSING_VC = r"(drop|own|spread|spread\([0-9]{1,18}\))"
MOST_WEIGHT = 1e15  # beyond it the other weights of a mix would be lost in rounding

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ACCELERATORS)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
NotNegative: TypeAlias = Annotated[Finite, Field(ge=0)]


class Section(BaseModel):
    """A table of the scenario: frozen, no unknown keys, no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OpenSection(Section):
    """A table that also takes the keys of something loaded later, which checks them itself."""

    model_config = ConfigDict(extra="allow")

    def further(self) -> dict[str, Any]:
        """Return the keys that this class does not know."""
        return dict(self.__pydantic_extra__ or {})


class NodeGroup(Section):
    """Machines that are alike."""

    type: Text = Field(description="accelerator type, such as v100")
    count: Count = Field(default=1, description="machines")
    accelerators: Count = Field(description="accelerators of each machine")
    rack: str = Field(default="", description="rack that these machines stand in; empty = not said")
    cpus: NotNegative = Field(
        default=0.0, description="CPUs of each machine, that some policies share out; 0 = not said"
    )
    memory_gib: NotNegative = Field(default=0.0, description="memory of each machine in GiB, likewise; 0 = not said")


class ClusterSection(Section):
    """What there is to share: `nodes`, a file of them, or the shorthand `accelerators`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("nodes", "nodes_file", "accelerators")]}
    )

    said_nodes: tuple[NodeGroup, ...] = Field(
        default=(), alias="nodes", strict=False, min_length=1, description="groups of machines, in their order"
    )
    nodes_file: Text | None = Field(
        default=None, description="list of machines, a file or folder, with options as in machines.csv?only=v100,p100"
    )
    accelerators: dict[Text, Count] = Field(
        default_factory=dict, min_length=1, description="shorthand: accelerators of each type"
    )
    accelerators_per_node: Count = Field(
        default=8, description="accelerators of one machine in the shorthand; the last machine of a type may have fewer"
    )
    prices: dict[Text, NotNegative] = Field(
        default_factory=dict, description="US$ per accelerator-hour by type; a type left out has its catalogue price"
    )

    @property
    def nodes(self) -> tuple[NodeGroup, ...]:
        """The machines, whichever way they were written."""
        if self.said_nodes:
            return self.said_nodes
        return tuple(
            NodeGroup(type=name, count=count, accelerators=size)
            for name, total in self.accelerators.items()
            for count, size in whole_nodes(total, self.accelerators_per_node)
        )

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types in order of first appearance."""
        return tuple(dict.fromkeys(group.type for group in self.nodes))


def _weighs(weight: Any) -> bool:
    return type(weight) in (int, float) and 0 < weight < MOST_WEIGHT


def _job_types(value: Any) -> str | dict[str, float]:
    """Accept the name of a mix, or a table of weights."""
    if isinstance(value, str) and value.startswith("mix:") and value != "mix:":
        return value
    if isinstance(value, dict) and value and all(_weighs(weight) for weight in value.values()):
        return {name: float(weight) for name, weight in value.items()}
    raise PydanticCustomError(
        "job_types", "must be the name of a mix or a table of job types with weights above 0 and below 1e15"
    )


def _missing_vc(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(MISSING_VC, value):
        return value
    raise PydanticCustomError("missing_vc", "must be spread, spread(seed), drop or own")


class WorkloadSection(OpenSection):
    """The jobs: `trace` or `generator`. Further keys are options of the reader or parameters of the generator."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["trace"]}, {"required": ["generator"]}]})

    trace: Text | None = Field(default=None, description="file of jobs; a relative path starts at the scenario")
    generator: Text | None = Field(default=None, description="name of a synthetic workload, such as philly-like")
    format: Text = Field(default="native", description="how the trace is written: native, gavel, philly, venus, …")
    load: Finite = Field(default=1.0, gt=0, description="submission times are divided by it; durations stay")
    start_s: NotNegative = Field(default=0.0, description="seconds; the run begins then: earlier jobs are left out")
    end_s: float = Field(
        default=float("inf"), gt=0, description="seconds; jobs submitted then or later are left out; default inf"
    )
    job_types: Annotated[
        str | dict[str, float],
        PlainValidator(_job_types),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "pattern": "^mix:."},
                    {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
                ]
            }
        ),
    ] = Field(default="mix:default", description="for jobs that name none: a mix, or weights by job type")
    max_jobs: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="jobs; only the first so many are kept; left out: all"
    )
    missing_vc: Annotated[
        str, PlainValidator(_missing_vc), WithJsonSchema({"type": "string", "pattern": MISSING_VC})
    ] = Field(
        default="spread",
        description="jobs without a tenant in a trace that names some: spread over them in proportion to their jobs, "
        "by seed as in spread(7), else the scenario's; drop; or own: they belong to nobody",
    )
    tenant_weights: Text | None = Field(
        default=None,
        description="weights of the tenants: philly, or a table with tenant, weight and perhaps quota; "
        "[tenants] may say otherwise",
    )
    elastic: Literal["off", "halves"] = Field(
        default="off", description="halves: a gang may also run at a half, a quarter … of its size"
    )

    @property
    def options(self) -> dict[str, Any]:
        """Options of the reader, or parameters of the generator."""
        return self.further()


class ThroughputsSection(Section):
    """How fast jobs truly go."""

    source: Text = Field(
        default="catalogue",
        description="catalogue, uniform (speed 1 everywhere), linear (speed 1 an accelerator), or a file",
    )
    reference_type: Text = Field(
        default="v100",
        description="type on which a trace's durations were measured; with source uniform the cluster's first type",
    )


class BeliefSection(Section):
    """What the scheduler believes of the throughputs."""

    kind: Literal["oracle", "noisy"] = Field(default="oracle", description="oracle: it knows them; noisy: it errs")
    error: NotNegative = Field(default=0.0, description="no unit; sigma of the lognormal factor on each throughput")


class PolicySection(OpenSection):
    """Who decides. Further keys are the policy's parameters."""

    name: Text = Field(default="fifo", description="name of the policy; parameters may follow as in fifo?backfill=skip")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, as written; the policy checks them."""
        return self.further()


class TenantSection(Section):
    """What is said of one tenant."""

    weight: Finite = Field(default=1.0, gt=0, description="share among its siblings; no unit")
    inner: Literal["fairness", "fifo"] = Field(
        default="fairness", description="how its jobs and sub-tenants share: by weight, or the first submitted first"
    )
    quota: NotNegative | None = Field(
        default=None, description="accelerators that are its own; left out: a part of what is left, by weight"
    )
    may_borrow: bool = Field(default=True, description="it may use what other tenants leave idle")


class MechanismSection(OpenSection):
    """How time is cut. Without this table the policy brings its own; further keys are for others than leases."""

    name: Text = Field(default="leases", description="leases, ideal, or a published system's own clock")
    length_s: float = Field(default=360.0, gt=0, description="seconds that a lease lasts; inf = until the job ends")
    aligned: bool = Field(default=True, description="leases end together, which makes rounds")
    recall: bool = Field(default=False, description="leases may be taken back before their end")
    solve_gap_s: NotNegative = Field(default=0.0, description="seconds between two questions to the policy at least")

    @property
    def parameters(self) -> dict[str, Any]:
        """Every key that was written, the name left out."""
        known = {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}
        return {key: value for key, value in (known | self.further()).items() if key != "name"}


class OverheadsSection(Section):
    """What it costs a job to change seats."""

    start_s: NotNegative = Field(default=0.0, description="seconds of a job's first start")
    checkpoint_s: NotNegative = Field(default=0.0, description="seconds to write a checkpoint when stopped")
    restore_s: NotNegative = Field(default=0.0, description="seconds to go on from a checkpoint")
    restore_by_size: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]*$")], NotNegative] = Field(
        default_factory=dict,
        description="restore_s of gangs from so many accelerators on, such as { 2 = 28, 9 = 58 }",
    )


class WorldSection(Section):
    """Where decisions take effect, and what goes wrong there."""

    backend: Literal["simulated", "local"] = Field(default="simulated", description="simulated, or processes here")
    replay_status: bool = Field(default=False, description="jobs fail or are cancelled as the trace says they did")
    job_failures_per_hour: NotNegative = Field(default=0.0, description="failures per hour of a running job")
    node_failures_per_hour: NotNegative = Field(default=0.0, description="losses per hour of each machine")
    node_repair_s: NotNegative = Field(default=3600.0, description="seconds until a lost machine is back")
    cancel_fraction: NotNegative = Field(default=0.0, le=1, description="fraction of jobs that their users cancel")
    cancel_after_s: Finite = Field(
        default=3600.0, gt=0, description="seconds from submission to such a cancellation, on average"
    )
    checkpoint_every_s: NotNegative = Field(
        default=0.0, description="seconds between checkpoints, lost on a failure; 0 = nothing is lost"
    )
    retry: Literal["always", "adaptive"] = Field(
        default="always",
        description="which failures are tried again while a job has retries: always all; adaptive: not those for a "
        "reason that comes again (inputs, syntax, semantics, imports, CPU memory)",
    )
    retry_by: Literal["job", "tenant"] = Field(
        default="job",
        description="adaptive: tenant, where tenants are users: nor for a reason that is the user's and that a job of "
        "the same tenant failed for before",
    )
    blacklist_s: NotNegative = Field(
        default=86_400.0,
        description="adaptive, with physics.fates: seconds for which the machines of a gang that failed for a GPU ECC "
        "error are out of service; 0 = they stay",
    )
    workdir: Text | None = Field(
        default=None, description="local: folder for the jobs' files; left out: work, in the folder of the run"
    )


def _space(value: Any) -> dict[str, Any]:
    """Accept ranges { low, high, log, whole } and lists of choices, by name."""
    if isinstance(value, dict) and all(_searchable(one) for one in value.values()):
        return value
    raise PydanticCustomError("space", "each entry is a range or a list of choices")


def _searchable(one: Any) -> bool:
    if isinstance(one, list):
        return bool(one) and all(isinstance(choice, str | int | float | bool) for choice in one)
    if not isinstance(one, dict) or not {"low", "high"} <= one.keys() <= {"low", "high", "log", "whole"}:
        return False
    low, high = one["low"], one["high"]
    flags = all(type(one.get(name, False)) is bool for name in ("log", "whole"))
    return flags and _number(low) and _number(high) and low < high and (low > 0 or not one.get("log"))


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")


TUNERS = ("off", "all", "halving", "hyperband", "asha", "hyperdrive", "optuna")


class AppsSection(Section):
    """Who owns the jobs of an app: jobs that name the same one are trials of one search."""

    tuner: Annotated[str, WithJsonSchema({"anyOf": [{"enum": [*TUNERS]}, {"type": "string"}]})] = Field(
        default="off",
        description="off: jobs just run; all: each trial runs to its end; halving, hyperband, asha: one in eta goes on "
        "at each rung; hyperdrive: poor ones are given up; optuna: it says what trials are run with (backend local); "
        "your own: path.py:Class, or the name that its package announces",
    )
    parameters: dict[str, Any] = Field(default_factory=dict, description="your own tuner: what its class is made with")
    eta: Annotated[int, Field(ge=2, le=100)] = Field(default=3, description="one trial in so many goes on at a rung")
    pause: bool = Field(
        default=True,
        description="halving, hyperband: a trial rests on its rung until the others have come to it; false: it runs on "
        "until it is beaten",
    )
    parallel: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="all, asha, hyperdrive, optuna: trials of an app that are there at a time; the next is submitted "
        "when one has ended; left out: all at once",
    )
    max_trials: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="trials of an app that are submitted at most, its first ones; left out: all"
    )
    target: Finite = Field(
        default=0.8, gt=0, le=1, description="hyperdrive: part of its steps after which the best trial is good enough"
    )
    space: Annotated[dict[str, Any], PlainValidator(_space), WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict,
        description="optuna: what to search, such as lr = { low = 1e-4, high = 0.1, log = true } or a list of choices",
    )


class MeasureSection(Section):
    """Which jobs are measured: those after a warm-up and before a drain. Others run, but are in no figure of jobs."""

    first_job: Annotated[int, Field(ge=0)] = Field(
        default=0, description="first job that is measured, counted from 0 in order of submission"
    )
    last_job: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="last job that is measured, itself included; left out: the last of all"
    )
    from_s: NotNegative = Field(default=0.0, description="seconds of the run; jobs submitted earlier are not measured")
    to_s: float = Field(
        default=float("inf"), gt=0, description="seconds of the run; jobs submitted then or later are not; default inf"
    )
    stop: bool = Field(default=True, description="the run ends when every measured job has ended")

    @property
    def everything(self) -> bool:
        """Whether every job is measured, whatever the workload."""
        return self.first_job == 0 and self.last_job is None and self.from_s == 0 and self.to_s == float("inf")


class PhysicsSection(Section):
    """What the simulated world adds to the throughputs: places, neighbours, fates of jobs, word that comes late."""

    placement: Text = Field(
        default="off", description="slowdown by place: off, throughputs (the source's own), themis, philly, or a table"
    )
    accelerators_per_slot: Annotated[int, Field(ge=0, le=MOST_ACCELERATORS)] = Field(
        default=0, description="accelerators of a machine that share its fastest link; 0 = all of them"
    )
    neighbours: Text = Field(
        default="off", description="slowdown by gangs on the same machine: off, philly, or a table of stage times"
    )
    pairs: Text = Field(
        default="measured",
        description="pairs on the same accelerators that nobody measured: measured (none), modelled, or stage times",
    )
    believed: bool = Field(default=True, description="the scheduler knows the slowdowns by place and of pairs")
    fates: Literal["off", "philly"] = Field(
        default="off", description="philly: some jobs fail for a reason, some are killed by their users"
    )
    failing: NotNegative = Field(default=0.172, le=1, description="fraction of jobs that fail however often tried")
    killed: NotNegative = Field(default=0.135, le=1, description="fraction of jobs that their users kill")
    retries: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=2, description="how often a failed job is started again at least; its trace may say more"
    )
    repair: Literal["fixed", "exponential"] = Field(
        default="fixed", description="repairs of machines and racks take their time, or that on average"
    )
    rack_failures_per_hour: NotNegative = Field(default=0.0, description="losses per hour of each rack as a whole")
    rack_repair_s: NotNegative = Field(default=3600.0, description="seconds until a lost rack is back")
    report_delay_s: NotNegative = Field(default=0.0, description="seconds that word of a job's end takes on average")
    report_lost: NotNegative = Field(default=0.0, le=1, description="fraction of such words that are lost")
    reconcile_s: Finite = Field(default=300.0, gt=0, description="seconds between two looks that find what was lost")
