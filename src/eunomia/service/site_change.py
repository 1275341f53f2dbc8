"""Applies a changed site to a running service: what may change at once, what makes running jobs move, what may not."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.tenants import Tenant
from eunomia.service.draining import NOW
from eunomia.service.interactive import renew_idle_timers
from eunomia.service.messages import ChangeNode, ChangeTenant, Principal, Request
from eunomia.service.out_of_service import NODE
from eunomia.service.site import Site, load_site
from eunomia.service.store import ServiceStore

if TYPE_CHECKING:
    from eunomia.service.writer import Writer

# Limits that are read anew at each use; the other keys of [service] hold until a restart.
LIMITS = (
    "history_days", "decision_days", "log_days", "logs_gib", "audit_days", "max_pending_per_tenant",
    "submit_per_second", "submit_mib_per_day", "solver_seconds", "drain_timeout_s", "restart_within_s",
    "tenants_by_group",
)  # fmt: skip
DECIDING = ("debug_lane", "accelerator_memory_gib")  # of [service], too: with another one jobs are scheduled anew
FIXED = ("service", "world", "notify")  # tables of which nothing else may change
ANEW = (
    "cluster",
    "throughputs",
    "belief",
    "policy",
    "mechanism",
    "overheads",
    "seed",
    "check",
)  # jobs are scheduled anew
_log = logging.getLogger(__name__)
KEPT = "overrides"  # in the store: what operators changed of the site file, and the digest of that file


@dataclass(frozen=True, slots=True)
class SiteChange:
    """What differs between two sites, a line each, and what it means."""

    lines: tuple[str, ...]
    refused: tuple[str, ...]  # keys that may not change while the service runs
    anew: bool  # jobs are scheduled anew: gangs that do not fit any more save, and go on
    cluster: bool
    tenants: tuple[str, ...]
    notes: tuple[str, ...] = ()  # on the new site, which were none on the old one

    @property
    def shown(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        moves = "running jobs run on where their accelerators stay; others save, stop, and go on under the new site"
        effect = moves if self.anew else "running jobs run on"
        notes = {"notes": list(self.notes)} if self.notes else {}
        return {"changes": list(self.lines), "effect": effect if self.lines else "nothing changes", **notes}


def difference(old: Site, new: Site) -> SiteChange:
    """Compare two sites."""
    before, after = _tables(old), _tables(new)
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    may = {("service", name) for name in (*LIMITS, *DECIDING)}
    refused = [key for key in changed if key[0] in FIXED and key not in may]
    names = tuple(sorted({key[1] for key in changed if key[0] == "tenants"}))
    lines = tuple(f"{'.'.join(key)}: {_said(before.get(key))} → {_said(after.get(key))}" for key in sorted(changed))
    return SiteChange(
        lines,
        tuple(".".join(key) for key in sorted(refused)),
        any(key[0] in ANEW or key[1:] in {(name,) for name in DECIDING} for key in changed),
        any(key[0] == "cluster" for key in changed),
        names,
        tuple(note for note in new.setup.notes if note not in old.setup.notes),
    )


def _tables(site: Site) -> dict[tuple[str, ...], Any]:
    """Return every value of a site by table and key."""
    found: dict[tuple[str, ...], Any] = {}
    data = site.setup.scenario.model_dump(mode="json")
    tables = {name: data.get(name) for name in (*ANEW, "tenants", "world")}
    tables["service"] = site.service.model_dump(mode="json")
    tables["notify"] = _flat(site.notify.model_dump(mode="json", exclude_unset=True))
    tables["interactive"] = site.interactive.model_dump(mode="json")
    tables["limits"] = _flat(site.limits.model_dump(mode="json", exclude_unset=True))
    for table, value in tables.items():
        if isinstance(value, Mapping):
            found |= {(table, str(key)): part for key, part in value.items()}
        else:
            found[table,] = value
    found["cluster", "types"] = [*site.setup.topology.types]
    return found


def _flat(data: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return the values of tables in tables, by their whole keys."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def _said(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)


# ---- overrides -------------------------------------------------------------------------------------------------------


def file_digest(path: Path) -> str:
    """Return a digest of a site file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class StoredFacts(Protocol):
    """A store, as far as it says what operators changed."""

    def meta(self, key: str) -> str | None:
        """Return a fact about the service."""
        ...


def effective_site(store: StoredFacts, site: Site) -> Site:
    """Return the site with what operators changed since its file was written; another file ends that."""
    tables = _kept_tables(store, file_digest(site.path))
    return site if tables is None else load_site(site.path, tables)


def _kept_tables(store: StoredFacts, digest: str) -> dict[str, Any] | None:
    """Return what operators changed of the site file with that digest; None for nothing."""
    try:
        kept = json.loads(store.meta(KEPT) or "{}")
        return dict(kept["tables"]) if kept.get("file") == digest else None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        _log.warning("what operators changed of the site cannot be read (%s); the site file holds", error)
        return None


def overridden(store: ServiceStore, site: Site, more: Mapping[str, Any]) -> tuple[Site, dict[str, Any]]:
    """Return the site with further changes of an operator, and what to keep of them. Raises InvalidInput."""
    digest = file_digest(site.path)
    tables = _kept_tables(store, digest) or {}
    for name, value in more.items():
        tables[name] = {**tables.get(name, {}), **value} if name == "tenants" else value
    return load_site(site.path, tables), {"file": digest, "tables": tables}


# ---- applying --------------------------------------------------------------------------------------------------------


def apply_site(
    writer: Writer,
    new: Site,
    who: Principal,
    source: str,
    *,
    kept: Mapping[str, Any] | None = None,
) -> SiteChange:
    """Change a running service, in the writer's thread. Raises InvalidInput for what may not change; nothing does then.

    `kept` are the overrides that hold from now on; left out: none, the site file is what it says.
    """
    old = writer.controller.site
    change = difference(old, new)
    if change.refused:
        raise InvalidInput(
            [
                Problem(file=str(new.path), column=key, rule="cannot be changed while the service runs",
                        fix="restart the service, or put the old value back")
                for key in change.refused
            ]
        )  # fmt: skip
    text = json.dumps(kept or {})
    controller = writer.controller
    if change.anew:
        drained = {controller.nodes[node]: ("remove" if controller.is_removed(node) else "drain", reason)
                   for node, reason in controller.drained.items()}  # fmt: skip
        writer.begin_era(new, {KEPT: text}, cluster_changed=change.cluster)
        spans = {controller.nodes[one.node]: one.maintenance for one in controller.drains.values() if one.place == NODE}
        again = [Request(ChangeNode(name, *change, until=NOW, maintenance=spans.get(name, 0)), who, source)
                 for name, change in drained.items() if name in controller.nodes]  # fmt: skip
        writer.turn(again)
    else:
        controller.site = new
        controller.use_limits()
        requests = [
            Request(ChangeTenant(name, new.setup.tenants.get(name, Tenant())), who, source) for name in change.tenants
        ]
        writer.turn(requests)
        writer.keep_setup(new, {KEPT: text}, decides=bool(requests))
    renew_idle_timers(writer.controller)
    kind = "PolicyChanged" if any(line.startswith("policy.") for line in change.lines) else "SiteChanged"
    if change.lines:
        writer.note(who, source, kind, change.lines)
    return change
