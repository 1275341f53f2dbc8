"""What a person sees of a real run while it runs: a live table on a terminal, elsewhere a line for each change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from eunomia.runs.job_states import JobState, JobStates, Watcher

SHOWN = 30  # jobs in the table
FRESH = ("running", "waiting", "paused", "failed", "rejected", "cancelled", "finished")  # in this order
STYLES = {"running": "green", "failed": "red", "rejected": "red", "finished": "dim", "cancelled": "dim"}
PER_S = 4  # times a second that the table is drawn


@contextmanager
def watching() -> Iterator[Watcher]:
    """Show a run on stderr. What cannot be shown, as on a terminal that was closed, does not disturb the run."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    table = LiveTable()
    try:
        yield table
    finally:
        table.close()


class Lines:
    """A line for each change."""

    def __init__(self) -> None:
        self._works = True

    def begin(self, states: JobStates) -> None:
        """Nothing is shown before the first change."""

    def changed(self, at: float, state: JobState) -> None:
        """Print the line of a change."""
        if self._works:
            self._works = say(f"{at:10.1f} s  {state.job.job_id}  {state.described()}")


class LiveTable:
    """A table of the jobs that is drawn anew a few times a second."""

    def __init__(self) -> None:
        self._states: JobStates | None = None
        self._live = Live(console=Console(stderr=True), refresh_per_second=PER_S, get_renderable=self._drawn)
        self._open = False

    def begin(self, states: JobStates) -> None:
        """Show the table."""
        self._states = states
        try:
            self._live.start()
            self._open = True
        except OSError:
            self._states = None

    def changed(self, at: float, state: JobState) -> None:
        """The table shows it when it is drawn next."""

    def close(self) -> None:
        """Leave the last table on the screen."""
        if self._open:
            self._open = False
            try:
                self._live.stop()
            except OSError:
                return

    def _drawn(self) -> Group:
        if self._states is None:
            return Group()
        return drawn(self._states)


def drawn(states: JobStates) -> Group:
    """Return the table of the jobs as they are, those that run first."""
    known = sorted(states.by_id.copy().values(), key=lambda one: FRESH.index(one.state))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, justify in (
        ("job", "left"),
        ("state", "left"),
        ("seats", "left"),
        ("epoch", "right"),
        ("steps", "right"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for one in known[:SHOWN]:
        state = one.state if one.state == "running" else one.described()
        steps = f"{one.steps:g} / {one.job.total_steps:g}"
        style = STYLES.get(one.state, "")
        cells = (one.job.job_id, state, one.seats, str(one.epoch or ""), steps)
        table.add_row(*(Text(printable(cell), style=style) for cell in cells))
    more = f"; {len(known) - SHOWN} jobs more" if len(known) > SHOWN else ""
    return Group(table, Text(f"{states.ended} of {states.total} jobs ended, {states.at:.1f} s{more}", style="bold"))


def say(line: str) -> bool:
    """Print a line to stderr; say whether that was possible."""
    try:
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # closed, or the reader of the pipe has gone
        return False
    return True


def printable(text: str) -> str:
    """Return text without what a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
