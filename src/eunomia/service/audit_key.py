"""Lets the audit log go on with another key, where the one that signed its parts is lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from eunomia.inputs.problems import refused
from eunomia.service.site import Site
from eunomia.service.store import ServiceStore, StoreProblem, open_store
from eunomia.service.store.audit_log import KEY_FILE, AuditChanged, AuditPart, check, check_part, key_name, parts
from eunomia.service.store.opening import key_in

CANNOT = "compare the store with a backup: what was changed is not signed"


@dataclass(frozen=True, slots=True)
class NewKey:
    """What was signed anew: how many parts, and how many of those had been taken away, so no entry was checked."""

    key: str  # the beginning of its digest
    lost: tuple[str, ...]  # likewise, of those that signed them before
    parts: int
    removed: int


def replace_lost_key(site: Site) -> NewKey:
    """Sign the parts of other keys with the key of the state folder, which is made if there is none; say so in the log.

    What a kill interrupts, the next call does. Raises StoreProblem if there is no store, if a service uses it, or if
    the log is not as it was written, and InvalidInput if the key has signed all parts.
    """
    store = open_store(site.place, site.state, must_exist=True)
    try:
        return _replaced(store, site)
    finally:
        store.close()


def _replaced(store: ServiceStore, site: Site) -> NewKey:
    path, cluster_id = site.state / KEY_FILE, str(store.meta("cluster_id"))
    with store.transaction() as db:
        try:
            known = parts(db)
            check(db, cluster_id, None)
        except AuditChanged as error:
            raise StoreProblem.of(store.folder, str(error), CANNOT) from None
    if not known:
        raise refused(
            str(path), None, None, "no part of the audit log was signed, so no key is lost", "start the service"
        )
    key = key_in(path, "the audit log", "parts that it signed cannot be verified any more")
    for part in [one for one in known if one.key == key_name(key)]:
        try:
            check_part(part, cluster_id, key)
        except AuditChanged as error:
            raise StoreProblem.of(store.folder, str(error), CANNOT) from None
    others = [one for one in known if one.key != key_name(key)]
    if not others:
        rule = "the key is there, and has signed every part of the audit log"
        raise refused(str(path), None, None, rule, "remove the file first if others know the key")
    lost = tuple(sorted({one.key for one in others}))
    found = NewKey(key_name(key), lost, len(others), sum(one.removed is not None for one in others))
    with store.transaction() as db:
        for one in map(partial(AuditPart.signed, cluster_id=cluster_id, key=key), others):
            one.add_to(db)
        said = f"{found.key} signs {found.parts} parts of {', '.join(lost)}, {found.removed} of them taken away before"
        entry = ("service", "operator", "store", "audit key replaced", said)
        store.write_audit(db, clock.at if (clock := store.clock()) else 0.0, [entry])
    return found
