"""Every mechanism of the registry keeps the protocol of `core.mechanism`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import eunomia
from eunomia.core.belief import Belief
from eunomia.core.event_handlers import UnknownEvent
from eunomia.core.mechanism import Mechanism, MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms import MECHANISMS, as_dict, from_dict, load
from eunomia.model.events import Event, JobFailed, JobPaused, JobResumed, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.testing.small_worlds import one_type

SOURCE = Path(eunomia.__file__).parent
JOB = Job(job_id="a", total_steps=10.0)


@dataclass(frozen=True)
class Eclipse:
    """What no world ever says."""


def scheduler(name: str) -> Scheduler:
    speeds = one_type()
    topology = Topology.of([Node(type=speeds.types[0], accelerators=2)])
    return Scheduler(topology, MaxMinFairness.info, load(name)(), Belief(speeds), checked=True)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_configuration_makes_a_mechanism_and_comes_back_from_its_record(name: str) -> None:
    config = load(name)()
    assert isinstance(config, MechanismConfig)
    assert config.name == name
    assert from_dict(as_dict(config)) == config
    assert isinstance(scheduler(name).mechanism, Mechanism)


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_unknown_event_is_an_error(name: str) -> None:
    with pytest.raises(UnknownEvent, match="Eclipse"):
        scheduler(name).handle(Moment(0.0, (Eclipse(),)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "event", [JobFailed("a", 1, "chance"), JobPaused("a"), JobResumed("a"), NodeLost(0), NodeJoined(0)]
)
def test_what_gavels_rounds_cannot_account_for_is_an_error(event: Event) -> None:
    core = scheduler("gavel")
    core.handle(Moment(0.0, (JobSubmitted(JOB),)))
    with pytest.raises(UnknownEvent, match="the mechanism gavel does not know"):
        core.handle(Moment(1.0, (event,)))


def test_mechanisms_read_no_private_name_of_others() -> None:
    for file in (SOURCE / "mechanisms").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                assert isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"), f"{file}: {node.attr}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eunomia"):
                assert not any(alias.name.startswith("_") for alias in node.names), f"{file}: {node.module}"


def test_no_job_asks_for_the_class_of_a_mechanism() -> None:
    classes = {"Mechanism", "MechanismConfig", *(load(name).__name__ for name in MECHANISMS)}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & classes, f"{file}:{node.lineno}"
