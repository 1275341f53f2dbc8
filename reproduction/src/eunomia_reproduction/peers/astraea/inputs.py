"""A case of the artifact: jobs, tenants with shares, and what the name of a result says of its run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tenants import Tenant, Tenants
from eunomia.policies.grants.astraea.selection import SELECTIONS, Selection
from eunomia_reproduction.peers.peer_sheet import read

ENDLESS_S = 1e7
MOST = 100_000_000  # seconds, or accelerators: more is a mistake
QUOTAS = ("fair", "static", "dynamic")


@dataclass(frozen=True, slots=True)
class ArtifactWorkload:
    """The jobs of one trace, (job,) each in order of (submission, line)."""

    names: tuple[str, ...]
    tenant: Ints  # row of `tenants`; -1 = no share is said for it
    size: Ints  # accelerators
    submitted: Ints
    duration: Ints
    tenants: tuple[str, ...]  # in the order in which they are served
    share: Floats  # (tenant,)
    accelerators: int

    def quotas(self) -> Ints:
        """Return whole accelerators by tenant, (tenant,); what rounding down leaves over is unassigned."""
        said = {name: Tenant(weight=share) for name, share in zip(self.tenants, self.share.tolist(), strict=True)}
        return Tenants.of((), said).quota(self.accelerators).astype(np.int64)

    def admitted(self) -> Bools:
        """Return whether each job, (job,), is kept: its tenant has a share, and a quota as wide as the job."""
        known = self.tenant >= 0
        return known & (self.size <= self.quotas()[self.tenant])


@dataclass(frozen=True, slots=True)
class ArtifactOptions:
    """How one run was started; seconds."""

    selection: Selection
    quota: str
    lease: float
    delay: float = 0.0  # up to that age a lease is fresh, and may end early for a new job
    starvation: float = 14400.0
    block: bool = False


def workload(case: Path) -> ArtifactWorkload:
    """Return what a case runs, on no accelerators yet. Raises InvalidInput for what is missing or is no number."""
    sheet = read(case / "trace.csv", numbers=("num_gpu", "submit_time", "duration"), texts=("job_id", "user"))
    problems = Problems(str(sheet.path))
    for column, values in sheet.numbers.items():
        for row, value in enumerate(values, 2):
            if not 0 <= value <= MOST or value != int(value):
                rule = f"is a whole number from 0 to {MOST:,}, for the clock goes in steps of 10 s"
                problems.add(rule, "write digits only", row=row, column=column, value=value)
    problems.raise_if_any()
    tenants, share = _tenants(case)
    order = sorted(range(len(sheet.texts["job_id"])), key=lambda row: sheet.numbers["submit_time"][row])
    order = [row for row in order if sheet.numbers["num_gpu"][row] > 0]
    row_of = {name: row for row, name in enumerate(tenants)}
    size, submitted, duration = (
        np.array([sheet.numbers[name][row] for row in order], dtype=np.int64)
        for name in ("num_gpu", "submit_time", "duration")
    )
    return ArtifactWorkload(
        names=tuple(sheet.texts["job_id"][row] for row in order),
        tenant=np.array([row_of.get(sheet.texts["user"][row], -1) for row in order], dtype=np.int64),
        size=size,
        submitted=submitted,
        duration=duration,
        tenants=tuple(tenants),
        share=share,
        accelerators=0,
    )


def _tenants(case: Path) -> tuple[list[str], Floats]:
    """Return those that have a share, in the order in which they are served, and the shares, (tenant,)."""
    said = read(case / "share.csv", numbers=("share",), texts=("name",))
    problems = Problems(str(said.path))
    for row, value in enumerate(said.numbers["share"], 2):
        if value <= 0:
            problems.add("a share is above 0", "write it, or leave the row out", row=row, column="share", value=value)
    problems.raise_if_any()
    share = dict(zip(said.texts["name"], said.numbers["share"], strict=True))
    path = case / "names.lst"
    try:
        names = [name for name in path.read_text(encoding="utf-8").split() if name in share]
    except OSError as error:
        fix = "write there the names of the tenants in the order in which they are served, one a line"
        raise InvalidInput([Problem(file=str(path), rule=f"it cannot be read: {error.strerror}", fix=fix)]) from None
    except UnicodeDecodeError as error:
        problem = Problem(file=str(path), rule=f"it is no UTF-8: {error.reason}", fix="save it as UTF-8")
        raise InvalidInput([problem]) from None
    if not names:
        rule, fix = "it names no tenant with a share in share.csv", "write the name of one tenant a line"
        raise InvalidInput([Problem(file=str(path), rule=rule, fix=fix)])
    return names, np.array([share[name] for name in names])


def options(path: Path, *, upstream: bool) -> ArtifactOptions:
    """Return what jobs_<case>.<selection>.<quota>.<lease>[.<variant>].csv says of its run. Raises InvalidInput.

    upstream: what the name leaves open is as where the artifact is started without options.
    """
    said = dict(enumerate(path.name.removesuffix(".csv").split(".")))
    selection, quota, lease, variant = (said.get(place, "") for place in range(1, 5))
    length = ENDLESS_S if lease == "inf" else float(lease) if lease.isdigit() else math.nan
    known = variant in ("", "noblock", "nodelay") and quota in QUOTAS and length > 0
    chosen = next((name for name in SELECTIONS if name == selection), None)
    if chosen is None or not known:
        rule = "its name says no run of the artifact"
        fix = "call it jobs_<case>.<selection>.<quota>.<lease>.csv, and .noblock or .nodelay before the end"
        raise InvalidInput([Problem(file=str(path), rule=rule, fix=fix)])
    if lease == "inf":
        return ArtifactOptions(chosen, quota, length, starvation=math.inf)
    if upstream:
        return ArtifactOptions(chosen, quota, length)
    delay, block = (0.0 if variant == "nodelay" else 300.0), variant != "noblock"
    return ArtifactOptions(chosen, quota, length, delay=delay, starvation=21600.0, block=block)
