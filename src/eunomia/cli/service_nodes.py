"""Commands about nodes: `nodes`, `drain`, `resume`, `maintenance`, `node`."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from eunomia.cli.options import argument, flag, group, option
from eunomia.cli.service_session import ServiceSession, WatchOption, client_command, show_lines, show_table
from eunomia.inputs.clock_times import RULE, moment_of
from eunomia.inputs.problems import refused
from eunomia.service.node_texts import describe_node, describe_state

node_app = group("Change the nodes of the cluster.")
LOOK_S = 1.0  # between two looks whether a node is empty
NodeArgument = Annotated[str, argument("NODE", "Name of the node, as `eunomia nodes` lists it.")]
PlaceArgument = Annotated[
    str, argument("NODE[/N]", "Name of the node, as `eunomia nodes` lists it; /N: its accelerator N, counted from 0.")
]
ReasonOption = Annotated[str, option("TEXT", "Why, for other users.")]


@client_command
def nodes(session: ServiceSession, watch: WatchOption = False) -> None:
    """List the nodes.

    For example: eunomia nodes
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (
                one["name"],
                one["type"],
                str(one["accelerators"]),
                str(one["free"]),
                describe_state(one, _local),
                " ".join(one["jobs"]),
                "; ".join(describe_node(one, _local)),
            )
            for one in found["nodes"]
        ]
        show_table(("node", "type", "accelerators", "free", "state", "jobs", "reason"), rows, "no nodes")

    session.watch(lambda: session.client.get("/v1/nodes"), show, watch)


