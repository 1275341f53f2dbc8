"""Words about nodes, for the command line and the pages."""

from __future__ import annotations

from typing import Any


def describe_taken(node: dict[str, Any]) -> list[str]:
    """Return why accelerators of a node, as `GET /v1/nodes` has it, are not given away: by whom they are used, since when."""
    kept = node.get("quarantine", {})
    more = {seat: f" since {one['since']}: {one['why']}" for seat, one in kept.items()}
    return [f"{seat}: {holder}{more.get(seat, '')}" for seat, holder in node["taken"].items()]
