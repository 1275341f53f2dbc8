"""Words about nodes, for the command line and the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def describe_taken(node: dict[str, Any]) -> list[str]:
    """Return which accelerators of a node are taken, as `GET /v1/nodes` has it: each with its user, and since when."""
    kept = node.get("quarantine", {})
    more = {seat: f" since {one['since']}: {one['why']}" for seat, one in kept.items()}
    return [f"{seat}: {holder}{more.get(seat, '')}" for seat, holder in node["taken"].items()]


def describe_drain(one: dict[str, Any], local: Callable[[str], str]) -> str:
    """Return the state of what is drained: `draining: 2 jobs left, until 18:00`; `local` shows a moment."""
    if one["state"] != "draining":
        return str(one["state"])
    count = one["jobs_left"]
    until = f", until {local(one['until'])}" if one["until"] else ""
    return f"draining: {count} job{'s' * (count != 1)} left{until}"


def describe_state(node: dict[str, Any], local: Callable[[str], str]) -> str:
    """Return the state of a node."""
    return describe_drain(node["drain"], local) if node["state"] == "draining" else str(node["state"])


def describe_node(node: dict[str, Any], local: Callable[[str], str]) -> list[str]:
    """Return why a node, or some of its accelerators, are not given away now or later."""
    texts = [node["reason"]] if node["reason"] else []
    for place, one in node["drained_accelerators"].items():
        texts.append(f"{node['name']}/{place} {describe_drain(one, local)} ({one['reason']})")
    if span := node["maintenance"]:
        texts.append(f"maintenance {span['id']} from {local(span['from'])} to {local(span['to'])}: {span['reason']}")
    idle = [f"{seat}: held, but under 5 % busy for 30 min" for seat in node["idle"]]
    return [*texts, *describe_taken(node), *idle]
