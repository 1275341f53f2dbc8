"""Mail and webhooks: the tables [notify] of a site, and which notices a change of a job makes.

A notice is a row of the store, written with the change that it is about; `notice_sender` takes it from there.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from eunomia.inputs.bounds import MOST_S
from eunomia.scenario.schema_models import Finite, Section
from eunomia.service.job_row import QUARANTINED, JobRow

MAIL, WEBHOOK = "mail", "webhook:"
ADDRESS = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}"
ENDED = ("succeeded", "failed", "cancelled", "rejected", QUARANTINED)
FAILED = ("failed", "rejected", QUARANTINED)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Event = Literal["started", "ended", "failed"]
Seconds = Annotated[Finite, Field(ge=0, le=MOST_S)]


class MailSection(Section):
    """`[notify.mail]`: the server that takes mail, and the addresses of users."""

    host: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="name of the SMTP server")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=587, description="its port")
    tls: Literal["starttls", "tls", "none"] = Field(default="starttls", description="how the connection is encrypted")
    user: str = Field(default="", description="name to log in with; empty: none is needed")
    password_file: str = Field(default="", description="file with the password, readable by the service's user only")
    sender: Annotated[str, Field(pattern=f"^{ADDRESS}$")] = Field(description="address that mail comes from")
    domain: Annotated[str, Field(pattern=r"^([A-Za-z0-9.-]{1,190})?$")] = Field(
        default="", description="a user's address is USER@domain"
    )
    addresses: dict[str, Annotated[str, Field(pattern=f"^{ADDRESS}$")]] = Field(
        default_factory=dict, description="addresses of users that have another one"
    )
    digest_s: Seconds = Field(default=60.0, description="what happens to jobs of a user within so long is one mail")
    per_hour: Annotated[int, Field(ge=1, le=3600)] = Field(default=20, description="mails to one address an hour")

    def address_of(self, user: str) -> str | None:
        """Return the address of a user; None where it has none."""
        made = f"{user}@{self.domain}" if self.domain and re.fullmatch(r"[A-Za-z0-9._%+-]{1,64}", user) else None
        return self.addresses.get(user, made)


class WebhookSection(Section):
    """`[notify.webhooks.NAME]`: an address that takes POST requests."""

    url: Annotated[str, Field(max_length=2000)] = Field(description="https address, or http on this machine")
    secret_file: str = Field(default="", description="file with the secret that signs the requests")
    body: Literal["json", "slack"] = Field(
        default="json", description="what is sent: events, or a text as Slack has it"
    )
    events: Annotated[tuple[Event, ...], Field(strict=False)] = Field(
        default=(), description="what is sent of each job, whether it asks for it or not"
    )
    tenants: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="of whose jobs that is; empty: of all"
    )


class NotifySection(Section):
    """`[notify]`: where the service says what has become of jobs."""

    url: Annotated[str, Field(pattern=r"^(https?://[^\s]{1,500})?$")] = Field(
        default="", description="address of the dashboard, for links"
    )
    mail: MailSection | None = None
    webhooks: dict[Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")], WebhookSection] = Field(default_factory=dict)

    @property
    def targets(self) -> tuple[str, ...]:
        """What notices may be sent to."""
        return (*((MAIL,) if self.mail else ()), *(f"{WEBHOOK}{name}" for name in self.webhooks))

    def contradictions(self, folder: Path) -> Iterator[tuple[tuple[str, ...], str, str, str]]:
        """Yield what no single key says: its place, the value, the rule and how to fix it."""
        mail = self.mail
        if mail is not None:
            if not mail.domain and not mail.addresses:
                yield ("mail", "domain"), "", "no user has an address", 'give domain = "example.org", or addresses'
            if mail.user and not mail.password_file:
                yield ("mail", "user"), mail.user, "logs in without a password", "name its file in password_file"
            if mail.password_file and (wrong := _wrong_secret(folder / mail.password_file)):
                yield ("mail", "password_file"), mail.password_file, *wrong
        for name, hook in self.webhooks.items():
            parts = urlsplit(hook.url)
            is_here = parts.scheme == "http" and parts.hostname in LOOPBACK
            if not parts.hostname or (parts.scheme != "https" and not is_here):
                rule, fix = "is no https address", "write https://…; http is for this machine only"
                yield ("webhooks", name, "url"), hook.url, rule, fix
            elif parts.username is not None or parts.password is not None:
                yield ("webhooks", name, "url"), f"{parts.scheme}://…", "holds a password", "give a secret_file"
            if hook.secret_file and (wrong := _wrong_secret(folder / hook.secret_file)):
                yield ("webhooks", name, "secret_file"), hook.secret_file, *wrong

    def wrong_word(self, word: str, user: str) -> tuple[str, str] | None:
        """Return why a job of a user cannot have a word of `notify`, and how to fix it; None if it can."""
        target = word.partition("@")[0]
        if target not in self.targets:
            known = ", ".join(self.targets)
            fix = f"it has {known}" if known else "leave it out, or ask the operator for a table [notify]"
            return "this site does not send there", fix
        if target == MAIL and self.mail is not None and self.mail.address_of(user) is None:
            return f"user {user} has no address here", "ask the operator for one in [notify.mail] addresses"
        return None


def _wrong_secret(path: Path) -> tuple[str, str] | None:
    """Return why a file of a secret cannot be used, and how to fix it."""
    try:
        info = path.stat()
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'it is no text'})", "write the secret into it"
    if not stat.S_ISREG(info.st_mode) or info.st_mode & 0o077 or info.st_uid not in (0, os.geteuid()):
        return "may be read by others", f"chmod 600 {path}, and let the service's user have it"
    return None if text else ("is empty", "write the secret into it")


def read_secret(folder: Path, name: str) -> str:
    """Return the secret of a file that was checked; "" for no file."""
    return (folder / name).read_text(encoding="utf-8").strip() if name else ""


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be said of one job to one target."""

    target: str
    address: str  # of mail
    event: str
    job: str
    body: str  # JSON

    @property
    def data(self) -> dict[str, Any]:
        """Its content."""
        return dict(json.loads(self.body))


