"""The tables of a scenario, with the rule, unit and default of every key.

The JSON schema, the reference page and the error messages are made from these classes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from eunomia.backends.registry import BACKENDS, DEFAULT
from eunomia.inputs.bounds import LEAST, MOST_DEMAND
from eunomia.inputs.bounds import MOST_WEIGHT as MOST_TENANT_WEIGHT

MOST_ACCELERATORS = 10_000_000  # a topology holds one row for each
MISSING_VC = r"(drop|own|spread|spread\([0-9]{1,18}\))"
MOST_WEIGHT = 1e15  # beyond it the other weights of a mix would be lost in rounding

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ACCELERATORS)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
NotNegative: TypeAlias = Annotated[Finite, Field(ge=0)]
Demand: TypeAlias = Annotated[Finite, Field(ge=0, le=MOST_DEMAND)]


def key(default: Any, description: str, **rules: Any) -> Any:
    """Return the field of a key that may be left out."""
    return Field(default=default, description=description, **rules)


class Section(BaseModel):
    """A table of the scenario: frozen, no unknown keys, no value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OpenSection(Section):
    """A table that also takes the keys of a component loaded later, which checks them."""

    model_config = ConfigDict(extra="allow")

    def extra_keys(self) -> dict[str, Any]:
        """Return the keys that are not fields of this class."""
        return dict(self.__pydantic_extra__ or {})


class NodeGroup(Section):
    """A group of equal machines."""

    type: Text = Field(description="accelerator type, such as v100")
    count: Count = key(1, "machines")
    accelerators: Count = Field(description="accelerators of each machine")
    rack: str = key("", "rack of these machines; empty = none named")
    cpus: Demand = key(0.0, "CPUs of each machine, which some policies allocate; 0 = not given")
    memory_gib: Demand = key(0.0, "memory of each machine in GiB, likewise; 0 = not given")


