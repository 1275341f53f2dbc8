"""`sinfo` and `sacctmgr`: partitions are the types of accelerators, and `main` is all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eunomia.model.spelling_suggestions import nearest
from eunomia.slurm_commands.command_line import Given, WrongUsage, typed
from eunomia.slurm_commands.queue_client import QueueClient
from eunomia.slurm_commands.submission import DEFAULT_PARTITION, from_environment
from eunomia.slurm_commands.tables import SACCTMGR, SINFO
from eunomia.slurm_commands.text_tables import TextColumn, by_letters, by_names, lines_of, ruled

SHORT = {"idle": "idle", "mixed": "mix", "allocated": "alloc", "drained": "drain", "draining": "drng", "down": "down"}
FORM = "%9P %.5a %.10l %.6D %.6t %N"
BY_NODE = "%{}N %.5D %.9P %6t"  # as wide as the longest name
LONG = "%9P %.5a %.10l %.6D %.11T %N"
SUMMARY = "%9P %.5a %.10l %.16F %N"
REASONS = "%20E %9u %19H %N"


def node_state(node: dict[str, Any]) -> str:
    """Return the state of a node in Slurm's words."""
    if node["state"] == "removed":
        return "down"
    if node["state"] != "up":
        return "draining" if node["jobs"] else "drained"
    free, size = node["free"], node["accelerators"]
    return "idle" if free == size else "allocated" if not free else "mixed"


def node_record(node: dict[str, Any]) -> list[list[str]]:
    """Return the lines of `scontrol show node`."""
    used = node["accelerators"] - node["free"]
    lines = [
        [f"NodeName={node['name']}", "Arch=unknown", "CoresPerSocket=1"],
        [f"AvailableFeatures={node['type']}", f"ActiveFeatures={node['type']}"],
        [f"Gres=gpu:{node['type']}:{node['accelerators']}", f"GresUsed=gpu:{node['type']}:{used}"],
        [f"State={node_state(node).upper()}", f"Partitions={DEFAULT_PARTITION},{node['type']}"],
        [f"CfgTRES=gres/gpu={node['accelerators']},gres/gpu:{node['type']}={node['accelerators']}"],
        [f"AllocTRES=gres/gpu={used}"],
    ]
    return [*lines, [f"Reason={node['reason']}"]] if node["reason"] else lines