def notices_of(site: NotifySection, row: JobRow, state: str, at: float, origin: float) -> Iterator[Notice]:
    """Yield the notices that a job makes by coming into a state; `origin` is the wall-clock time of second 0."""
    events = events_of(row, state)
    if not events:
        return
    asked: dict[str, str] = {}
    for word in row.spec.get("notify", ()):
        target, _, event = word.partition("@")
        if (event or "ended") in events and target in site.targets:
            asked.setdefault(target, event or "ended")
    for name, hook in site.webhooks.items():
        found = [event for event in hook.events if event in events]
        if found and (not hook.tenants or row.tenant in hook.tenants):
            asked.setdefault(f"{WEBHOOK}{name}", found[0])
    if not asked:
        return
    body = json.dumps(content(row, state, at, origin))
    for target, event in asked.items():
        address = (site.mail.address_of(row.owner) if site.mail else None) or "" if target == MAIL else ""
        if target != MAIL or address:
            yield Notice(target, address, event, row.id, body)


def events_of(row: JobRow, state: str) -> tuple[str, ...]:
    """Return which events it is that a job comes into a state."""
    if state == "running":
        return ("started",) if row.epoch == 1 else ()
    if state in FAILED:
        return ("failed", "ended")
    return ("ended",) if state in ENDED else ()


def content(row: JobRow, state: str, at: float, origin: float) -> dict[str, Any]:
    """Return what is said of a job: names, state and times, and nothing of its command and its variables."""
    shown = row.shown(origin)
    keys = ("id", "name", "tenant", "owner", "accelerators", "array_index", "submitted_at", "started_at", "ended_at")
    return {key: shown[key] for key in keys} | {
        "state": state, "reason": row.reason[:500] or None, "run_s": row.run_s, "at": origin + at,
    }  # fmt: skip


def described(site: NotifySection) -> str:
    """Return where notices go, for the plan of a site."""
    mail = site.mail
    found = [f"mail by {mail.host}:{mail.port}"] if mail else []
    return ", ".join([*found, *(f"webhook {name}" for name in site.webhooks)])
