"""Replays a record through a new scheduler, which must make the same decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.mechanism import MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.failures.retrying import Adaptive
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.mechanisms import as_dict, from_dict
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision, one_by_one
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import PolicyInfo
from eunomia.model.promises import Promises
from eunomia.model.rank import Rank
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.records.record import Record, from_json, to_json


class RecordedSpeeds:
    """Believed throughputs from the header of a record."""

    def __init__(self, types: tuple[str, ...], alone: list[Any], beside: list[Any]):
        self.types = types
        self._alone = {(kind, size): np.array(rates, dtype=float) for kind, size, rates in alone}
        self._beside = {(mine, other, size): np.array(rates, dtype=float) for mine, other, size, rates in beside}

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        return self._alone[job_type, scale_factor]

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first beside the second, (type,); 0 where no pair was recorded."""
        return self._beside.get((job_type, partner, scale_factor), np.zeros(len(self.types)))


def header(
    jobs: list[Job],
    nodes: list[Node],
    info: PolicyInfo,
    mechanism: MechanismConfig,
    overheads: Overheads,
    speeds: Speeds,
    seed: int,
) -> dict[str, Any]:
    """Return the inputs of the scheduler as JSON."""
    kinds = sorted({(job.job_type, size) for job in jobs for size in job.shapes})
    sharing, promises = "packed_throughput" in info.needs or mechanism.pairs, info.promises
    rank = None if promises.reserves else promises.rank  # beside a reservation a job may pass those before it
    return {
        "seed": seed,
        "nodes": [[node.type, node.accelerators, node.rack] for node in nodes],
        "policy": {
            "name": info.name,
            "door": info.answer_type,
            "remembers": dict(info.memory_columns),
            "complete": info.promises.covers_all_jobs,
            "separable": info.promises.jobs_independent,
            "renews": info.promises.renews_leases,
            "ranks_by": rank.key if rank is not None and rank.key not in ("service", "weight") else "",
        },
        "mechanism": to_json(as_dict(mechanism)),
        "overheads": _recorded_overheads(overheads),
        "alone": [[kind, size, speeds.solo_throughput(kind, size).tolist()] for kind, size in kinds],
        "beside": [
            [mine, other, size, speeds.packed_throughput(mine, other, size).tolist()]
            for mine, size in kinds
            for other, same in kinds
            if sharing and size == same
        ],
    }


def _recorded_overheads(overheads: Overheads) -> dict[str, Any]:
    """Return the header field of the overheads; without what a preemption saves where that is a checkpoint."""
    fields = asdict(overheads)
    if overheads.saves == "checkpoint":
        del fields["saves"]
    return fields


def recorded_tenants(tenants: Mapping[str, Tenant]) -> dict[str, Any]:
    """Return the header field of the tenants' options; none where all have the defaults."""
    fields = {
        name: [tenant.weight, tenant.inner, None if math.isnan(tenant.quota) else tenant.quota, tenant.borrows]
        for name, tenant in tenants.items()
        if tenant != Tenant()
    }
    return {"tenants": fields} if fields else {}


def new_scheduler(record: Record, info: PolicyInfo | None = None) -> Scheduler:
    """Build the scheduler of a record from its header. Raises InvalidInput for an incomplete header.

    With the card of the record's policy, `info`, the scheduler can also be asked what the policy has to see.
    """
    try:
        head: Mapping[str, Any] = record.header
        topology = Topology.of([Node(type=kind, accelerators=size, rack=rack) for kind, size, rack in head["nodes"]])
        policy = head["policy"]
        # Records of before also have promises that were without effect, as they are not of such answers.
        covers, ranks_by = policy["complete"] and policy["door"] == "order", policy.get("ranks_by", "")
        info = info or PolicyInfo(
            name=policy["name"],
            answer_type=policy["door"],
            objective="",
            technique="",
            paper="",
            needs=frozenset(),  # not used, as the answers are in the record
            memory_columns=policy["remembers"],
            promises=Promises(
                covers_all_jobs=covers,
                jobs_independent=covers and policy["separable"],
                renews_leases=policy.get("renews", False),
                rank=Rank(ranks_by) if covers and ranks_by else None,  # for explanations; no decision depends on it
            ),
        )
        speeds = RecordedSpeeds(topology.types, head["alone"], head["beside"])
        belief = Belief(speeds, Overheads(**head["overheads"]))
        retries = Adaptive(by_tenant=head.get("retry_by") == "tenant") if head.get("retry") == "adaptive" else None
        mechanism = from_dict(from_json(head["mechanism"]))
        tenants = {
            name: Tenant(weight, inner, math.nan if quota is None else quota, borrows)
            for name, (weight, inner, quota, borrows) in head.get("tenants", {}).items()
        }
        return Scheduler(topology, info, mechanism, belief, seed=head["seed"], tenants=tenants, comes_again=retries)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        rule = f"the header is not complete ({error})"
        problem = Problem(file=str(record.path), row=1, rule=rule, fix="record again")
        raise InvalidInput([problem]) from error


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """The first moment at which the decisions differ."""

    row: int  # line of the moment
    at: float
    recorded: list[Any]
    decided: list[Any]


def walk(record: Record) -> Iterator[tuple[Moment, Scheduler]]:
    """Yield each moment with the scheduler after it. Raises InvalidInput for an impossible moment."""
    scheduler = new_scheduler(record)
    for row, moment, _ in record.steps():
        _handle(scheduler, row, moment, record)
        yield moment, scheduler


def first_difference(record: Record) -> RecordDifference | None:
    """Compare the decisions of a new scheduler with the record; None if all are equal. Raises as `walk` does."""
    scheduler = new_scheduler(record)
    for row, moment, recorded in record.steps():
        decided = [to_json(decision) for decision in one_by_one(_handle(scheduler, row, moment, record))]
        if decided != recorded:
            return RecordDifference(row, moment.at, recorded, decided)
    return None


def _handle(scheduler: Scheduler, row: int, moment: Moment, record: Record) -> list[Decision]:
    """Handle one moment. The scheduler trusts its input, so any error means an invalid record."""
    try:
        return scheduler.handle(moment)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        rule = f"this moment cannot follow those before it ({type(error).__name__}: {error})"
        fix = "give the record as it was written, to the version that wrote it"
        raise InvalidInput([Problem(file=str(record.path), row=row, rule=rule, fix=fix)]) from error
