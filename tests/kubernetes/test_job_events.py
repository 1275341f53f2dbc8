"""Events on Jobs, on the real API server: one for each Job and reason, kept up to date and never in the way."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from lightkube import Client
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event
from tests.kubernetes.conftest import HandClock
from tests.kubernetes.test_api_server import job
from tests.kubernetes.transport import FaultyTransport

from eunomia.backends.kubernetes.events import REPEATED_S, JobEvents


def of(client: Client, name: str) -> list[Any]:
    return list(client.list(Event, fields={"involvedObject.name": name, "source": "eunomia"}))


def test_a_text_is_written_once_and_another_one_replaces_it(client: Client, clock: HandClock) -> None:
    made = client.create(job("waits", suspend=None))
    events = JobEvents(client, clock)
    for text in ("no room", "no room", "behind two jobs"):
        events.say(made, "Waiting", text)
    [one] = of(client, "waits")
    assert (one.message, one.count, one.reason) == ("behind two jobs", 2, "Waiting")
    clock.at += REPEATED_S
    events.say(made, "Waiting", "behind two jobs")
    assert of(client, "waits")[0].count == 3
    JobEvents(client, clock).say(made, "Waiting", "of the next process")
    assert [each.message for each in of(client, "waits")] == ["of the next process"]


def test_an_event_that_the_server_has_forgotten_is_written_anew(client: Client) -> None:
    made = client.create(job("forgotten"))
    events = JobEvents(client)
    events.say(made, "Waiting", "no room")
    client.delete(Event, of(client, "forgotten")[0].metadata.name)
    events.say(made, "Waiting", "behind two jobs")
    assert [one.message for one in of(client, "forgotten")] == ["behind two jobs"]


@pytest.mark.parametrize("fault", ["busy", "no type", "page", "dropped"])
def test_an_event_that_cannot_be_written_is_left_out(client: Client, between: FaultyTransport, fault: str) -> None:
    made = client.create(job("refused-" + fault.replace(" ", "-")))
    between.fault = fault
    JobEvents(client).say(made, "Waiting", "no room")
    between.fault = ""
    assert client.get(Job, made.metadata.name).metadata.uid == made.metadata.uid
