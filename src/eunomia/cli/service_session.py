"""What the commands of the service's clients share: the connection, its options and errors, tables, `--watch`."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.command import Output, with_options
from eunomia.cli.errors import FAILED, MISUSED, handle_errors
from eunomia.cli.options import JsonOption, flag, option

if TYPE_CHECKING:
    from eunomia.service.client import Client

UNREACHABLE = 3
MOST_CELL = 60  # characters
LEAST_CUT = 12  # characters that are left of a cell that is cut
WATCH_S = 2.0
UrlOption = Annotated[str | None, option("URL", "Where the service is.", "--url")]
TokenFileOption = Annotated[Path | None, option("FILE", "File that holds the token.", "--token-file")]
CaOption = Annotated[
    Path | None, option("FILE", "Certificates of the authority that the service's is from, in PEM.", "--ca")
]
WatchOption = Annotated[bool, flag("Show it again every 2 s until Ctrl-C.", "--watch")]


@dataclass(frozen=True, slots=True)
class ServiceSession(Output):
    """A client of the service, and how its answers are shown."""

    client: Client

    def watch(self, read: Callable[[], dict[str, Any]], show: Callable[[dict[str, Any]], None], watch: bool) -> None:
        """Read and show once, or with `watch` every 2 s."""
        while True:
            found = read()
            if watch and not self.as_json and sys.stdout.isatty():
                sys.stdout.write("\x1b[2J\x1b[H")
            self.show(found, functools.partial(show, found))
            if not watch:
                return
            time.sleep(WATCH_S)


def client_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with --url, --token-file, --ca and --json for a function that takes a session first."""

    def call(given: dict[str, Any], url: str | None, token_file: Path | None, ca: Path | None, as_json: bool) -> None:
        from eunomia.service.client import Client, find_service

        with service_errors(as_json):
            function(ServiceSession(as_json, Client(find_service(url, token_file, ca))), **given)

    connection = {"url": (UrlOption, None), "token_file": (TokenFileOption, None), "ca": (CaOption, None)}
    return with_options(function, call, **connection, as_json=(JsonOption, False))


@contextmanager
def service_errors(as_json: bool) -> Iterator[None]:
    """Print refusals of the service with every problem, and exit with 1; with 3 if it cannot be reached."""
    from eunomia.service.client import ServiceRefusal, Unreachable

    with handle_errors(as_json):
        try:
            yield
        except ServiceRefusal as error:
            if as_json:
                print(json.dumps({"error": {"count": len(error.problems), **error.problem}}))
            else:
                print(f"error: {error}", file=sys.stderr)
                for one in error.problems[:20]:
                    value = "" if one.get("value") is None else f" is {one['value']!r}:"
                    print(f"  {one['field']}{value} {one['rule']}; {one['fix']}", file=sys.stderr)
            raise typer.Exit(MISUSED if error.status in (400, 422) else FAILED) from None
        except Unreachable as error:
            if as_json:
                print(json.dumps({"error": {"count": 0, "title": str(error), "problems": []}}))
            else:
                print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(UNREACHABLE) from None


def show_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], empty: str, *, cut: str = "") -> None:
    """Print rows as a table, or `empty` without any; cells of the column `cut` are cut where the line ends."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        print(empty)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    shown, console = [[Text(printed(cell)) for cell in row] for row in rows], Console(highlight=False)
    if cut in heads:
        others = [place for place, head in enumerate(heads) if head != cut]
        used = sum(max(len(heads[place]), *(row[place].cell_len for row in shown)) + 2 for place in others)
        for row in shown:
            row[heads.index(cut)].truncate(max(console.width - used, LEAST_CUT), overflow="ellipsis")
    for row in shown:
        table.add_row(*row)
    console.print(table)


def show_lines(*lines: str) -> None:
    """Print lines without control characters."""
    for line in lines:
        print(printed(line))


def printed(text: str) -> str:
    """Return text without control characters, as names and reasons come from others."""
    from eunomia.cli.live import printable

    shown = printable(text)
    return shown if len(shown) <= 10 * MOST_CELL else f"{shown[: 10 * MOST_CELL]}…"


def ago(text: str) -> str:
    """Return how long ago a time was."""
    from datetime import UTC, datetime

    seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"
