"""The operator's token in the state folder: made at the first start, made anew on request, never a dead one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from eunomia.inputs.atomic_write import replacing
from eunomia.service.credentials import TokenRegistry, new_token, write_tokens
from eunomia.service.fault_points import faultpoint
from eunomia.service.store import ServiceStore, StoreProblem

TOKEN_FILE = "operator.token"
FIRST = "first"
FACT = "operator_token"  # of the store: ids of the tokens that the file holds or held, as long as they are not revoked


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """The file of the operator's token; never the token itself."""

    path: Path
    made: str = ""  # why this start made one: FIRST, or what was wrong with the one before

    @property
    def said(self) -> str:
        """What the log says of one that was made."""
        return f"the operator's token was {self.made}; there is a new one in {self.path}"


@dataclass(frozen=True, slots=True)
class Rotation:
    """A token that has taken the place of others."""

    path: Path
    id: str
    revoked: tuple[str, ...]


def ensure_operator_token(store: ServiceStore, tenant: str = "operators") -> OperatorToken:
    """Return the file of the operator's token, after making one where there is none, or none that works.

    A rotation that was cut off is finished. Raises StoreProblem where other users may read the file, or where it is no
    plain file.
    """
    path = _plain(store)
    if path.exists() and path.stat().st_mode & 0o077:
        raise StoreProblem.of(path, "other users may read the operator's token", f"type: chmod 600 {path}")
    tokens = TokenRegistry(store.tokens())
    found = _in_file(path, tokens)
    if found is None:
        is_lost, is_first = not path.exists(), not tokens.by_id
        if is_lost:
            _remember(store, [])  # whoever has that one keeps it, as where the file was put elsewhere
        rotate(store, None if is_first else ("service", "operator", "start"), tenant)
        return OperatorToken(path, FIRST if is_first else "missing" if is_lost else "revoked or not known")
    known = _known(store)
    if len(known) > 1 and found in known:
        _revoke_others(store, found, ("service", "operator", "start"))
    elif not known:
        _remember(store, [found])
    return OperatorToken(path)


def rotate(store: ServiceStore, who: tuple[str, str, str] | None, tenant: str = "operators") -> Rotation:
    """Put a new token of the operator into the file, then revoke those that were in it; their children are its own.

    Whenever it is cut off, the token in the file works; the next start finishes it. `who`: user, role and source for
    the audit log, None for no entry. Raises StoreProblem where something other than a plain file has the file's place,
    OSError where it cannot be written.
    """
    path, tokens = _plain(store), TokenRegistry(store.tokens())
    found, known = _in_file(path, tokens), _known(store)
    token, text = new_token("operator", tenant, "operator", time.time())
    with store.transaction() as db:
        write_tokens(db, [token])
        store.set_meta(db, FACT, " ".join(dict.fromkeys([token.id, *([found] if found else []), *known])))
    faultpoint("token.stored")
    with replacing(path, durable=True) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(f"{text}\n".encode())
    faultpoint("token.written")
    revoked = _revoke_others(store, token.id, who)
    return Rotation(path, token.id, revoked)


def _plain(store: ServiceStore) -> Path:
    path = store.folder / TOKEN_FILE
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise StoreProblem.of(path, "the operator's token is no plain file", "remove it, and start again")
    return path


def _in_file(path: Path, tokens: TokenRegistry) -> str | None:
    """Return the id of the operator's token in the file; None where there is none that works."""
    try:
        found = tokens.principal(path.read_bytes()[:1000].decode(errors="replace").strip())
    except FileNotFoundError:
        return None
    return None if found is None or not found[0].is_operator else found[1]


def _known(store: ServiceStore) -> list[str]:
    return (store.meta(FACT) or "").split()


def _remember(store: ServiceStore, ids: list[str]) -> None:
    if _known(store) != ids:
        with store.transaction() as db:
            store.set_meta(db, FACT, " ".join(ids))


def _revoke_others(store: ServiceStore, kept: str, who: tuple[str, str, str] | None) -> tuple[str, ...]:
    """Revoke the tokens that were in the file, but for the one that is; return their ids."""
    tokens, known, now, clock = TokenRegistry(store.tokens()), set(_known(store)) - {kept}, time.time(), store.clock()
    old = [one for one in tokens.by_id.values() if one.id in known and tokens.holds(one)]
    ids = tuple(one.id for one in old)
    kin = [replace(one, parent=kept) for one in tokens.by_id.values() if one.parent in ids and one.id not in known]
    with store.transaction() as db:
        write_tokens(db, [*(replace(one, revoked=now) for one in old), *kin])
        store.set_meta(db, FACT, kept)
        entries = [] if who is None else [(*who, "rotate token", kept)]
        store.write_audit(db, clock.at if clock else 0.0, entries)
    return ids
