"""`eunomia world`: what a real backend's starts and stops cost, and what Kubernetes needs for a service."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.errors import handle_errors
from eunomia.cli.options import JsonOption, ScenarioArgument

app = typer.Typer(help="Look at the backend of a scenario.", no_args_is_help=True, rich_markup_mode=None)
kubernetes = typer.Typer(
    help="Prepare a Kubernetes cluster for a service.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(kubernetes, name="kubernetes")


@app.callback()
def world() -> None:
    """Look at the backend of a scenario."""


@kubernetes.callback()
def on_kubernetes() -> None:
    """Prepare a Kubernetes cluster for a service."""


@kubernetes.command(epilog="Example:  eunomia world kubernetes manifests --namespace lab | kubectl apply -f -")
def manifests(
    namespace: Annotated[str, typer.Option("--namespace", help="Where the service and its Jobs live.")] = "eunomia",
    as_json: JsonOption = False,
) -> None:
    """Print the account of the service and its rights, the least that it needs, for kubectl apply."""
    with handle_errors(as_json):
        from eunomia.backends.kubernetes.manifest import manifest

        text = manifest(namespace)
        print(json.dumps({"manifests": text}) if as_json else text, end="\n" if as_json else "")


@app.command(epilog="Example:  eunomia world measure site.toml --out measured.toml")
def measure(
    scenario: ScenarioArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.toml", help="Scenario to write, with the measured overheads.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one key, such as world.backend=slurm. Repeatable."),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", metavar="N", min=1, max=100, help="Gangs of each kind.")] = 5,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.toml.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure start, checkpoint and restore overheads of the scenario's backend.

    Runs short gangs of its own on the first accelerator, some of which are stopped and started again; the first
    accelerator must be free. Scenarios that are simulated with these overheads take as long as on the backend.
    """
    with handle_errors(as_json):
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
        if as_json:
            print(json.dumps(asdict(found)))
            return
        print(f"[overheads]  # medians of {trials} trials on {wanted.world.backend}")
        for name in ("start_s", "checkpoint_s", "restore_s"):
            print(f"{name} = {getattr(found, name)}")
        if out is not None:
            print(f"# written: {out}")
