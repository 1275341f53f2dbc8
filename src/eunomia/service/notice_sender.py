"""Sends the notices of the store: a thread for each target, so that one that does not answer holds up no other.

A notice stays in the store until its receiver has taken it, and is then removed; after a kill in between it is sent
once more, with the same id. What no receiver has taken for a day is given up, which the log and the audit log say.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import smtplib
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eunomia.service.fault_points import faultpoint
from eunomia.service.notices import MAIL, WEBHOOK, MailSection, Notice, NotifySection, WebhookSection, read_secret
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.store.head import RESTORED
from eunomia.service.store.reader import Reader
from eunomia.service.writer import Writer
from eunomia.verdict.number_format import duration

POLL_S = 1.0
ANSWER_S = 15.0  # that a receiver may take for each part of its answer
FIRST_S, LAST_S = 5.0, 1800.0  # until the next attempt, doubled each time
GIVE_UP_S = 86_400.0  # after which a notice is given up
A_MAIL = 1000  # notices of one mail
A_REQUEST = 100  # events of one request
SHOWN = 50  # jobs that a mail or a text lists
SIGNATURE = "X-Eunomia-Signature"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredNotice:
    """A notice as the store has it; `at` is in the service's time."""

    seq: int
    at: float
    notice: Notice


class NotTaken(Exception):
    """A receiver did not take what was sent to it, and says why."""


class NoticeSender:
    """The threads that send what the store has, and what became of it."""

    def __init__(self, site: NotifySection, folder: Path, place: Path | str, writer: Writer) -> None:
        self.counts: Counter[str] = Counter()  # sent, tried again, given up
        self._site, self._place, self._writer = site, place, writer
        self._stopped = threading.Event()
        self._cluster = writer.store.meta("cluster_id") or ""
        restored = writer.store.meta(RESTORED)  # a store that is restored numbers its notices again from then on
        self._ids = self._cluster + (f".{restored}" if restored else "")
        secret_of = {MAIL: site.mail.password_file if site.mail else ""}
        secret_of |= {f"{WEBHOOK}{name}": hook.secret_file for name, hook in site.webhooks.items()}
        self._secrets = {target: read_secret(folder, name) for target, name in secret_of.items()}
        self._threads = [threading.Thread(target=self._run, args=(target,), name=f"notify {target}", daemon=True)
                         for target in site.targets]  # fmt: skip

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send nothing more; what is being sent may still arrive."""
        self._stopped.set()

    def test(self, target: str, address: str) -> str:
        """Send a test at once; return the receiver's answer. Raises NotTaken, and LookupError for another target."""
        if target not in self._site.targets:
            raise LookupError(target)
        now = time.time()
        shown = {"id": "0-test", "name": "test", "owner": address, "tenant": "", "state": "succeeded", "at": now,
                 "reason": "this is a test", "run_s": 0.0, "accelerators": 0}  # fmt: skip
        body = json.dumps(shown)
        return self._send(target, address, [StoredNotice(0, now, Notice(target, address, "test", "0-test", body))])

    # ---- when ------------------------------------------------------------------------------------------------------

    def _run(self, target: str) -> None:
        reader, failures, next_at = Reader(self._place), Counter[str](), dict[str, float]()
        try:
            while not self._stopped.wait(POLL_S):
                try:
                    self._look(target, reader, failures, next_at)
                except Exception:  # such as a database that cannot be reached: the next look may find it
                    _log.exception("notices to %s could not be looked for", target)
        finally:
            reader.close()

    def _look(self, target: str, reader: Reader, failures: Counter[str], next_at: dict[str, float]) -> None:
        """Send what is due to a target; `next_at` says for an address when the next attempt is."""
        now, digest_s = self._writer.clock.now(), self._site.mail.digest_s if self._site.mail else 0.0
        for address, since in reader.notice_addresses(target):
            if now < next_at.get(address, 0.0) or (target == MAIL and now < since + digest_s):
                continue
            found = reader.notices(target, address, A_MAIL if target == MAIL else A_REQUEST)
            due = [StoredNotice(seq, at, Notice(target, address, *rest)) for seq, at, *rest in found]
            old = [one for one in due if now - one.at > GIVE_UP_S]
            try:
                self._send(target, address, due)
            except NotTaken as error:
                failures[address] += 1
                wait = min(FIRST_S * 2.0 ** min(failures[address] - 1, 20), LAST_S)
                next_at[address] = now + wait
                self.counts["tried again"] += 1
                _log.warning("%s did not take %d notices, next try in %s: %s", target, len(due), duration(wait), error)
                if old:
                    self._settle(old, f"{len(old)} notices to {target}: {error}")
                    self.counts["given up"] += len(old)
                continue
            faultpoint("notices.taken")
            failures.pop(address, None)
            next_at.pop(address, None)
            if target == MAIL and self._site.mail is not None:
                next_at[address] = now + 3600.0 / self._site.mail.per_hour
            self._settle(due)
            self.counts["sent"] += len(due)
        for address in [one for one, at in next_at.items() if at < now and one not in failures]:
            del next_at[address]

    def _settle(self, done: Sequence[StoredNotice], given_up: str = "") -> None:
        """Remove notices from the store; until that is committed none of them is looked at again."""
        seqs = [one.seq for one in done]

        def remove(writer: Writer) -> None:
            writer.store.remove_notices(seqs, writer.clock.now(), given_up)

        removed = self._writer.change(remove)
        while not self._stopped.is_set():
            try:
                removed.result(POLL_S)
            except TookTooLong:
                continue
            except DiskFull as error:  # else they would be sent once more at each look
                _log.warning("%d notices stay in the store until it has room: %s", len(seqs), error)
                self._stopped.wait(FIRST_S)
                removed = self._writer.change(remove)
                continue
            return

    # ---- what ------------------------------------------------------------------------------------------------------

    def _send(self, target: str, address: str, due: Sequence[StoredNotice]) -> str:
        """Send notices in one message; return the receiver's answer. Raises NotTaken."""
        try:
            if target == MAIL and self._site.mail is not None:
                return send_mail(self._site.mail, self._secrets[MAIL], self._mail(address, due))
            hook = self._site.webhooks[target.removeprefix(WEBHOOK)]
            return post(hook, self._secrets[target], self._body(hook, due))
        except (OSError, smtplib.SMTPException, http.client.HTTPException, ValueError) as error:
            raise NotTaken(f"{type(error).__name__}: {error}"[:300]) from error

    def _id(self, one: StoredNotice) -> str:
        return f"{self._ids}-{one.seq}"

    def _link(self, job: str) -> str:
        return f"{self._site.url.rstrip('/')}/jobs/{job}" if self._site.url else ""

    def _mail(self, address: str, due: Sequence[StoredNotice]) -> EmailMessage:
        assert self._site.mail is not None
        message = EmailMessage()
        message["From"], message["To"] = self._site.mail.sender, address
        message["Subject"] = subject([one.notice for one in due])
        message["Date"] = format_datetime(datetime.fromtimestamp(float(due[-1].notice.data["at"]), UTC))
        message["Message-ID"] = f"<{self._id(due[0])}-{due[-1].seq}@eunomia.invalid>"
        message["Auto-Submitted"] = "auto-generated"
        lines = [line(one.notice, self._link(one.notice.job)) for one in due[:SHOWN]]
        more = [f"and {len(due) - SHOWN:,} more"] if len(due) > SHOWN else []
        message.set_content("\n".join([*lines, *more]) + "\n")
        return message

    def _body(self, hook: WebhookSection, due: Sequence[StoredNotice]) -> bytes:
        notices = [one.notice for one in due]
        if hook.body == "slack":
            lines = [_escaped(line(one, self._link(one.job))) for one in notices[:SHOWN]]
            more = [f"and {len(due) - SHOWN:,} more"] if len(due) > SHOWN else []
            first = [f"*{_escaped(subject(notices))}*"] if len(due) > 1 else []
            return json.dumps({"text": "\n".join([*first, *lines, *more])}).encode()
        events = [{"id": self._id(one), "event": one.notice.event, "job": one.notice.data} for one in due]
        return json.dumps({"cluster": self._cluster, "events": events}).encode()


