"""The record of a real run while it is written: on the disk before any decision is carried out, and read to resume."""

from __future__ import annotations

import gzip
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from eunomia.backends.protocol import TunableBackend
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.lease import write_whole
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask, Decision
from eunomia.model.events import Answered, Event, Moment
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.records.record import (
    JOURNAL_ONLY,
    RECORD,
    Record,
    from_json,
    header_line,
    moment_line,
    step_lines,
    to_json,
)
from eunomia.records.run import InlinePolicyRunner
from eunomia.tuners.tuner_backend import Loss


def create(path: Path, header: Mapping[str, Any]) -> None:
    """Begin a journal: its header, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, header_line(header), durable=True)


class Journal:
    """An observer that appends every moment and its decisions to a file, which a power cut does not undo.

    A file that holds moments already is first compared with what it is given; `repeated` says whether it held the last
    step. A step that was cut short is completed. Raises InvalidInput where the run does not repeat what the file holds.
    """

    def __init__(self, path: Path):
        self._path = path
        self._size = _cut_torn_line(path)
        self._old: BinaryIO = path.open("rb")
        self._place = len(self._old.readline())
        self._row = 1
        self.repeated = False  # whether the file held the last step before
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._old.close()
        os.close(self._file)

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Write one moment and what was decided then; return when it is on the disk."""
        self.repeated = self._repeats("".join(step_lines(moment, decisions)))
        if not self.repeated:
            os.fsync(self._file)

    def note(self, line: str) -> None:
        """Write a line that is on the disk no later than the moment after it."""
        self._repeats(line)

    def _repeats(self, text: str) -> bool:
        """Compare with what the file holds, or append; say whether the file held all of it."""
        new = text.encode()
        if self._place < self._size:
            old = self._old.read(len(new))
            if old == new:
                self._place += len(new)
                self._row += text.count("\n")
                return True
            if len(old) == len(new) or not new.startswith(old):
                raise self._refusal()
            os.truncate(self._path, self._place)  # the last step is not whole; none of its decisions was carried out
        while new:
            new = new[os.write(self._file, new) :]
        self._size = self._place = 0
        return False

    def _refusal(self) -> InvalidInput:
        rule = "the run does not repeat what it recorded from this line on, so it cannot go on from there"
        fix = "resume with the version of Eunomia, and the policy and tuner, that the run began with, or begin anew"
        return InvalidInput([Problem(file=str(self._path), row=self._row + 1, rule=rule, fix=f"{fix} with --force")])


def _cut_torn_line(path: Path) -> int:
    """Remove a last line that was not written to its end; return the size of the file."""
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        tail = b""
        while end and b"\n" not in tail:
            begin = max(end - 65536, 0)
            file.seek(begin)
            tail, end = file.read(end - begin) + tail, begin
        torn = len(tail) - (tail.rfind(b"\n") + 1)
        if torn:
            file.truncate(size - torn)
        return size - torn


@dataclass(frozen=True, slots=True)
class Past:
    """What a journal holds of a run: what happened in the world, and what the world and the policy answered."""

    moments: tuple[Moment, ...] = ()
    answers: dict[int, Answer] = field(default_factory=dict)  # by number of the question
    replies: deque[Any] = field(default_factory=deque)  # of the world to its users, in order, as JSON values

    @classmethod
    def of(cls, record: Record) -> Past:
        """Read a journal. Raises InvalidInput for a line that cannot be read."""
        seen: list[Moment] = []  # by the core
        world: list[Moment] = []  # as they were before users took part
        past = cls()
        for row, line in record.lines():
            match line.get("kind"):
                case "moment":
                    moment = record.moment(row, line)
                    answered = [event for event in moment.events if isinstance(event, Answered)]
                    past.answers.update((event.asked, event.answer) for event in answered)
                    if not answered:
                        seen.append(moment)
                case "world":
                    world.append(record.moment(row, line))
                case "reply":
                    past.replies.append(line.get("value"))
        return cls(tuple(world or seen), past.answers, past.replies)


class ResumedPolicyRunner(InlinePolicyRunner):
    """Gives recorded answers where there are some, and asks the policy from then on."""

    def __init__(self, policy: Policy, answers: Mapping[int, Answer]):
        super().__init__(policy)
        self._answers = dict(answers)

    def answer(self, ask: Ask) -> Answer:
        """Return the recorded answer, or what the policy decides."""
        known = self._answers.pop(ask.asked, None)
        return super().answer(ask) if known is None else known


class JournaledWorld:
    """A world with users: what they get to know of it is written down, so that a resumed run tells them the same."""

    def __init__(self, world: TunableBackend, loss: Loss, journal: Journal, past: Past):
        self._world, self._loss, self._journal, self._replies = world, loss, journal, deque(past.replies)

    def moments(self) -> Iterator[Moment]:
        """Yield the world's moments."""
        for moment in self._world.moments():
            self._journal.note(moment_line(moment, "world"))
            yield moment

    def carry_out(self, decision: Decision) -> None:
        """Hand the decision on."""
        self._world.carry_out(decision)

    def watch(self, job_id: str, steps: float) -> None:
        """Hand on what a user wants to know."""
        self._world.watch(job_id, steps)

    def accept(self, wish: Event) -> bool:
        """Return whether a user's wish can come true."""
        return bool(self._reply(lambda: self._world.accept(wish)))

    def loss(self, job: Job, steps: float) -> float:
        """Return how good a job is; nan = no loss is known."""
        return float(self._reply(lambda: self._loss(job, steps)))

    def _reply(self, ask: Callable[[], Any]) -> Any:
        value = from_json(self._replies.popleft()) if self._replies else ask()
        self._journal.note(json.dumps({"kind": "reply", "value": to_json(value)}) + "\n")
        return value


def pack(journal: Path, folder: Path) -> Path:
    """Write the journal as the record of a run that has ended, whole or not at all; return its path."""
    target, draft = folder / RECORD, folder / f".{RECORD}.draft"
    with (
        journal.open("rb") as lines,
        draft.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
    ):
        packed.writelines(line for line in lines if json.loads(line).get("kind") not in JOURNAL_ONLY)
    os.replace(draft, target)
    return target
