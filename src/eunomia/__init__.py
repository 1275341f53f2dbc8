"""Eunomia: a scheduler for deep-learning accelerator clusters that people share.

The names of `__all__` are the public API, described in docs/api.md with an example each; `eunomia.testing` has the
contract suites and `eunomia.lease` what a training script imports. Everything else may change from version to version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eunomia import policies
    from eunomia.allocation import AllocationProblem, Solution, solve
    from eunomia.backends.inputs import BackendClass, BackendInputs
    from eunomia.comparison import Comparison, SweepOutcome, compare, sweep
    from eunomia.inputs.problems import InvalidInput
    from eunomia.model import decisions, events
    from eunomia.model.answers import Answer, Grants, InvalidAnswer, Order, Rows, Shares
    from eunomia.model.job import Job
    from eunomia.model.policy import RECALLABLE, LeaseTerms, Policy, PolicyInfo
    from eunomia.model.topology import Node, Topology
    from eunomia.model.view import UndeclaredColumn, View
    from eunomia.policies.order.type_choice import by_fastest
    from eunomia.policies.shares.share_program import ShareProgram
    from eunomia.report import export_charts, write_report
    from eunomia.runs import Result, simulate
    from eunomia.scenario import Scenario, load_scenario
    from eunomia.sweeps import simulate_many
    from eunomia.throughputs import load as load_throughputs
    from eunomia.traces import Trace
    from eunomia.traces import generate as generate_trace
    from eunomia.traces import read as read_trace
    from eunomia.traces import window as trace_window
    from eunomia.traces import write_native as write_trace
    from eunomia.tuners.trials import Trials
    from eunomia.tuners.tuner import TunerRequests
    from eunomia.verdict.run_figures import ReportContent, RunFigures

__version__ = "0.1.0"
__all__ = [
    "RECALLABLE",
    "AllocationProblem",
    "Answer",
    "BackendClass",
    "BackendInputs",
    "Comparison",
    "Grants",
    "InvalidAnswer",
    "InvalidInput",
    "Job",
    "LeaseTerms",
    "Node",
    "Order",
    "Policy",
    "PolicyInfo",
    "ReportContent",
    "Result",
    "Rows",
    "RunFigures",
    "Scenario",
    "ShareProgram",
    "Shares",
    "Solution",
    "SweepOutcome",
    "Topology",
    "Trace",
    "Trials",
    "TunerRequests",
    "UndeclaredColumn",
    "View",
    "__version__",
    "by_fastest",
    "compare",
    "decisions",
    "events",
    "export_charts",
    "generate_trace",
    "load_scenario",
    "load_throughputs",
    "policies",
    "read_trace",
    "simulate",
    "simulate_many",
    "solve",
    "sweep",
    "trace_window",
    "write_report",
    "write_trace",
]

_NAMES_BY_MODULE = {  # public name, or public name=name in the module
    "allocation": "AllocationProblem Solution solve",
    "backends.inputs": "BackendClass BackendInputs",
    "comparison": "Comparison SweepOutcome compare sweep",
    "model.answers": "Answer Grants InvalidAnswer Order Rows Shares",
    "model.job": "Job",
    "model.policy": "RECALLABLE LeaseTerms Policy PolicyInfo",
    "inputs.problems": "InvalidInput",
    "model.topology": "Node Topology",
    "model.view": "UndeclaredColumn View",
    "policies.order.type_choice": "by_fastest",
    "policies.shares.share_program": "ShareProgram",
    "report": "export_charts write_report",
    "runs": "Result simulate",
    "scenario": "Scenario load_scenario",
    "sweeps": "simulate_many",
    "throughputs": "load_throughputs=load",
    "traces": "Trace generate_trace=generate read_trace=read trace_window=window write_trace=write_native",
    "tuners.trials": "Trials",
    "tuners.tuner": "TunerRequests",
    "verdict.run_figures": "ReportContent RunFigures",
}
_MODULES = {"decisions": "eunomia.model.decisions", "events": "eunomia.model.events", "policies": "eunomia.policies"}
_PLACES = {
    entry.partition("=")[0]: (f"eunomia.{module}", entry.rpartition("=")[2])
    for module, entries in _NAMES_BY_MODULE.items()
    for entry in entries.split()
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import eunomia` costs nothing."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _PLACES:
        module, attribute = _PLACES[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'eunomia' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
