"""Processes that answer messages: what is sent comes back whole, and one that died says how and is started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eunomia.child_process import ChildProcess, ProcessDied

LIMIT_S = 60.0


@pytest.fixture
def process() -> Iterator[ChildProcess]:
    found = ChildProcess("tests.answering_process", variables={"NOTED": "yes"}, keeps_lines=True)
    yield found
    found.stop()


def test_messages_of_any_length_are_answered_whole_and_in_order(process: ChildProcess) -> None:
    for message in (b"", b"a\nb\x00", b"x" * 5_000_000, b"noted"):
        assert process.ask(message, LIMIT_S) == (b"yes" if message == b"noted" else message)


def test_an_answer_that_was_not_taken_is_the_next_one(process: ChildProcess) -> None:
    process.send(b"twice")
    process.send(b"last")
    assert [process.receive(LIMIT_S) for _ in range(3)] == [b"twice", b"twice", b"last"]
    with pytest.raises(TimeoutError):
        process.receive(0.0)
    assert process.alive


@pytest.mark.parametrize(
    ("last", "said", "lines"),
    [
        (b"die", "the process ended with exit code 3", ["what it prints is no answer", "it is over"]),
        (b"kill", "the process was killed by signal 9, as when memory runs out", ["what it prints is no answer"]),
    ],
)
def test_one_that_died_says_how_with_its_last_lines_and_is_started_again(
    process: ChildProcess, last: bytes, said: str, lines: list[str]
) -> None:
    with pytest.raises(ProcessDied) as caught:
        process.ask(last, LIMIT_S)
    assert (str(caught.value), caught.value.lines) == (said, lines)
    assert not process.alive
    assert process.ask(b"again", LIMIT_S) == b"again"


def test_one_that_is_stopped_after_a_message_is_not_started_to_wait_for_its_answer(process: ChildProcess) -> None:
    process.send(b"hello")
    process.stop()
    with pytest.raises(ConnectionResetError, match="was stopped"):
        process.receive(LIMIT_S)
    assert not process.alive
    assert process.ask(b"again", LIMIT_S) == b"again"
