"""Shows a real run on stderr: a live table on a terminal, else a line for each change."""

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
STATES = ("running", "waiting", "paused", "failed", "rejected", "cancelled", "finished")  # in this order
STYLES = {"running": "green", "failed": "red", "rejected": "red", "finished": "dim", "cancelled": "dim"}
REFRESHES_PER_S = 4


@contextmanager
def watching() -> Iterator[Watcher]:
    """Yield a watcher that shows a run on stderr; errors of the terminal do not affect the run."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    table = LiveTable()
    try:
        yield table
    finally:
        table.close()


class Lines:
    """Prints a line for each change."""

    def __init__(self) -> None:
        self._works = True

    def begin(self, states: JobStates) -> None:
        """Show nothing before the first change."""

    def changed(self, at: float, state: JobState) -> None:
        """Print a change."""
        if self._works:
            self._works = say(f"{at:10.1f} s  {state.job.job_id}  {state.describe()}")


class LiveTable:
    """A table of the jobs, redrawn a few times a second."""

    def __init__(self) -> None:
        self._states: JobStates | None = None
        self._live = Live(console=Console(stderr=True), refresh_per_second=REFRESHES_PER_S, get_renderable=self._draw)
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
        """Do nothing: the next refresh shows the change."""

    def close(self) -> None:
        """Leave the last table on the screen."""
        if self._open:
            self._open = False
            try:
                self._live.stop()
            except OSError:
                return

    def _draw(self) -> Group:
        return Group() if self._states is None else draw_table(self._states)


def draw_table(states: JobStates) -> Group:
    """Return the table of the jobs, running jobs first."""
    jobs = sorted(states.by_id.copy().values(), key=lambda one: STATES.index(one.state))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("job", "state", "seats", "epoch", "steps"):
        table.add_column(name, justify="right" if name in ("epoch", "steps") else "left", overflow="fold")
    for one in jobs[:SHOWN]:
        state = one.state if one.state == "running" else one.describe()
        steps = f"{one.steps:g} / {one.job.total_steps:g}"
        style = STYLES.get(one.state, "")
        cells = (one.job.job_id, state, one.seats, str(one.epoch or ""), steps)
        table.add_row(*(Text(printable(cell), style=style) for cell in cells))
    more = f"; {len(jobs) - SHOWN} jobs more" if len(jobs) > SHOWN else ""
    return Group(table, Text(f"{states.ended} of {states.total} jobs ended, {states.at:.1f} s{more}", style="bold"))


def say(line: str) -> bool:
    """Print a line to stderr; return whether that succeeded."""
    try:
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # closed, or a broken pipe
        return False
    return True


def printable(text: str) -> str:
    """Return text without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