def subject(notices: Sequence[Notice]) -> str:
    """Return what happened in one line."""
    if len(notices) == 1:
        data = notices[0].data
        return f"job {data['name']} ({data['id']}) {_became(data['state'])}"
    states = Counter(str(one.data["state"]) for one in notices)
    (state, most), *others = states.most_common()
    rest = "".join(f", {count:,} {other}" for other, count in others)
    return f"{most:,} of {len(notices):,} jobs {state}{rest}"


def line(notice: Notice, link: str = "") -> str:
    """Return what happened to one job."""
    data = notice.data
    index = "" if data.get("array_index") is None else f", index {data['array_index']}"
    reason = f": {data['reason']}" if data.get("reason") else ""
    ran = f" after {duration(float(data['run_s']))} on accelerators" if data.get("run_s") else ""
    text = f"{data['name']} ({data['id']}{index}) {_became(data['state'])}{ran}{reason}"
    return " ".join("".join(c if c.isprintable() else " " for c in f"{text} {link}").split())


def _became(state: str) -> str:
    return {"running": "has started", "cancelled": "was cancelled", "rejected": "was rejected"}.get(state, state)


def _escaped(text: str) -> str:
    """Return a text in which Slack reads no links and no names of users."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def send_mail(mail: MailSection, password: str, message: EmailMessage) -> str:
    """Hand a mail to the server; return that it took it. Raises what smtplib raises."""
    context = ssl.create_default_context()
    if mail.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=ANSWER_S, context=context)
    else:
        server = smtplib.SMTP(mail.host, mail.port, timeout=ANSWER_S)
    with server:
        if mail.tls == "starttls":
            server.starttls(context=context)
        if mail.user:
            server.login(mail.user, password)
        server.send_message(message)
    return f"{mail.host}:{mail.port} took the mail to {message['To']}"


def signature(secret: str, at: int, body: bytes) -> str:
    """Return the value of the header that signs a request: `t=SECONDS,v1=HEX`, HMAC-SHA256 of `SECONDS.BODY`."""
    return f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def post(hook: WebhookSection, secret: str, body: bytes) -> str:
    """Send a request; return the status. Raises NotTaken for another than 2xx: redirects are not followed."""
    parts = urlsplit(hook.url)
    kind: Any = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    secure = {"context": ssl.create_default_context()} if parts.scheme == "https" else {}
    connection = kind(parts.hostname, parts.port, timeout=ANSWER_S, **secure)
    headers = {"Content-Type": "application/json", "User-Agent": "eunomia"}
    if secret:
        headers[SIGNATURE] = signature(secret, int(time.time()), body)
    try:
        connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if not 200 <= status < 300:
        moved = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise NotTaken(f"it answered {status}{moved}")
    return f"it answered {status}"
