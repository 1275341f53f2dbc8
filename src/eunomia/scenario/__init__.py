"""The scenario file of a run: cluster, workload, throughputs, belief, policy, mechanism, overheads, world."""

from __future__ import annotations

from eunomia.scenario.load import load_scenario, scenario_from_dict
from eunomia.scenario.model import Scenario
from eunomia.scenario.policy_spec import parse_policy
from eunomia.scenario.published_schema import json_schema
from eunomia.scenario.schema_models import NodeGroup

__all__ = ["NodeGroup", "Scenario", "json_schema", "load_scenario", "parse_policy", "scenario_from_dict"]
