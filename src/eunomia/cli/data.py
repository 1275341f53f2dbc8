"""`eunomia data`: lists public traces with their licences, and downloads verified copies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED
from eunomia.cli.options import argument, group, option

app = group("Find public traces, and download a verified copy of one. None comes with the project.")


@app.command("list", epilog="Example:  eunomia data list")
@command
def list_(output: Output) -> None:
    """List the public sources.

    With licence, size, how a copy is verified, and the format that reads it.
    """
    from eunomia.traces.sources import SOURCES

    width, lines = max(len(one.name) for one in SOURCES), []
    for one in SOURCES:
        size = "size not known" if one.size_bytes is None else _size(one.size_bytes)
        reads = f"format {one.format}" if one.format else "no reader"
        lines.append(f"{one.name:<{width}}  {one.about}")
        lines.append(f"{'':<{width}}  {one.paper}; {one.licence}; {size}; {one.checksum}; {reads}")
    output.show([one.as_dict() for one in SOURCES], *lines)


@app.command(epilog="Example:  eunomia data get philly")
@command
def get(
    output: Output,
    name: Annotated[str, argument("NAME", "A source of eunomia data list.")],
    out: Annotated[Path | None, option("DIR", "The new folder; without it data/NAME.")] = None,
    mirror: Annotated[
        str | None, option("URL", "Where the same paths are, OWNER/REPOSITORY/COMMIT/FILE, instead of GitHub.")
    ] = None,
) -> None:
    """Download a source, verified.

    The folder is created atomically. The same command resumes an interrupted download. A file that differs from what
    was published is refused, with the checksum that it should have and the one that it has.
    """
    from eunomia.traces.sources import source
    from eunomia.traces.sources.fetching import NotFetched, fetch

    wanted = source(name)
    try:
        folder = fetch(wanted, out or Path("data") / name, mirror=mirror, report=_log)
    except NotFetched as failure:
        if output.as_json:
            print(json.dumps(failure.as_dict()))
        else:
            print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    output.show(
        {"folder": str(folder), **wanted.as_dict()},
        f"{len(wanted.files)} file{'s' * (len(wanted.files) != 1)}, {wanted.checksum}: {folder}",
        f"licence: {wanted.licence}; cite {wanted.paper}",
    )


def _size(size_bytes: int) -> str:
    """Return a size for display."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= size:
            return f"{size_bytes / size:.3g} {unit}"
    return f"{size_bytes} bytes"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