def whole_nodes(total: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return (machines, accelerators of each) of the shorthand: full machines, then one with the rest."""
    full, rest = divmod(total, size)
    return tuple((count, each) for count, each in ((full, size), (min(rest, 1), rest)) if count)


class ClusterSection(Section):
    """The machines: `nodes`, a file of them, or the shorthand `accelerators`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("nodes", "nodes_file", "accelerators")]}
    )

    listed_nodes: tuple[NodeGroup, ...] = key(
        (), "groups of machines, in their order", alias="nodes", strict=False, min_length=1
    )
    nodes_file: Text | None = key(
        None, "list of machines, a file or folder, with options as in machines.csv?only=v100,p100"
    )
    accelerators: dict[Text, Count] = Field(
        default_factory=dict, min_length=1, description="shorthand: accelerators of each type"
    )
    accelerators_per_node: Count = key(
        8, "accelerators of one machine in the shorthand; the last machine of a type may have fewer"
    )
    prices: dict[Text, NotNegative] = Field(
        default_factory=dict, description="US$ per accelerator-hour by type; a type left out has its catalogue price"
    )

    @property
    def nodes(self) -> tuple[NodeGroup, ...]:
        """The groups of machines, from `nodes` or from the shorthand."""
        if self.listed_nodes:
            return self.listed_nodes
        return tuple(
            NodeGroup(type=name, count=count, accelerators=size)
            for name, total in self.accelerators.items()
            for count, size in whole_nodes(total, self.accelerators_per_node)
        )

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types in order of first appearance."""
        return tuple(dict.fromkeys(group.type for group in self.nodes))


def _is_weight(weight: Any) -> bool:
    return type(weight) in (int, float) and 0 < weight < MOST_WEIGHT


def _check_job_types(value: Any) -> str | dict[str, float]:
    """Accept the name of a mix, or a table of weights."""
    if isinstance(value, str) and value.startswith("mix:") and value != "mix:":
        return value
    if isinstance(value, dict) and value and all(_is_weight(weight) for weight in value.values()):
        return {name: float(weight) for name, weight in value.items()}
    raise PydanticCustomError(
        "job_types", "must be the name of a mix or a table of job types with weights above 0 and below 1e15"
    )


def _check_missing_vc(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(MISSING_VC, value):
        return value
    raise PydanticCustomError("missing_vc", "must be spread, spread(seed), drop or own")


class WorkloadSection(OpenSection):
    """The jobs: `trace` or `generator`. Further keys are options of the reader or parameters of the generator."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["trace"]}, {"required": ["generator"]}]})

    trace: Text | None = key(None, "file of jobs; a relative path starts at the scenario")
    generator: Text | None = key(None, "name of a synthetic workload, such as philly-like")
    format: Text = key("native", "how the trace is written: native, gavel, philly, venus, …")
    load: Finite = key(1.0, "submission times are divided by it; durations stay", gt=0)
    start_s: NotNegative = key(0.0, "seconds; the run begins then: earlier jobs are left out")
    end_s: float = key(float("inf"), "seconds; jobs submitted then or later are left out; default inf", gt=0)
    job_types: Annotated[
        str | dict[str, float],
        PlainValidator(_check_job_types),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "pattern": "^mix:."},
                    {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
                ]
            }
        ),
    ] = key("mix:default", "for jobs that name none: a mix, or weights by job type")
    max_jobs: Annotated[int, Field(ge=1)] | None = key(None, "jobs; only the first so many are kept; left out: all")
    resample: Literal["days", "weeks"] | None = key(
        None, "draw days or weeks of the trace anew, with replacement, by the seed; left out: the trace as it is"
    )
    missing_vc: Annotated[
        str, PlainValidator(_check_missing_vc), WithJsonSchema({"type": "string", "pattern": MISSING_VC})
    ] = key(
        "spread",
        "jobs without a tenant in a trace that names some: spread over them in proportion to their jobs, "
        "by seed as in spread(7), else the scenario's; drop; or own: a tenant of their own, called -",
    )
    tenant_weights: Text | None = key(
        None, "weights of the tenants: philly, or a table with tenant, weight and perhaps quota; [tenants] overrides it"
    )
    elastic: Literal["off", "halves"] = key("off", "halves: a gang may also run at a half, a quarter … of its size")
    interruptible: bool = key(
        True,
        "a preempted job goes on from where it saved; false: no job can save, and so none is preempted; a "
        "trace may say it of each job",
    )
    restart_within_s: NotNegative = key(
        0.0,
        "a job that cannot save may all the same be preempted once, so many seconds after its first start at most, and "
        "starts over; 0 = never",
    )

    @property
    def options(self) -> dict[str, Any]:
        """Options of the reader, or parameters of the generator."""
        return self.extra_keys()


class ThroughputsSection(Section):
    """The true throughputs of jobs."""

    source: Text = key(
        "catalogue",
        "catalogue, uniform (speed 1 everywhere), linear (speed 1 an accelerator), or a file; left out "
        "beside a trace and one accelerator type auto: uniform where durations say all, else catalogue",
    )
    reference_type: Text = key(
        "v100",
        "type on which a trace's durations were measured; with source uniform the cluster's first type, "
        "with auto its only one",
    )
    missing: Literal["refuse", "estimate", "cannot_run"] = key(
        "refuse",
        "a pair of job type and accelerator type that the file does not have; refuse: an error; "
        "estimate: from its other rows, as eunomia calibrate does; cannot_run: a throughput of 0",
    )
    draw: bool = key(
        False, "draw each estimated throughput from its interval by the seed; the scheduler assumes the estimates"
    )


