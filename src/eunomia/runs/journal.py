"""The journal of a real run: synced to disk before decisions are carried out, and read to resume the run."""

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
from eunomia.inputs.atomic_write import replacing, write_whole
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask, Decision
from eunomia.model.events import Answered, Estimated, Event, Moment
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
    """Create a journal with its header, atomically."""
    write_whole(path, header_line(header).encode(), durable=True)


class Journal:
    """An observer that appends every moment and its decisions durably to a file.

    Moments that the file already holds are compared with the run instead; `repeated` says whether it held the last
    step. A partially written step is completed. Raises InvalidInput where the run differs from the file.
    """

    def __init__(self, path: Path):
        self._path = path
        self._size = _remove_partial_line(path)
        self._old: BinaryIO = path.open("rb")
        self._offset = len(self._old.readline())
        self._row = 1
        self.repeated = False
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._old.close()
        os.close(self._file)

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Write one moment and its decisions; return when they are on disk."""
        self.repeated = self._repeats("".join(step_lines(moment, decisions)))
        if not self.repeated:
            os.fsync(self._file)

    def note(self, line: str) -> None:
        """Write a line that is synced with the next moment."""
        self._repeats(line)

    def _repeats(self, text: str) -> bool:
        """Compare text with the file, or append it; return whether the file held all of it."""
        new = text.encode()
        if self._offset < self._size:
            old = self._old.read(len(new))
            if old == new:
                self._offset += len(new)
                self._row += text.count("\n")
                return True
            if len(old) == len(new) or not new.startswith(old):
                raise self._refusal()
            os.truncate(self._path, self._offset)  # a partial last step, whose decisions were not carried out
        while new:
            new = new[os.write(self._file, new) :]
        self._size = self._offset = 0
        return False

    def _refusal(self) -> InvalidInput:
        rule = "the run does not repeat what it recorded from this line on, so it cannot be resumed"
        fix = "resume with the version of Eunomia, and the policy and tuner, that the run began with, or start again"
        return InvalidInput([Problem(file=str(self._path), row=self._row + 1, rule=rule, fix=f"{fix} with --force")])


def _remove_partial_line(path: Path) -> int:
    """Truncate a partially written last line; return the size of the file in bytes."""
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        tail = b""
        while end and b"\n" not in tail:
            begin = max(end - 65536, 0)
            file.seek(begin)
            tail, end = file.read(end - begin) + tail, begin
        partial = len(tail) - (tail.rfind(b"\n") + 1)
        if partial:
            file.truncate(size - partial)
        return size - partial


@dataclass(frozen=True, slots=True)
class Past:
    """The content of a journal: moments of the backend, answers of the policy, replies of the backend to tuners."""

    moments: tuple[Moment, ...] = ()
    answers: dict[int, Answer] = field(default_factory=dict)  # by number of the ask
    replies: deque[Any] = field(default_factory=deque)  # of the backend to tuners, in order, as JSON values

    @classmethod
    def of(cls, record: Record) -> Past:
        """Read a journal. Raises InvalidInput for an invalid line."""
        seen: list[Moment] = []  # by the scheduler
        world: list[Moment] = []  # by the backend, without events of tuners
        past = cls()
        for row, line in record.lines():
            match line.get("kind"):
                case "moment":
                    moment = record.moment(row, line)
                    answered = [event for event in moment.events if isinstance(event, Answered)]
                    past.answers.update((event.asked, event.answer) for event in answered)
                    if not answered:  # estimates follow from the rest, and are made again
                        seen.append(Moment.of(moment.at, (e for e in moment.events if not isinstance(e, Estimated))))
                case "world":
                    world.append(record.moment(row, line))
                case "reply":
                    past.replies.append(line.get("value"))
        return cls(tuple(world or seen), past.answers, past.replies)


class ResumedPolicyRunner(InlinePolicyRunner):
    """Returns recorded answers while there are some, then asks the policy."""

    def __init__(self, policy: Policy, answers: Mapping[int, Answer]):
        super().__init__(policy)
        self._answers = dict(answers)

    def answer(self, ask: Ask) -> Answer:
        """Return the recorded answer, or else the policy's."""
        recorded = self._answers.pop(ask.asked, None)
        return super().answer(ask) if recorded is None else recorded


class JournaledWorld:
    """A backend that journals its replies to tuners, so that a resumed run gives the same replies."""

    def __init__(self, world: TunableBackend, loss: Loss, journal: Journal, past: Past):
        self._world, self._loss, self._journal, self._replies = world, loss, journal, deque(past.replies)

    def moments(self) -> Iterator[Moment]:
        """Yield the backend's moments."""
        for moment in self._world.moments():
            self._journal.note(moment_line(moment, "world"))
            yield moment

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision."""
        self._world.carry_out(decision)

    def watch(self, job_id: str, steps: float) -> None:
        """Forward the request to report steps of a job."""
        self._world.watch(job_id, steps)

    def accept(self, wish: Event) -> bool:
        """Return whether the backend accepts a tuner's event."""
        return bool(self._reply(lambda: self._world.accept(wish)))

    def loss(self, job: Job, steps: float) -> float:
        """Return the loss of a job; nan if unknown."""
        return float(self._reply(lambda: self._loss(job, steps)))

    def _reply(self, ask: Callable[[], Any]) -> Any:
        value = from_json(self._replies.popleft()) if self._replies else ask()
        self._journal.note(json.dumps({"kind": "reply", "value": to_json(value)}) + "\n")
        return value


def pack(journal: Path, folder: Path) -> Path:
    """Write the journal of an ended run as its record, atomically; return the path."""
    target = folder / RECORD
    with (
        journal.open("rb") as lines,
        replacing(target) as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
    ):
        packed.writelines(line for line in lines if json.loads(line).get("kind") not in JOURNAL_ONLY)
    return target
