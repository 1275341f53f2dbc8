"""One TOML file that says what is run: cluster, workload, throughputs, belief, policy, mechanism, overheads, world."""

from __future__ import annotations

from eunomia.scenario.load import load_scenario, scenario_from_dict
from eunomia.scenario.model import Scenario
from eunomia.scenario.schema import json_schema
from eunomia.scenario.sections import NodeGroup
from eunomia.scenario.spelling import parse_policy

__all__ = ["NodeGroup", "Scenario", "json_schema", "load_scenario", "parse_policy", "scenario_from_dict"]
