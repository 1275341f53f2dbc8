"""Tokens: made at random, stored as digests, shown once."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path

from eunomia.service.messages import JOB_ROLE, Principal
from eunomia.service.store.base import Connection
from eunomia.service.store.opening import key_in
from eunomia.service.store.row_sums import row_sum, selected
from eunomia.service.store.schema import Token

PREFIX = "eun_"
MOST_MAKERS, MOST_TOKENS = 8, 100  # in the line of one token; of one user who makes them
JOB_PREFIX, JOB_KEY_FILE = "eunj_", "job.key"


def digest_of(secret: str) -> str:
    """Return what is stored of a secret; it has full entropy, so one hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token(
    user: str, tenant: str, role: str, now: float, expires: float | None = None, parent: str | None = None
) -> tuple[Token, str]:
    """Return a new token as it is stored, and the text that its user gets; `parent`: id of the token that made it."""
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = Token(number, digest_of(secret), user, tenant, role, now, expires, None, parent)
    return token, f"{PREFIX}{number}.{secret}"


def write_tokens(db: Connection, tokens: Iterable[Token]) -> None:
    """Store tokens, or what changed of them, in an open transaction."""
    for token in tokens:
        db.execute("DELETE FROM tokens WHERE id = ?", (token.id,))
        values = astuple(token)
        text = f"INSERT INTO tokens ({selected('tokens')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        db.execute(text, (*values, row_sum(values)))


class TokenRegistry:
    """All tokens by id; replaced as a whole when one changes."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.by_id = {token.id: token for token in tokens}

    def principal(self, text: str) -> tuple[Principal, str] | None:
        """Return who has this token, and its id; None for one that is unknown, expired or revoked."""
        number, _, secret = text.removeprefix(PREFIX).partition(".")
        token = self.by_id.get(number)
        known = token.hash if token is not None else digest_of("")
        matches = hmac.compare_digest(known, digest_of(secret))
        if token is None or not matches or not text.startswith(PREFIX) or not self.holds(token):
            return None
        return Principal(token.user, token.tenant, token.role), token.id

    def line_of(self, token: Token) -> Iterator[Token | None]:
        """A token, that which made it, and so on; None for one that is not there."""
        at: Token | None = token
        while at is not None:
            yield at
            if at.parent is None:
                return
            at = self.by_id.get(at.parent)
        yield None

    def holds(self, token: Token) -> bool:
        """Whether neither a token nor any of those that it comes from was revoked, or has expired."""
        now = time.time()
        return all(
            one is not None and one.revoked is None and (one.expires is None or one.expires > now)
            for one in self.line_of(token)
        )

    def depth(self, token: Token) -> int:
        """Return by how many steps a token comes from one that no other made."""
        return sum(one is not None for one in self.line_of(token)) - 1

    def count(self, user: str, tenant: str) -> int:
        """Return how many tokens of a user hold, or were made within a day."""
        since = time.time() - 86_400
        mine = (one for one in self.by_id.values() if (one.user, one.tenant) == (user, tenant))
        return sum(one.created > since or self.holds(one) for one in mine)

    def made_by(self, token: Token) -> list[Token]:
        """Return the tokens that come from this one, by however many steps."""
        return [one for one in self.by_id.values() if one is not token and token in self.line_of(one)]


class JobTokens:
    """Tokens of single starts of jobs: signed, so that none is stored. They hold as long as that start does."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, folder: Path) -> JobTokens:
        """Use the key in a state folder, which is made if there is none.

        Raises StoreProblem where other users may read it, or where it is no plain file.
        """
        return cls(key_in(folder / JOB_KEY_FILE, "the jobs' tokens", "running jobs lose their tokens"))

    def token(self, job_id: str, epoch: int) -> str:
        """Return the token of a start."""
        named = f"{job_id}.{epoch}"
        return f"{JOB_PREFIX}{named}.{hmac.new(self._key, named.encode(), hashlib.sha256).hexdigest()}"

    def principal(self, text: str) -> Principal | None:
        """Return the start whose token this is; None for any other text."""
        job_id, _, rest = text.removeprefix(JOB_PREFIX).partition(".")
        number = rest.partition(".")[0]
        epoch = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
        if not hmac.compare_digest(self.token(job_id, epoch).encode(), text.encode()):
            return None
        return Principal(job_id, "", JOB_ROLE, epoch)
