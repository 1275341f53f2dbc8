"""Why users' jobs wait is given to the engine when it changes, seldom else, and for many jobs in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.service.bench import BOB, Bench

from eunomia.service import submission_waits
from eunomia.service.submission_waits import CALM_S, SubmissionWaits


class Shown:
    """What was given, by the engine's number."""

    def __init__(self) -> None:
        self.given: list[dict[str, str]] = []

    def explain(self, why: Mapping[str, str]) -> None:
        self.given.append(dict(why))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    one.store.close()


def submitted(bench: Bench, number: str) -> str:
    """Submit a job of a user of the engine, for all accelerators; return its id."""
    reply = bench.submit(accelerators=2, duration_s=600, labels={"engine-submission": number})
    return str(reply.body["job"]["id"])


def test_a_job_that_waits_has_its_reason_given_once_and_again_when_it_is_another(bench: Bench) -> None:
    shown = Shown()
    waits = SubmissionWaits(bench.writer, shown)
    first = submitted(bench, "u-1")
    waits.look(0.0)
    assert shown.given == [], "it has accelerators"
    submitted(bench, "u-2")
    bench.submit(accelerators=2, duration_s=600)  # not of the engine
    waits.look(1.0)
    [[(number, text)]] = [one.items() for one in shown.given]
    assert number == "u-2" and first in text
    waits.look(CALM_S / 2)
    assert len(shown.given) == 1
    submitted(bench, "u-3")
    waits.look(CALM_S / 2 + 1)
    assert shown.given[1].keys() == {"u-3"}, "that of the other has not changed"
    waits.look(1.0 + CALM_S)
    assert shown.given[2].keys() == {"u-2"}


def test_the_reason_names_no_job_that_the_submitter_may_not_see(bench: Bench) -> None:
    other = str(bench.submit(BOB, accelerators=2, duration_s=600).body["job"]["id"])
    submitted(bench, "u-1")
    shown = Shown()
    SubmissionWaits(bench.writer, shown).look(0.0)
    [text] = shown.given[0].values()
    assert text and other not in text


def test_of_many_jobs_the_next_have_their_turn_in_the_next_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_waits, "MOST", 2)
    shown = Shown()
    waits = SubmissionWaits(bench.writer, shown)
    for number in range(6):
        submitted(bench, f"u-{number}")
    for at in range(3):
        waits.look(float(at))
    assert [sorted(one) for one in shown.given] == [["u-1", "u-2"], ["u-3", "u-4"], ["u-5"]]
