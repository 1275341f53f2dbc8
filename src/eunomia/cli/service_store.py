"""Commands about the store of a service: `store check | backup | restore | export | orphans`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.errors import FAILED, handle_errors
from eunomia.cli.options import JsonOption

store_app = typer.Typer(help="Check, back up and restore the store.", no_args_is_help=True, rich_markup_mode=None)
StateOption = Annotated[
    str, typer.Option("--state", metavar="DIR", help="The state folder of the service, or postgresql://user@host/name.")
]


def _place(state: str) -> Path | str:
    return state if state.startswith(("postgresql://", "postgres://")) else Path(state)


@store_app.command("check")
def store_check(state: StateOption = "state", as_json: JsonOption = False) -> None:
    """Check the store of a service that is stopped: its file, its seats, its audit log.

    For example: eunomia store check --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store import open_store

        store = open_store(_place(state), Path(), must_exist=True)
        try:
            found = store.problems()
        finally:
            store.close()
        if as_json:
            print(json.dumps({"problems": found}))
        else:
            print("\n".join(found) or "the store is sound")
        if found:
            raise typer.Exit(FAILED)


@store_app.command("backup")
def store_backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; it must not exist.")],
    state: StateOption = "state",
    as_json: JsonOption = False,
) -> None:
    """Copy the store into one file, also while the service runs.

    For example: eunomia store backup /backup/monday.db --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store.backup import back_up

        back_up(_place(state), target)
        print(json.dumps({"backup": str(target)}) if as_json else f"written: {target}")


@store_app.command("restore")
def store_restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `store backup` wrote.")],
    state: StateOption = "state",
    as_json: JsonOption = False,
) -> None:
    """Put a backup in place of the store; the old file is kept beside it.

    For example: eunomia store restore /backup/monday.db --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store.backup import put_back, put_back_database

        place = _place(state)
        kept = put_back(source, place) if isinstance(place, Path) else put_back_database(source, place)
        text = f"restored from {source}" + (f"; the old store is {kept}" if kept else "")
        print(json.dumps({"restored": str(state), "kept": str(kept) if kept else None}) if as_json else text)


@store_app.command("export")
def store_export(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site of a service that is stopped.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A record.jsonl.gz to write; it must not exist.")],
    as_json: JsonOption = False,
) -> None:
    """Write what the service decided as a record, for replay and explain.

    For example: eunomia store export site.toml day.jsonl.gz, and then eunomia replay day.jsonl.gz
    """
    with handle_errors(as_json):
        from eunomia.service.site import load_site
        from eunomia.service.store.backup import export

        count = export(load_site(site), target)
        print(json.dumps({"moments": count}) if as_json else f"{count:,} moments written to {target}")


@store_app.command("orphans")
def store_orphans(
    state: StateOption = "state",
    jobs: Annotated[
        Path | None, typer.Option("--jobs", metavar="DIR", help="The jobs' folder. Default: jobs in the state folder.")
    ] = None,
    end: Annotated[list[str] | None, typer.Option("--end", metavar="JOB", help="Stop this one; repeatable.")] = None,
    grace_s: Annotated[float, typer.Option("--grace", metavar="SECONDS", help="Time to save.", min=0.0)] = 10.0,
    as_json: JsonOption = False,
) -> None:
    """List gangs of this machine that the store does not know to run, as after a backup was put back; or stop them.

    For example: eunomia store orphans --state state --end 12-k3f9a
    """
    with handle_errors(as_json):
        from eunomia.service.orphans import end_orphans, orphans

        place = _place(state)
        folder = jobs or (place / "jobs" if isinstance(place, Path) else Path("jobs"))
        found = orphans(place, folder)
        stopped = end_orphans(found, end or [], grace_s, folder)
        if as_json:
            rows = [
                {"job": one.job_id, "start": one.epoch, "seats": [*one.seats], "process": one.supervisor[0],
                 "stopped": one.job_id in stopped} for one in found
            ]  # fmt: skip
            print(json.dumps({"orphans": rows}))
            return
        for one in found:
            seats = ", ".join(map(str, one.seats)) or "unknown"
            print(f"{one.job_id}  start {one.epoch}, seats {seats}" + "; is being stopped" * (one.job_id in stopped))
        if not found:
            print("every gang that runs here is known to the store")
