"""The scenario: the whole description of a run, the same for every backend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.policy_spec import parse_policy
from eunomia.scenario.schema_models import (
    AppsSection,
    BeliefSection,
    ClusterSection,
    MeasureSection,
    MechanismSection,
    OverheadsSection,
    PhysicsSection,
    PolicySection,
    Section,
    TenantSection,
    ThroughputsSection,
    WorkloadSection,
    WorldSection,
)
from eunomia.scenario.source_locations import KeyPath, Place, SourceLocations


class Scenario(Section):
    """A run. Built by `load_scenario` or `scenario_from_dict`, which alone check keys against each other."""

    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of every random draw of the run")
    check: bool = Field(default=False, description="check the invariants after every moment; slow")
    cluster: ClusterSection
    workload: WorkloadSection
    throughputs: ThroughputsSection = ThroughputsSection()
    belief: BeliefSection = BeliefSection()
    policy: PolicySection = PolicySection()
    mechanism: MechanismSection | None = None
    tenants: dict[str, TenantSection] = Field(
        default_factory=dict,
        description="weights of tenants by name, such as lab or lab/vision; others have weight 1",
    )
    apps: AppsSection = AppsSection()
    overheads: OverheadsSection = OverheadsSection()
    world: WorldSection = WorldSection()
    physics: PhysicsSection = PhysicsSection()
    measure: MeasureSection = MeasureSection()

    _name: str = PrivateAttr(default="scenario")
    _base: Path = PrivateAttr(default=Path())
    _places: SourceLocations = PrivateAttr(default=SourceLocations("scenario"))

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self._name

    @property
    def base(self) -> Path:
        """Folder at which relative paths start."""
        return self._base

    def resolve(self, path: str) -> Path:
        """Return a path of the scenario as a path of this machine."""
        return self.base / Path(path).expanduser()

    def where(self, path: KeyPath) -> Place:
        """Return file and line of a key, or of the table around it; the line is None when it came from no file."""
        return self._places.where(path)

    def problem(self, path: KeyPath, rule: str, fix: str, value: object = None) -> Problem:
        """Return what is wrong with the value of a key, with the file and line of the key."""
        file, row = self.where(path)
        shown = None if value is None else str(value)
        return Problem(file=file, row=row, column=".".join(map(str, path)), value=shown, rule=rule, fix=fix)

    def refused(self, path: KeyPath, rule: str, fix: str, value: object = None) -> InvalidInput:
        """Return the error of one `problem`."""
        return InvalidInput([self.problem(path, rule, fix, value)])

    def placed(self, name: str, base: Path, places: SourceLocations) -> Scenario:
        """Return the same scenario with its name, folder and places."""
        copy = self.model_copy()
        copy._name, copy._base, copy._places = name, base, places
        return copy

    def with_policy(self, spelling: str) -> Scenario:
        """Return the scenario with another policy, such as `fifo?backfill=skip`, and none of the old parameters."""
        name, parameters = parse_policy(spelling)
        copy = self.model_copy(update={"policy": PolicySection.model_validate({**parameters, "name": name})})
        places = self._places.moved(("policy",), (f"--policy {spelling}", None))
        return copy.placed(self.name, self.base, places)

    def with_policy_of(self, name: str, parameters: Mapping[str, Any]) -> Scenario:
        """Return the scenario with the name and the parameters of a policy object."""
        section = PolicySection.model_validate({**parameters, "name": name})
        places = self._places.moved(("policy",), (f"policy {name}", None))
        return self.model_copy(update={"policy": section}).placed(self.name, self.base, places)

    def as_dict(self) -> dict[str, Any]:
        """Return every key with its value, in JSON's types, as `scenario_from_dict` reads it: inf is "inf"."""
        data: dict[str, Any] = self.model_dump(by_alias=True, exclude_none=True)
        data["cluster"] = {"nodes": [group.model_dump() for group in self.cluster.nodes], "prices": self.cluster.prices}
        data["tenants"] = {name: tenant.model_dump(exclude_unset=True) for name, tenant in self.tenants.items()}
        if not self.workload.restart_within_s:
            del data["workload"]["restart_within_s"]  # younger than records that are compared byte by byte
        if self.workload.generator is not None:
            del data["workload"]["format"]
        if self.mechanism is not None and self.mechanism.name != "leases":
            data["mechanism"] = {"name": self.mechanism.name, **self.mechanism.parameters}
        written: dict[str, Any] = _without_inf(data)
        return written


def _without_inf(value: Any) -> Any:
    """Return the value with infinities as "inf", since JSON has none."""
    match value:
        case dict():
            return {key: _without_inf(each) for key, each in value.items()}
        case list() | tuple():
            return [_without_inf(each) for each in value]
        case float() if math.isinf(value):
            return str(value)
    return value
