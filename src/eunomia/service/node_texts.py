"""Words about nodes, for the command line and the pages."""

from __future__ import annotations

from typing import Any


def describe_taken(node: dict[str, Any]) -> list[str]:
    """Return which accelerators of a node are taken, as `GET /v1/nodes` has it: each with its user, and since when."""
    kept = node.get("quarantine", {})
    more = {seat: f" since {one['since']}: {one['why']}" for seat, one in kept.items()}
    return [f"{seat}: {holder}{more.get(seat, '')}" for seat, holder in node["taken"].items()]