class BeliefSection(Section):
    """The throughputs and run times that the scheduler assumes."""

    kind: Literal["oracle", "noisy", "estimated", "measured"] = key(
        "oracle",
        "oracle: the true throughputs; noisy: with errors; estimated: those of pairs, from few measured; "
        "measured: at first the stated ones, with errors in a simulation, then those that running gangs reach",
    )
    error: NotNegative = key(
        0.0,
        "no unit; sigma of the lognormal factor on each throughput, where kind is noisy or measured; on "
        "real accelerators nothing is drawn, and it only says how far a throughput may be off before it is measured",
    )
    measure_s: Finite = key(
        60.0, "seconds of progress from which a gang's throughput is measured, where kind is measured", gt=0
    )
    explore: NotNegative = key(
        0.05,
        "no unit; likewise: a type on which a job type is unmeasured is tried while that takes at most "
        "this share of the time that its jobs would still run, 0 = never",
        le=1,
    )
    references: Annotated[int, Field(ge=2)] = key(16, "job types all of whose pairs are known, where kind is estimated")
    profiled: NotNegative = key(0.2, "share of a new job type's pairs with references that is measured, likewise", le=1)
    choose: Literal["random", "telling"] = key(
        "random", "which pairs are measured; telling: those that teach most of the job's other pairs"
    )
    caution: NotNegative = key(
        0.0, "no unit; 0: medians of estimated pairs are believed; 1: the lower ends of their 80 % intervals", le=1
    )
    method: Literal["best", "match"] = key(
        "best", "estimator; best: Gaussian process; match: Gavel's matrix completion"
    )
    profile_s: NotNegative = key(
        0.0,
        "seconds that a job holds its accelerators for each of these measurements before its first step; "
        "0 = measuring is free",
    )
    charge: Literal["job", "job_type", "slices"] = key(
        "job",
        "who measures; job: every job, before its first step; job_type: the first job of each job type "
        "that is no reference, as further work of so many seconds on its fastest accelerator type; slices: jobs of "
        "their own, submitted during the run within the budget, and pairs that run anyway",
    )
    budget: NotNegative = key(0.03, "share of the accelerators' time since the run began for slices", le=1)
    solver: Literal["als", "soft_impute", "svt"] = key("als", "matrix completion of match")
    duration: Literal["declared", "history", "none"] = key(
        "declared",
        "run times; declared: as submitted; history: estimated from ended jobs of like size and tenant; "
        "none: the same for all",
    )
    tolerance: NotNegative | None = key(
        None,
        "no unit; where duration is history, a job whose estimate has moved by more than this share when "
        "another of its tenant ends asks the policy again, absent = estimated once, when submitted; where charge is "
        "slices or kind is measured, an estimate has to move by more to be believed anew, absent = 0.02",
    )


