"""Eunomia: a scheduler for deep-learning accelerator clusters that people share.

The names of `__all__` are the public API, described in docs/api.md with an example each; `eunomia.testing` has the
contract suites and `eunomia.lease` what a training script imports. Everything else may change from version to version.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which is not imported: each supervisor of a gang imports this file

if TYPE_CHECKING:
    from typing import Any

    from eunomia import policies
    from eunomia.allocation import AllocationProblem, Solution, solve
    from eunomia.backends.inputs import BackendClass, BackendInputs
    from eunomia.comparison import Comparison, SweepOutcome, compare, sweep
    from eunomia.inputs.problems import InvalidInput
    from eunomia.model import decisions, events
    from eunomia.model.answers import Answer, Grants, InvalidAnswer, Order, Rows, Shares
    from eunomia.model.job import Job
    from eunomia.model.policy import RECALLABLE, LeaseTerms, Policy, PolicyInfo
    from eunomia.model.promises import Promises
    from eunomia.model.rank import Rank
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
    from eunomia.tuners.tuner import Trials, TunerRequests
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
    "Promises",
    "Rank",
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

_modules: dict[str, tuple[str, str]] = {}  # of a public name: its module and its name there, once one has been used
_OF_MODULES = ("eunomia", "eunomia.model")  # what is imported from these above is a module itself


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import eunomia` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'eunomia' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = (_modules or _read_imports())[name]
    return (
        import_module(f"{module}.{attribute}") if module in _OF_MODULES else getattr(import_module(module), attribute)
    )


def __dir__() -> list[str]:
    return sorted(__all__)


def _read_imports() -> dict[str, tuple[str, str]]:
    """Return `_modules`, filled from the imports above, which type checkers read: so no name is listed a third time."""
    import ast
    from pathlib import Path

    for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            _modules.update({each.asname or each.name: (str(node.module), each.name) for each in node.names})
    return _modules
