"""`eunomia world`: what a real backend's starts and stops cost, and what Kubernetes needs for a service."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.options import ScenarioArgument, flag, group, option

app = group("Look at the backend of a scenario.")
kubernetes = group("Prepare a Kubernetes cluster for a service.")
app.add_typer(kubernetes, name="kubernetes")


@app.callback()
def world() -> None:
    """Look at the backend of a scenario."""


@kubernetes.callback()
def on_kubernetes() -> None:
    """Prepare a Kubernetes cluster for a service."""


@kubernetes.command(epilog="Example:  eunomia world kubernetes manifests --namespace lab | kubectl apply -f -")
@command
def manifests(
    output: Output,
    namespace: Annotated[str, typer.Option("--namespace", help="Where the service and its Jobs live.")] = "eunomia",
) -> None:
    """Print the account of the service and its rights, the least that it needs, for kubectl apply."""
    from eunomia.backends.kubernetes.manifest import manifest

    text = manifest(namespace)
    output.show({"manifests": text}, lambda: print(text, end=""))


@app.command(epilog="Example:  eunomia world measure site.toml --out measured.toml")
@command
def measure(
    output: Output,
    scenario: ScenarioArgument,
    out: Annotated[Path | None, option("FILE.toml", "Scenario to write, with the measured overheads.")] = None,
    set_: Annotated[
        list[str] | None, option("KEY=VALUE", "Override one key, such as world.backend=slurm. Repeatable.", "--set")
    ] = None,
    trials: Annotated[int, option("N", "Gangs of each kind.", min=1, max=100)] = 5,
    force: Annotated[bool, flag("Replace an existing FILE.toml.", "--force")] = False,
) -> None:
    """Measure start, checkpoint and restore overheads of the scenario's backend.

    Runs short gangs of its own on the first accelerator, some of which are stopped and started again; the first
    accelerator must be free. Scenarios that are simulated with these overheads take as long as on the backend.
    """
    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.runs.engine_overheads import measure_overheads, with_overheads
    from eunomia.scenario import load_scenario
    from eunomia.scenario.writing import as_toml

    if out is not None:
        check_place(out, force=force, endings=(".toml",), column="--out")
    wanted = load_scenario(scenario, set_ or [])
    with tempfile.TemporaryDirectory(prefix="eunomia-measure-", dir=Path.cwd()) as folder:
        found = measure_overheads(wanted, Path(folder), trials)
    if out is not None:
        write_output(out, as_toml(with_overheads(wanted, found)).encode(), column="--out")
    overheads = [f"{name} = {getattr(found, name)}" for name in ("start_s", "checkpoint_s", "restore_s")]
    written = [] if out is None else [f"# written: {out}"]
    head = f"[overheads]  # medians of {trials} trials on {wanted.world.backend}"
    output.show(lambda: asdict(found), head, *overheads, *written)