def _local(text: str) -> str:
    """Return a moment of an answer in the time zone of this machine, without the date where it is today."""
    at, now = datetime.fromisoformat(text).astimezone(), datetime.now().astimezone()
    return at.strftime("%H:%M" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def _moment(text: str, name: str) -> str:
    """Return what users type for a moment as the service takes it. Raises InvalidInput for other texts."""
    found = moment_of(text, datetime.now().astimezone())
    if found is None:
        raise refused("command line", name, text, f"is {RULE}", f"give such a text: {name} 18:00")
    return found.isoformat()


@client_command
def drain(
    session: ServiceSession,
    node: PlaceArgument,
    now: Annotated[bool, flag("Stop what runs there at once, after it saved.", "--now")] = False,
    by: Annotated[
        str, option("TIME", "Stop what is left then, after it saved: 18:00, 2026-12-01T08:00, or 90m from now.")
    ] = "",
    reason: ReasonOption = "",
    dry_run: Annotated[bool, flag("Only show who runs there, and what each would lose.", "--dry-run")] = False,
    wait: Annotated[bool, flag("Return when no job is left there.", "--wait")] = False,
) -> None:
    """Take a node, or one accelerator of it, out of service: no job starts there, and those that run there may end.

    For example: eunomia drain v100-0/3 --by 18:00 --reason "new fans" --dry-run
    """
    if now and by:
        raise refused("command line", "--by", by, "cannot be given with --now", "give one of the two")
    when = "now" if now else _moment(by, "--by") if by else "jobs_end"
    found = _change_node(session, node, {"action": "drain", "reason": reason, "when": when}, dry_run)
    if wait and not dry_run:
        _wait_until_empty(session, node)
    session.show(found, lambda: show_lines(*_drained(node, found, dry_run, when, wait)))


def _drained(node: str, found: dict[str, Any], dry_run: bool, when: str, waited: bool) -> list[str]:
    """Return in words what a drain has done, or would do."""
    if dry_run:
        lines = [_previewed(one, when) for one in found["jobs"]] or ["no job runs there"]
        return [f"{node}: nothing has changed", *lines, *_stuck(found)]
    if waited:
        return [f"{node}: drained, no job is left there"]
    lines = [f"{node}: {found['state']}"]
    if found["moved"]:
        lines.append(f"they save and stop: {', '.join(found['moved'])}")
    if found["jobs_left"]:
        until = "until they end" if when == "jobs_end" else f"until {_local(when)}" if when != "now" else "for now"
        lines.append(f"they run on {until}: {', '.join(found['jobs_left'])}")
    return lines


def _previewed(one: dict[str, Any], when: str) -> str:
    """Return a line about a job that runs on what is to be drained."""
    from eunomia.verdict.number_format import duration

    saves = "can save" if one["can_save"] else "cannot save"
    ends = f"is believed to end at {_local(one['believed_end'])}"
    if not one["stopped"]:
        fate = "it would run until it ends" if when == "jobs_end" else "it would have ended by then"
    elif one["can_save"]:
        fate = "it would save, stop and go on elsewhere"
    else:
        fate = f"it would lose {duration(one['lost_s'])} of work and start over"
    runs = f"has run for {duration(one['running_s'])}"
    return f"  {one['id']} of {one['user']}: {runs}, {saves}, {ends}: {fate}"


def _stuck(found: dict[str, Any]) -> list[str]:
    stuck = found["would_not_fit"]
    return [f"could run nowhere then: {', '.join(stuck)}"] if stuck else []


def _wait_until_empty(session: ServiceSession, node: str) -> None:
    """Wait until no process is left on what is drained, or it is back in service."""
    name, _, place = node.partition("/")
    while True:
        listed = {one["name"]: one for one in session.client.get("/v1/nodes")["nodes"]}
        one = listed.get(name, {})
        state = one["drained_accelerators"].get(place) if place else one.get("drain")
        if state is None or state["state"] != "draining":
            return
        time.sleep(LOOK_S)


@client_command
def resume(session: ServiceSession, node: PlaceArgument) -> None:
    """Put a drained or removed node, or an accelerator of it, back into service.

    For example: eunomia resume v100-0
    """
    found = _change_node(session, node, {"action": "resume"}, False)
    session.show(found, lambda: show_lines(f"{node}: {found['state']}"))


@node_app.command("remove")
@client_command
def node_remove(
    session: ServiceSession,
    node: NodeArgument,
    reason: ReasonOption = "",
    dry_run: Annotated[
        bool, flag("Only list the jobs that would move, and those that could run nowhere.", "--dry-run")
    ] = False,
) -> None:
    """Remove a node that is gone for good: its jobs save and go on elsewhere, and it counts no more.

    For example: eunomia node remove v100-0 --reason "sold" --dry-run
    """
    found = _change_node(session, node, {"action": "remove", "reason": reason}, dry_run)
    if dry_run:
        lines = [f"{node}: would move {', '.join(found['would_move']) or 'no job'}", *_stuck(found)]
    else:
        lines = [f"{node}: {found['state']}; moved {', '.join(found['moved']) or 'no job'}"]
    session.show(found, lambda: show_lines("; ".join(lines)))


def _change_node(session: ServiceSession, node: str, body: dict[str, Any], dry_run: bool) -> dict[str, Any]:
    """Change a node, or its accelerator where the name ends with /N."""
    name, slash, place = node.partition("/")
    if slash:
        if not (place.isascii() and place.isdigit() and len(place) < 10):
            rule = "ends with the number of an accelerator of the node, counted from 0"
            raise refused("command line", "NODE/N", node, rule, f"type {name}/0 for the first one, or {name}")
        body = {**body, "accelerator": int(place)}
    path = f"/v1/nodes/{quote(name, safe='')}" + ("?dry_run=true" if dry_run else "")
    found: dict[str, Any] = session.client.send("PUT", path, body)
    return found


@client_command
def maintenance(
    session: ServiceSession,
    nodes: Annotated[list[str] | None, argument("NODE...", "Names of nodes, as `eunomia nodes` lists them.")] = None,
    begins: Annotated[str, option("TIME", "When it begins: 18:00, 2026-12-01T08:00, or 90m from now.", "--from")] = "",
    length: Annotated[str, option("SPAN", "How long it lasts: 90m, 2h, 1-12 (days-hours).", "--for")] = "",
    reason: ReasonOption = "",
    listed: Annotated[bool, flag("List what is planned and what has begun.", "--list")] = False,
    cancel: Annotated[int, option("ID", "Cancel it; nodes that it has drained come back.")] = 0,
) -> None:
    """Plan maintenance: no job runs into it, what is left at its start saves and stops, and the nodes come back.

    For example: eunomia maintenance v100-0 v100-1 --from 18:00 --for 2h --reason "new fans"
    """
    if cancel:
        found = session.client.send("DELETE", f"/v1/maintenance/{cancel}")
        session.show(found, lambda: show_lines(f"maintenance {found['id']}: cancelled"))
    elif listed or not (nodes or begins or length):
        every = session.client.get("/v1/maintenance")
        session.show(every, lambda: _show_spans(every["maintenance"]))
    else:
        for name, value in (("NODE", nodes), ("--from", begins), ("--for", length)):
            if not value:
                fix = "type: eunomia maintenance NODE… --from 18:00 --for 2h"
                raise refused("command line", name, None, "is needed to plan maintenance", fix)
        body = {"nodes": nodes, "from": _moment(begins, "--from"), "for": length, "reason": reason}
        found = session.client.send("POST", "/v1/maintenance", body)
        text = f"maintenance {found['id']}: {', '.join(found['nodes'])} from {_local(found['from'])} to"
        session.show(found, lambda: show_lines(f"{text} {_local(found['to'])}"))


def _show_spans(spans: list[dict[str, Any]]) -> None:
    rows = [
        (str(one["id"]), " ".join(one["nodes"]), _local(one["from"]), _local(one["to"]), one["state"], one["reason"])
        for one in spans
    ]
    show_table(("id", "nodes", "from", "to", "state", "reason"), rows, "no maintenance is planned")
