"""The commands in groups, as `eunomia --help` shows them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

GROUPS = {
    "Laboratory: replay jobs, compare policies": (
        "compare", "simulate", "sweep", "figure", "explain", "replay", "run", "world",
    ),
    "Policies": ("policies", "solve", "check", "train", "tune"),
    "Data: traces, histories, throughputs": (
        "import", "trace", "data", "failures", "whatif", "plan", "estimate", "calibrate", "schema",
    ),
    "Your jobs": (
        "submit", "resubmit", "jobs", "queue", "job", "why", "when", "logs", "cancel", "hold", "release", "limits",
        "login",
    ),
    "Cluster": ("cluster", "nodes", "tenants", "summary", "usage", "throughputs", "forecast"),
    "Operator": ("serve", "site", "drain", "resume", "maintenance", "node", "notify", "token", "audit", "store"),
}  # fmt: skip
OTHER = "Added by other packages"
LONGEST = 200  # characters of a first sentence, which is wrapped


class GroupedCommands(TyperGroup):
    """Commands whose help lists them in groups; those that no group names come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group with its commands and the first sentence of each one's help."""
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        named = {name for group in GROUPS.values() for name in group}
        groups = GROUPS | {OTHER: tuple(name for name in names if name not in named)}
        for title, members in groups.items():
            rows = [(name, self.commands[name].get_short_help_str(LONGEST)) for name in members if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=30)
