"""Leases are granted to apps: what a job leaves before its lease ends, another job of its app may use.

The arbiter grants accelerators to the agent of an app until the lease ends, and takes them back then, not before; the
app's own scheduler divides them among its jobs meanwhile. So a trial that ends or is cancelled frees nothing for
others while its app has a job that fits there. What no job of the app can use is offered to all.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 4.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.view import View
from eunomia.placement.grants_builder import FREE

NO_APP = 0  # in place of the key of an app


def remaining_leases(view: View) -> tuple[Ints, Floats]:
    """Return the app, -1 = none, that still has each free device under a lease, and until when, (device,) each."""
    devices = len(view.holder)
    app, until = np.full(devices, -1), np.full(devices, -np.inf)
    keys = np.asarray(view.memory.get("leased_to", np.empty(0, dtype=np.int64)))
    known = min(len(keys), devices)  # devices may have joined
    until[:known] = np.asarray(view.memory.get("leased_until", np.empty(0)))[:known]
    device = np.flatnonzero((view.holder == FREE) & (until > view.at))
    for key in np.unique(keys[device]).tolist():  # few: what was left early
        row = np.flatnonzero(keys_of(view.apps.names) == key)
        app[device[keys[device] == key]] = row[0] if len(row) else -1
    return app, until


def leases_after(view: View, answer: Grants, lease_s: float) -> dict[str, Array]:
    """Return the memory of which app has which device until when, once the answer is carried out."""
    holder = view.holder.copy()
    stops = np.zeros(view.jobs, dtype=bool)
    stops[answer.stop] = True
    stops[answer.rows.job] = True
    held = np.flatnonzero(holder >= 0)
    holder[held[stops[holder[held]]]] = FREE
    until = np.full(len(holder), -np.inf)
    held = np.flatnonzero(holder >= 0)
    until[held] = view.lease_end[holder[held]]
    holder[answer.device] = answer.rows.job[answer.row]
    until[answer.device] = np.where(np.isnan(answer.until), view.at + lease_s, answer.until)[answer.row]
    keys = keys_of(view.apps.names)
    to = np.full(len(holder), NO_APP, dtype=np.int64)
    held = np.flatnonzero(holder >= 0)
    to[held] = keys[view.app[holder[held]]]
    return {"leased_to": to, "leased_until": until}


_keys: list[tuple[tuple[str, ...], Ints]] = []  # of the last call: the apps of a run seldom change


def keys_of(names: tuple[str, ...]) -> Ints:
    """Return `key_of` of each name, (app,); do not write."""
    if not _keys or _keys[0][0] is not names:
        _keys[:] = [(names, np.array([key_of(name) for name in names], dtype=np.int64))]
    return _keys[0][1]


@lru_cache(maxsize=65536)
def key_of(name: str) -> int:
    """Return a number above 0 for an app's name, the same in every view and on every machine."""
    return int.from_bytes(blake2b(name.encode(), digest_size=7).digest()) + 1
