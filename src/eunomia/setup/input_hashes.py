"""The files that a scenario reads, as a record's header names them."""

from __future__ import annotations

from hashlib import sha256

from eunomia.scenario import Scenario
from eunomia.setup import world_models
from eunomia.throughputs import BUILT_IN


def input_hashes(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of every file that the scenario reads, by its name there; for a folder, of each file in it."""
    machines = (scenario.cluster.nodes_file or "").partition("?")[0]
    named = {scenario.workload.trace or "", scenario.throughputs.source, machines} - {"", *BUILT_IN}
    named |= world_models.files_of(scenario)
    paths = {name: scenario.resolve(name) for name in sorted(named)}
    inside = {f"{n}/{file.name}": file for n, path in paths.items() if path.is_dir() for file in sorted(path.iterdir())}
    files = {name: path for name, path in (paths | inside).items() if path.is_file()}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