def partitions(nodes: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the nodes of each partition: the default one, marked with *, and one for each type."""
    found: dict[str, list[dict[str, Any]]] = {f"{DEFAULT_PARTITION}*": list(nodes)}
    for node in nodes:
        found.setdefault(node["type"], []).append(node)
    return found


@dataclass(frozen=True, slots=True)
class ShownNodes:
    """Nodes of a partition that are shown on one line."""

    partition: str
    nodes: tuple[dict[str, Any], ...]

    @property
    def state(self) -> str:
        """The state of the first; they are alike."""
        return node_state(self.nodes[0]) if self.nodes else "n/a"

    def total(self, *states: str) -> int:
        """How many are in one of these states."""
        return sum(node_state(one) in states for one in self.nodes)


def _names(group: ShownNodes) -> str:
    return ",".join(one["name"] for one in group.nodes)


def _gres(group: ShownNodes) -> str:
    return ",".join(dict.fromkeys(f"gpu:{one['type']}:{one['accelerators']}" for one in group.nodes)) or "(null)"


def _gres_used(group: ShownNodes) -> str:
    return ",".join(f"gpu:{one['type']}:{one['accelerators'] - one['free']}" for one in group.nodes)


def _counts(group: ShownNodes) -> str:
    used, idle = group.total("allocated", "mixed"), group.total("idle")
    return f"{used}/{idle}/{len(group.nodes) - used - idle}/{len(group.nodes)}"


def _reason(group: ShownNodes) -> str:
    return next((one["reason"] for one in group.nodes if one["reason"]), "none")


Field = Callable[[ShownNodes], object]
LETTERS: dict[str, tuple[str, Field]] = {
    "P": ("PARTITION", lambda it: it.partition),
    "R": ("PARTITION", lambda it: it.partition.rstrip("*")),
    "a": ("AVAIL", lambda it: "up"),
    "l": ("TIMELIMIT", lambda it: "infinite"),
    "L": ("DEFAULTTIME", lambda it: "n/a"),
    "D": ("NODES", lambda it: len(it.nodes)),
    "F": ("NODES(A/I/O/T)", _counts),
    "A": ("NODES(A/I)", lambda it: "/".join(_counts(it).split("/")[:2])),
    "t": ("STATE", lambda it: SHORT.get(it.state, it.state)),
    "T": ("STATE", lambda it: it.state),
    "N": ("NODELIST", _names),
    "n": ("HOSTNAMES", _names),
    "G": ("GRES", _gres),
    "f": ("AVAIL_FEATURES", lambda it: ",".join(dict.fromkeys(one["type"] for one in it.nodes))),
    "b": ("ACTIVE_FEATURES", lambda it: ",".join(dict.fromkeys(one["type"] for one in it.nodes))),
    "E": ("REASON", _reason),
    "u": ("USER", lambda it: "Unknown"),
    "H": ("TIMESTAMP", lambda it: "Unknown"),
    "c": ("CPUS", lambda it: "n/a"),
    "m": ("MEMORY", lambda it: "n/a"),
    "C": ("CPUS(A/I/O/T)", lambda it: "n/a"),
    "s": ("JOB_SIZE", lambda it: "1-infinite"),
    "g": ("GROUPS", lambda it: "all"),
    "h": ("OVERSUBSCRIBE", lambda it: "NO"),
}
FIELDS: dict[str, Field] = {name: LETTERS[letter][1] for name, letter in {
    "partition": "P", "partitionname": "R", "available": "a", "time": "l", "nodes": "D", "nodeaiot": "F", "nodeai": "A",
    "statecompact": "t", "state": "T", "statelong": "T", "nodelist": "N", "nodehost": "n", "gres": "G", "features": "f",
    "features_act": "b", "reason": "E", "cpus": "c", "memory": "m", "cpusstate": "C"}.items()
} | {"gresused": _gres_used}  # fmt: skip


def sinfo(words: Sequence[str]) -> int:
    """Show partitions and nodes."""
    given = typed("sinfo", "[OPTIONS]", SINFO, words)
    from_environment(given, SINFO, dict(os.environ), "SINFO")
    given.say_ignored()
    nodes = [one for one in QueueClient().nodes if _is_shown(one, given)]
    wanted = given.listed("partition")
    if "json" in given:
        print(json.dumps({"sinfo": nodes}, indent=1))
        return 0
    groups = [
        group for name, members in partitions(nodes).items() if not wanted or name.rstrip("*") in wanted
        for group in _groups(name, members, given)
    ]  # fmt: skip
    if "list-reasons" in given:
        groups = [group for group in groups if _reason(group) != "none" and group.partition[-1] == "*"]
    if "Format" in given and "format" not in given:
        columns, behind = by_names(filter(None, given.get("Format").split(",")), FIELDS, ":", 20, upper=True), ""
    else:
        short = {"list-reasons": REASONS, "summarize": SUMMARY, "Node": BY_NODE, "long": LONG}
        form = given.get("format") or next((form for name, form in short.items() if name in given), FORM)
        longest = max((len(one["name"]) for one in nodes), default=0)
        columns, behind = by_letters(form.replace("{}", str(max(longest, 10))), LETTERS)
    for line in lines_of(columns, groups, header="noheader" not in given, after=behind):
        print(line)
    return 0


def _is_shown(node: dict[str, Any], given: Given) -> bool:
    names, states = given.listed("nodes"), [one.lower().rstrip("*") for one in given.listed("states")]
    state = node_state(node)
    return (not names or node["name"] in names) and (
        not states or "all" in states or state in states or SHORT.get(state) in states
    )


def _groups(partition: str, nodes: Sequence[dict[str, Any]], given: Given) -> list[ShownNodes]:
    """Return what is shown of a partition: each node, all together, or those of each state."""
    if "Node" in given:
        return [ShownNodes(partition, (one,)) for one in nodes]
    if "summarize" in given:
        return [ShownNodes(partition, tuple(nodes))]
    by_state: dict[Any, list[dict[str, Any]]] = {}
    asks_gres = "%G" in given.get("format") or "gres" in given.get("Format").lower()
    for one in nodes:
        by_state.setdefault((node_state(one), one["type"] if asks_gres else ""), []).append(one)
    return [ShownNodes(partition, tuple(members)) for members in by_state.values()]


# ---- sacctmgr --------------------------------------------------------------------------------------------------------

_ASSOCIATION: dict[str, Callable[[dict[str, Any]], object]] = {
    "cluster": lambda one: "eunomia",
    "account": lambda one: one.get("tenant", ""),
    "user": lambda one: one.get("user", ""),
    "partition": lambda one: "",
    "share": lambda one: f"{one.get('weight', 1):g}",
    "fairshare": lambda one: f"{one.get('weight', 1):g}",
    "qos": lambda one: "normal",
    "defaultqos": lambda one: "normal",
    "defaultaccount": lambda one: one.get("tenant", ""),
    "name": lambda one: one.get("name", ""),
    "grptres": lambda one: f"gres/gpu={one['quota']:g}" if one.get("quota") is not None else "",
    "maxwall": lambda one: "",
    "priority": lambda one: 0,
    "adminlevel": lambda one: one.get("admin", "None"),
    "description": lambda one: one.get("name", ""),
    "organization": lambda one: one.get("name", ""),
    "controlhost": lambda one: one.get("host", ""),
}
_ENTITIES = {
    "associations": "Cluster,Account,User,Partition,Share,GrpTRES,QOS",
    "users": "User,DefaultAccount,AdminLevel",
    "accounts": "Account,Description,Organization",
    "qos": "Name,Priority,MaxWall",
    "clusters": "Cluster,ControlHost",
}


def sacctmgr(words: Sequence[str]) -> int:
    """Show tenants and users; what changes them is `eunomia`."""
    given = typed("sacctmgr", "show assoc|user|account|qos|cluster", SACCTMGR, words)
    given.say_ignored()
    verb = given.words[0].lower() if given.words else ""
    if verb not in ("show", "list"):
        raise WrongUsage(f"{verb or 'no command'}: only show and list are here; tenants are changed in the site file, "
                         "users get tokens by eunomia token create")  # fmt: skip
    kind = given.words[1].lower() if len(given.words) > 1 else ""
    entity = next((one for one in _ENTITIES if len(kind) > 2 and one.startswith(kind)), "")
    if not entity:
        raise WrongUsage(f"no such entity: {kind or 'none'}; {nearest(kind, _ENTITIES)}")
    pairs = dict(word.lower().split("=", 1) for word in given.words[2:] if "=" in word)
    names = [one for one in pairs.get("format", _ENTITIES[entity]).split(",") if one]
    titles = {name.lower(): name for fields in _ENTITIES.values() for name in fields.split(",")}
    columns = [
        TextColumn(titles.get(one.title.lower(), one.title), one.show, one.width, one.right)
        for one in by_names(names, _ASSOCIATION, "%", 10, upper=False)
    ]
    rows = [one for one in _rows(entity) if _is_asked(one, pairs)]
    parsable = "parsable2" if "parsable2" in given else "parsable" if "parsable" in given else ""
    for line in ruled(columns, rows, header="noheader" not in given, parsable=parsable, delimiter="|"):
        print(line)
    return 0


def _rows(entity: str) -> list[dict[str, Any]]:
    """Return what is shown of an entity: tenants of the service are accounts, and who has a token or jobs is a user."""
    if entity == "qos":
        return [{"name": "normal"}]
    client = QueueClient().client
    if entity == "clusters":
        return [{"host": client.address.url}]
    tenants = {one["tenant"]: one for one in client.get("/v1/tenants")["tenants"]}
    if entity == "accounts":
        return [{**one, "name": name} for name, one in tenants.items()]
    users = {(one["tenant"], one["user"]): one["role"] for one in client.get("/v1/tokens")["tokens"] if one["holds"]}
    jobs = {(one["tenant"], one["owner"]): "submitter" for one in client.get("/v1/jobs", limit=1000)["jobs"]}
    return [
        {**tenants.get(tenant, {}), "tenant": tenant, "user": user, "name": user,
         "admin": "Administrator" if role == "operator" else "None"}
        for (tenant, user), role in sorted({**jobs, **users}.items())
    ]  # fmt: skip


def _is_asked(row: dict[str, Any], pairs: dict[str, str]) -> bool:
    users = [one for key in ("user", "users", "name") for one in pairs.get(key, "").split(",") if one]
    accounts = [one for key in ("account", "accounts") for one in pairs.get(key, "").split(",") if one]
    return (not users or row.get("user", row.get("name", "")) in users) and (
        not accounts or row.get("tenant", "") in accounts
    )