class PolicySection(OpenSection):
    """The scheduling policy. Further keys are its parameters."""

    name: Text = key("fifo", "name of the policy; parameters may follow as in fifo?backfill=skip")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, as written; the policy checks them."""
        return self.extra_keys()


class TenantSection(Section):
    """The weight and quota of one tenant."""

    weight: Finite = key(1.0, "share among its siblings; no unit", gt=0, ge=LEAST, le=MOST_TENANT_WEIGHT)
    inner: Literal["fairness", "fifo"] = key(
        "fairness", "how its jobs and sub-tenants share: by weight, or in order of submission"
    )
    quota: Demand | None = key(None, "accelerators reserved for it; left out: a part of the unreserved ones, by weight")
    may_borrow: bool = key(True, "it may use accelerators that other tenants leave idle")


class MechanismSection(OpenSection):
    """When seats are reassigned. Without this table the policy has its own; further keys are for others than leases."""

    name: Text = key("leases", "leases, ideal, or the mechanism of a published system")
    length_s: float = key(360.0, "seconds that a lease lasts; inf = until the job ends", gt=0)
    aligned: bool = key(True, "leases end together, which makes rounds")
    recall: bool = key(False, "leases may be preempted before their end")
    solve_gap_s: NotNegative = key(0.0, "least seconds between two calls of the policy")
    ask_every_s: Annotated[Finite, Field(gt=0)] | None = key(
        None,
        "most seconds between two calls of the policy while jobs are there; absent = it is called when "
        "jobs or machines come or go, or when it asks for it",
    )

    @property
    def parameters(self) -> dict[str, Any]:
        """Every key that was written, the name left out."""
        known = {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}
        return {key: value for key, value in (known | self.extra_keys()).items() if key != "name"}


class OverheadsSection(Section):
    """Time that a job loses when it starts, stops or moves."""

    start_s: NotNegative = key(0.0, "seconds of the first start of a job")
    checkpoint_s: NotNegative = key(0.0, "seconds to write a checkpoint when stopped")
    restore_s: NotNegative = key(0.0, "seconds to resume from a checkpoint")
    restore_by_size: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]*$")], NotNegative] = Field(
        default_factory=dict, description="restore_s of gangs from so many accelerators on, such as { 2 = 28, 9 = 58 }"
    )
    saves: Literal["checkpoint", "nothing"] = key(
        "checkpoint",
        "checkpoint: a preempted job goes on from where it was stopped; nothing: from its last "
        "checkpoint of world.checkpoint_every_s, or where that is 0 it starts over; simulations only",
    )


class SlurmSection(Section):
    """How Slurm is asked to run gangs."""

    partition: str = key("", "partition of all jobs; empty: Slurm's default")
    account: str = key("", "account that Slurm charges; empty: Slurm's default")
    poll_s: Annotated[Finite, Field(gt=0)] = key(1.0, "seconds between two lists of the queue")
    timeout_s: Annotated[Finite, Field(gt=0)] = key(10.0, "seconds after which a command of Slurm counts as unanswered")


class RaySection(Section):
    """How Ray is asked to run gangs."""

    address: Text = key("auto", "of the cluster, as in HOST:6379; auto: the one on this machine")
    namespace: Text = key("eunomia", "namespace of the actors")
    type_label: str = key("", "label of nodes with their accelerator type; empty: ray.io/accelerator-type or gpu-type")
    poll_s: Annotated[Finite, Field(gt=0)] = key(1.0, "seconds between two lists of the actors")
    timeout_s: Annotated[Finite, Field(gt=0)] = key(10.0, "seconds after which a question to Ray counts as unanswered")


class KubernetesSection(Section):
    """How Kubernetes is asked to run gangs."""

    image: str = key("", "container image of all pods; required")
    namespace: str = key("", "namespace of the Jobs; empty: that of the context")
    context: str = key("", "context of the kubectl settings; empty: the current one, or the pod's own")
    resource: Text = key("nvidia.com/gpu", "what nodes call their accelerators")
    type_label: str = key("", "label of nodes with their accelerator type; empty: nvidia.com/gpu.product or gpu-type")
    queue_label: Text = key(
        "eunomia.dev/queue",
        "adopt_submissions: label of users' Jobs with their tenant; where Kueue is not installed also "
        "kueue.x-k8s.io/queue-name",
    )
    claim: str = key("", "volume claim with the folder of the jobs; empty: a folder of the node")
    mount: str = key("", "that folder, here and in the pods; empty: nothing is mounted")
    poll_s: Annotated[Finite, Field(gt=0)] = key(1.0, "seconds between two lists of the Jobs")
    timeout_s: Annotated[Finite, Field(gt=0)] = key(10.0, "seconds after which a request counts as unanswered")


class WorldSection(Section):
    """The backend that carries out decisions, and its faults."""

    backend: Annotated[str, WithJsonSchema({"anyOf": [{"enum": [*BACKENDS]}, {"type": "string"}]})] = key(
        DEFAULT, "simulated, local processes, slurm, ray or kubernetes; your own: path.py:Class, or an entry point"
    )
    replay_status: bool = key(False, "jobs fail or are cancelled as in the trace")
    job_failures_per_hour: NotNegative = key(0.0, "failures per hour of a running job")
    node_failures_per_hour: NotNegative = key(0.0, "losses per hour of each machine")
    node_repair_s: NotNegative = key(3600.0, "seconds until a lost machine returns")
    cancel_fraction: NotNegative = key(0.0, "fraction of jobs that their users cancel", le=1)
    cancel_after_s: Finite = key(3600.0, "seconds from submission to such a cancellation, on average", gt=0)
    checkpoint_every_s: NotNegative = key(0.0, "seconds between checkpoints, lost on a failure; 0 = nothing is lost")
    retry: Literal["always", "adaptive"] = key(
        "always",
        "which failures are retried while a job has retries: always: all; adaptive: not those for a "
        "reason that recurs (inputs, syntax, semantics, imports, CPU memory)",
    )
    retry_by: Literal["job", "tenant"] = key(
        "job",
        "adaptive: tenant, where tenants are users: nor those for a user's reason for which a job of "
        "the same tenant failed before",
    )
    blacklist_s: NotNegative = key(
        86_400.0,
        "adaptive, with physics.fates: seconds for which the machines of a gang that failed for a GPU ECC "
        "error are out of service; 0 = they stay in service",
    )
    adopt_submissions: bool = key(
        False, "slurm and kubernetes, under eunomia serve: place and release held jobs that users submit there"
    )
    slurm: SlurmSection = SlurmSection()
    ray: RaySection = RaySection()
    kubernetes: KubernetesSection = KubernetesSection()
    workdir: Text | None = key(None, "real backends: folder for jobs' files; left out: work, in the folder of the run")


def _check_space(value: Any) -> dict[str, Any]:
    """Accept ranges { low, high, log, whole } and lists of choices, by name."""
    if isinstance(value, dict) and all(_is_searchable(entry) for entry in value.values()):
        return value
    raise PydanticCustomError("space", "each entry is a range or a list of choices")


def _is_searchable(entry: Any) -> bool:
    if isinstance(entry, list):
        return bool(entry) and all(isinstance(choice, str | int | float | bool) for choice in entry)
    if not isinstance(entry, dict) or not {"low", "high"} <= entry.keys() <= {"low", "high", "log", "whole"}:
        return False
    low, high = entry["low"], entry["high"]
    flags = all(type(entry.get(name, False)) is bool for name in ("log", "whole"))
    return flags and _is_number(low) and _is_number(high) and low < high and (low > 0 or not entry.get("log"))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")


TUNERS = ("off", "all", "halving", "hyperband", "asha", "hyperdrive", "optuna")


class AppsSection(Section):
    """The tuner of the jobs of an app: jobs that name the same app are trials of one search."""

    tuner: Annotated[str, WithJsonSchema({"anyOf": [{"enum": [*TUNERS]}, {"type": "string"}]})] = key(
        "off",
        "off: jobs are no trials; all: each trial runs to its end; halving, hyperband, asha: one in eta "
        "continues at each rung; hyperdrive: poor trials are stopped; optuna: it proposes the parameters of trials "
        "(backend local); your own: path.py:Class, or the name of its entry point",
    )
    parameters: dict[str, Any] = Field(default_factory=dict, description="your own tuner: arguments of its class")
    eta: Annotated[int, Field(ge=2, le=100)] = key(3, "one trial in so many continues at a rung")
    pause: bool = key(
        True,
        "halving, hyperband: a trial pauses on its rung until the others have reached it; false: it runs "
        "until a better trial displaces it",
    )
    promotion: Literal["once", "later"] = key(
        "once",
        "asha: once: a trial that is not among the best when it reaches a rung is cancelled (Ray Tune); "
        "later: it pauses, and is promoted when it is among the best of those that have reached the rung (published)",
    )
    parallel: Annotated[int, Field(ge=1)] | None = key(
        None,
        "all, asha, hyperdrive, optuna: trials of an app submitted at a time; the next follows when "
        "one has ended; left out: all at once",
    )
    max_trials: Annotated[int, Field(ge=2)] | None = key(
        None, "most trials of an app that are submitted, its first ones; left out: all"
    )
    slots: Annotated[int, Field(ge=1)] | None = key(
        None,
        "hyperdrive: accelerators of the search, which bound the number of promising trials; left out: "
        "its trials that have not ended, at most parallel and the accelerators of the cluster",
    )
    target: Finite = key(
        0.8, "hyperdrive: the target is the best trial's loss after this fraction of its steps", gt=0, le=1
    )
    space: Annotated[dict[str, Any], PlainValidator(_check_space), WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict,
        description="optuna: what to search, such as lr = { low = 1e-4, high = 0.1, log = true } or a list of choices",
    )


class MeasureSection(Section):
    """The jobs that are measured, after a warm-up and before a drain. Others run, but count in no figure of jobs."""

    first_job: Annotated[int, Field(ge=0)] = key(0, "first job that is measured, counted from 0 in order of submission")
    last_job: Annotated[int, Field(ge=0)] | None = key(None, "last job that is measured; left out: the last of all")
    from_s: NotNegative = key(0.0, "seconds of the run; jobs submitted earlier are not measured")
    to_s: float = key(float("inf"), "seconds of the run; jobs submitted then or later are not; default inf", gt=0)
    stop: bool = key(True, "the run ends when every measured job has ended")
    metrics: tuple[Text, ...] = key(
        (),
        "metrics of your own, which add fields to summary.json: path.py:function, or names of entry points",
        strict=False,
    )

    ideal: Literal["policy", "share", "work", "longest"] = key(
        "policy",
        "time of an app on a private part of the cluster, to which rho_themis compares; policy: as the "
        "policy reads it, share for those that do not",
    )

    @property
    def everything(self) -> bool:
        """Whether every job of any workload is measured."""
        return self.first_job == 0 and self.last_job is None and self.from_s == 0 and self.to_s == float("inf")


SlotSize = Annotated[int, Field(ge=0, le=MOST_ACCELERATORS)]


class PhysicsSection(Section):
    """Effects that the simulation adds to throughputs: placement, neighbours, outcomes of jobs, late reports."""

    placement: Text = key(
        "auto",
        "slowdown by place: off, throughputs (the source's own), themis, philly, or a table; auto: "
        "throughputs where a long table has rows of several machines, else off",
    )
    accelerators_per_slot: SlotSize | dict[Text, SlotSize] = key(
        0, "accelerators of a machine that share its fastest link, of all types or by type; 0 = all of them"
    )
    neighbours: Text = key(
        "off", "slowdown by gangs on the same machine: off, philly, pairs, synthetic, or a table of stage times"
    )
    pairs: Text = key(
        "measured", "throughput of pairs without a measurement: measured (none), modelled, or stage times"
    )
    believed: bool = key(True, "the scheduler knows the slowdowns by placement and of pairs")
    fates: Literal["off", "philly"] = key("off", "philly: some jobs fail for a reason, some are killed by their users")
    failing: NotNegative = key(0.172, "fraction of jobs that fail in every attempt", le=1)
    killed: NotNegative = key(0.135, "fraction of jobs that their users kill", le=1)
    retries: Annotated[int, Field(ge=0, le=1000)] = key(2, "least retries of a failed job; its trace may have more")
    early_stop: bool = key(False, "jobs end once more steps would lower their loss by less than 0.1 %, as on Philly")
    repair: Literal["fixed", "exponential"] = key(
        "fixed", "repairs of machines and racks take the given time, or that on average"
    )
    rack_failures_per_hour: NotNegative = key(0.0, "losses per hour of each rack as a whole")
    rack_repair_s: NotNegative = key(3600.0, "seconds until a lost rack returns")
    report_delay_s: NotNegative = key(0.0, "mean delay of the report of a job's end in seconds")
    report_lost: NotNegative = key(0.0, "fraction of such reports that are lost", le=1)
    reconcile_s: Finite = key(300.0, "seconds between two polls that recover lost reports", gt=0)
