"""Whether the cluster that a site declares can be this machine, which is all that its `local` world has."""

from __future__ import annotations

from eunomia.backends.processes import discovery
from eunomia.backends.processes.environment import NO_DEVICE
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.setup.run_objects import RunConfig

WAYS = 'set [world] backend = "ray", "slurm" or "kubernetes" (docs: several-boxes.md)'
MADE_UP = "or, to try things out with accelerators that are not there, write made_up = true in [service]"


def refuse_other_machines(setup: RunConfig, *, names_nodes: bool) -> None:
    """Raise InvalidInput for several nodes of a type, and for more accelerators than NVIDIA's driver shows here.

    `names_nodes`: the site says which nodes there are, or how large one is; else its numbers are of one machine.
    Without a driver nothing is known of the accelerators here.
    """
    problems = list[Problem]()
    kinds = [node.type for node in setup.nodes]
    if names_nodes and (twice := [kind for kind in dict.fromkeys(kinds) if kinds.count(kind) > 1]):
        rule = f"there are {kinds.count(twice[0])} nodes of the type {twice[0]}; the world local is this machine alone"
        problems.append(setup.scenario.problem(("cluster",), rule, f"declare one node; for several {WAYS}; {MADE_UP}"))
    declared = sum(node.accelerators for node in setup.nodes if node.type != NO_DEVICE)
    try:
        shown = sum(group["accelerators"] for group in discovery.discovered()[0]) if declared else 0
    except InvalidInput:
        shown = declared
    if declared > shown and not problems:
        rule = f"{declared} accelerators are declared, and NVIDIA's driver shows {shown} on this machine"
        fix = f"write discover = true; for those of other machines {WAYS}; {MADE_UP}"
        problems.append(setup.scenario.problem(("cluster",), rule, fix))
    if problems:
        raise InvalidInput(problems)
