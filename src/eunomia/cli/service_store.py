"""Commands about the store of a service: `store check | backup | restore | export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED
from eunomia.cli.options import argument, option

store_app = typer.Typer(help="Check, back up and restore the store.", no_args_is_help=True, rich_markup_mode=None)
StateOption = Annotated[
    str, option("DIR", "The state folder of the service, or postgresql://user@host/name.", "--state")
]


def _place(state: str) -> Path | str:
    return state if state.startswith(("postgresql://", "postgres://")) else Path(state)


@store_app.command("check")
@command
def store_check(output: Output, state: StateOption = "state") -> None:
    """Check the store of a service that is stopped: its file, its seats, its audit log.

    For example: eunomia store check --state state
    """
    from eunomia.service.store import open_store

    store = open_store(_place(state), Path(), must_exist=True)
    try:
        found = store.problems()
    finally:
        store.close()
    output.show({"problems": found}, "\n".join(found) or "the store is sound")
    if found:
        raise typer.Exit(FAILED)


@store_app.command("backup")
@command
def store_backup(
    output: Output,
    target: Annotated[Path, argument("FILE", "File to write; it must not exist.")],
    state: StateOption = "state",
) -> None:
    """Copy the store into one file, also while the service runs.

    For example: eunomia store backup /backup/monday.db --state state
    """
    from eunomia.service.store.backup import back_up

    back_up(_place(state), target)
    output.show({"backup": str(target)}, f"written: {target}")


@store_app.command("restore")
@command
def store_restore(
    output: Output,
    source: Annotated[Path, argument("FILE", "A file that `store backup` wrote.")],
    state: StateOption = "state",
) -> None:
    """Put a backup in place of the store; the old file is kept beside it.

    For example: eunomia store restore /backup/monday.db --state state
    """
    from eunomia.service.store.backup import put_back, put_back_database

    place = _place(state)
    kept = put_back(source, place) if isinstance(place, Path) else put_back_database(source, place)
    text = f"restored from {source}" + (f"; the old store is {kept}" if kept else "")
    output.show({"restored": str(state), "kept": str(kept) if kept else None}, text)


@store_app.command("export")
@command
def store_export(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site of a service that is stopped.")],
    target: Annotated[Path, argument("FILE", "A record.jsonl.gz to write; it must not exist.")],
) -> None:
    """Write what the service decided as a record, for replay and explain.

    For example: eunomia store export site.toml day.jsonl.gz, and then eunomia replay day.jsonl.gz
    """
    from eunomia.service.site import load_site
    from eunomia.service.store.backup import export

    count = export(load_site(site), target)
    output.show({"moments": count}, f"{count:,} moments written to {target}")
