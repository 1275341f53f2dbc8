"""The command `site apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.service_session import ServiceSession, client_command, show_lines

site_app = typer.Typer(help="Change the site of a running service.", no_args_is_help=True, rich_markup_mode=None)


@site_app.command("apply")
@client_command
def site_apply(
    session: ServiceSession,
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file of the running service.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")] = False,
) -> None:
    """Let a running service take its changed site file.

    Tenants and limits change at once. A changed policy or cluster lets running jobs save and go on. What may not change
    while the service runs is refused by name. For example: eunomia site apply site.toml --dry-run
    """
    path = "/v1/site" + ("?dry_run=true" if dry_run else "")
    found = session.client.send("PUT", path, {"file": str(site.resolve())})
    verb = "would change" if dry_run else "changed"
    session.show(found, lambda: show_lines(*(f"{verb}  {line}" for line in found["changes"]), str(found["effect"])))
