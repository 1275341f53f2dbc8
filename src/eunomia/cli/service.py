"""The command `serve`, and the list of the service's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.check import check_policies_of_files
from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag
from eunomia.cli.service_access import login, token_app
from eunomia.cli.service_cluster import cluster, drain, node_app, nodes, resume, site_app, summary, tenants, throughputs
from eunomia.cli.service_forecasts import forecast_app, when
from eunomia.cli.service_jobs import cancel, hold, job, jobs, logs, release, submit, why
from eunomia.cli.service_store import store_app


@command
def serve(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site: see docs/service.md.")],
    check: Annotated[bool, flag("Check the site and print the plan; start nothing.", "--check")] = False,
    stop_jobs: Annotated[
        bool, flag("At the end, stop the jobs with a checkpoint; they go on at the next start.", "--stop-jobs")
    ] = False,
) -> None:
    """Run the scheduler of a cluster.

    Takes jobs from many users over HTTP, decides with the site's policy, and runs them on this machine. Whatever ends
    it, no accepted job is lost. For example: eunomia serve site.toml
    """
    from eunomia.service.server import check_extra
    from eunomia.service.server import serve as run
    from eunomia.service.site import load_site, plan

    wanted = load_site(site)
    if check:
        check_extra()
        output.show({"plan": plan(wanted)}, "\n".join(plan(wanted)))
        return
    if isinstance(wanted.place, Path) and not wanted.place.exists():  # a service that has run goes on
        check_policies_of_files([wanted.setup.scenario])
    code = run(wanted, announce=lambda line: print(line, flush=True), stop_jobs=stop_jobs)
    if code:
        raise typer.Exit(code)


def add_service_commands(app: typer.Typer) -> None:
    """Add the commands of the service."""
    for one in (serve, submit, jobs, job, cancel, hold, release, logs, why, when, cluster, nodes, drain, resume,
                    tenants, summary, throughputs, login):  # fmt: skip
        app.command()(one)
    app.command("queue", help="List jobs, the newest first: another name of `jobs`. For example: eunomia queue")(jobs)
    app.add_typer(forecast_app, name="forecast")
    app.add_typer(node_app, name="node")
    app.add_typer(token_app, name="token")
    app.add_typer(site_app, name="site")
    app.add_typer(store_app, name="store")
