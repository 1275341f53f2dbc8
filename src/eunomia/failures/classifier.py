"""Which line of a job's log names the reason of its failure.

    tier of the signature, then whether the job went on after the line, then the earlier line

A line after which the job made progress was survived: long progress makes it worth less than any line that was not. A
step that many ranks log is one step.
Lines that are logged as a warning, that tell of a retry or a fallback, that quote code in a traceback, or that belong
to an exception that Python ignored, say nothing, unless their signature counts at any level.

Method: ordered signatures, explicit before implicit, as in M. Jeon et al., USENIX ATC 2019, section 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eunomia.failures.signature import AFTERMATH, IMPLICIT, Signature
from eunomia.failures.signatures import SIGNATURES
from eunomia.failures.table7 import REASONS

NO_SIGNATURE = "No signature"
CATEGORY = {reason.name: reason.category for reason in REASONS}
SURVIVED = 10  # lines of progress after which what came before cannot have ended the job
REMEMBERED = 64  # steps: ranks are hardly ever further apart
SHOWN = 400  # characters of a line
LONGEST = 4000

# A line without one of these words matches no signature; looking for them is many times cheaper.
WORDS = (
    "err", "exception", "fail", "fault", "kill", "oom", "out of ", "allocat", "shared mem", "memory limit",
    "physical mem", "corrupt", " access", " reference", "denied", "abort", "dump", "cuda", "cudnn_", "cublas_",
    "cusolver_", "nvrm", "ecc", "preempt", ".so", ".dll", "symbol:", "version ", "module", "syntax", "no space",
    "quota", "ckpt", "checkpoint", "check-point", "check_point", "nan", "loss is", "loss became", "loss was",
    "loss has", "loss went", "loss turned", "loss scale", "finite", "diverg", "output", "not found", "not exist",
    "n't exist", "cannot", "could", "can't", "hdfs", "no such", "nosuch", "eof", "end of", "zip", "truncat",
    "malform", "invalid", "unknown", "missing", "unable", "mpi", "sigsegv", "sigbus", "sigill", "sigfpe", "sigabrt",
    "signal", "terminat", "nccl", "gloo", "orte", "hydra", "ucx", "connection", "socket", "pipe", "route",
    "timed out", "timeout", "low on ", "heartbeat", "horovod", "lost", "mismatch", "must ", "expected", "modified by",
    "exit",
    "returned", "returncode", "status", "panic", "stack", "traceback", "bus ", "illegal", "driver", "in graph",
    "forbidden", "unauthorized", "busy", "address", "not have", "not require", "aligned", "multiplied",
    "insufficient", "watchdog", "smashing", "option", "unrecognized", "hnp", "exceed", "beyond", "same type",
    "same dtype", "tf-record", "tfrecord", "parse", "probably", "to float", "bad_alloc", "compatib", "kernel image",
    "time limit", "timelimit", "walltime", "wall time", "runlimit", "specified deadline", "already in use", "had inf",
    "addrinuse",
    "free", "assert", "the bus", "stale", "mis-match", "violation", "eacces", "notfound", "exhausted", "overflow",
)  # fmt: skip
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LEVEL = re.compile(
    r"\b(?:(WARN(?:ING)?|INFO|DEBUG|NOTICE)|(?:ERROR|FATAL|CRITICAL))\b|((?<![\w/])[WI]\d{4} |[:\[] ?[WI] )"
)
_WARNS = re.compile(r"\w*Warning: |\bwarning:|warnings\.warn\(", re.IGNORECASE)
_WENT_ON = re.compile(
    r"\b(?:retrying|will retry|try again|retry \d|fall(?:ing)? ?back|ignor(?:ed|ing)|skipp(?:ed|ing)|continuing)\b",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"\b(?:epoch|step|iter(?:ation)?|batch|minibatch|samples?)\b[\s:=#\[(]*\d+|\d+%\||\b\d[\d.]*\s?(?:it|steps?|samples?|img|images)/s",
    re.IGNORECASE,
)
_NOT_FINITE = re.compile(r"loss\w*\W{1,4}-?(?:nan|inf)\b", re.IGNORECASE)
_QUOTES_CODE = re.compile(r'File "[^"]*", line \d+(?:, in .*)?$')
_INDENTED = re.compile(r"(?:\S{1,40})?\s{3,}\S")
_LAST_OF_TRACEBACK = re.compile(r"^(?:\S*[\])>|:] ?)*(?:\w+\.)*[A-Z]\w*(?::|$)")
_HANDLED = "During handling of the above exception, another exception occurred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """Why a job failed, and the line that says so; `line` counts from 1 and is None when no line does."""

    reason: str
    category: str  # IF infrastructure, AE the framework, U the user; several stand in one text as in the table
    signature: str | None = None
    line: int | None = None
    text: str | None = None


@dataclass(slots=True)
class _Found:
    signature: Signature
    line: int
    text: str
    progress: int  # lines of progress before it
    tier: int


def classify(text: str) -> Classification:
    """Return why the job of this log failed."""
    return classify_lines(enumerate(text.split("\n"), start=1))


def classify_lines(lines: Iterable[tuple[int, str]]) -> Classification:
    """Return why a job failed; lines come with their numbers and may be a log's beginning and end."""
    reader = _Reader()
    for number, line in lines:
        for part in line.split("\r"):  # a progress bar writes over itself
            if part:
                reader.read(number, part)
    return reader.verdict()


class _Reader:
    """Reads a log line by line and keeps what could be the cause."""

    def __init__(self) -> None:
        self._found: list[_Found] = []
        self._progress = 0
        self._marks: dict[tuple[str, ...], None] = {}  # of the last lines of progress, in order
        self._nan_at: _Found | None = None
        self._quoted = self._ignored = False  # the next line is code; an ignored exception is being told

    def read(self, number: int, raw: str) -> None:
        """Take in one line."""
        line = _shortened(_ANSI.sub("", raw) if "\x1b" in raw else raw).rstrip()
        low = line.lower()
        quoted, self._quoted = self._quoted, False
        if quoted and _INDENTED.match(line) and not _QUOTES_CODE.search(line):
            return
        if _QUOTES_CODE.search(line):
            self._quoted = True
            return
        if _PROGRESS.search(line):
            if not _NOT_FINITE.search(line):
                self._go_on(tuple(_PROGRESS.findall(line)))
            elif self._nan_at is None:
                self._nan_at = _Found(_DIVERGED, number, line, self._progress, _DIVERGED.tier)
        if _HANDLED in line:
            self._forgive()
        elif any(word in low for word in WORDS) and not self._tells_of_ignored(line):
            self._match(number, line)

    def _go_on(self, mark: tuple[str, ...]) -> None:
        """Count a line of progress, but for one that another rank has just written of the same step."""
        self._progress += mark not in self._marks
        self._marks[mark] = None
        if len(self._marks) > REMEMBERED:
            del self._marks[next(iter(self._marks))]

    def _tells_of_ignored(self, line: str) -> bool:
        """Say whether a line belongs to an exception that Python ignored; its last line ends that."""
        if line.startswith("Exception ignored in") or "Exception ignored in:" in line:
            self._ignored = True
            return True
        if self._ignored:
            self._ignored = line.startswith((" ", "\t", "Traceback")) or not _LAST_OF_TRACEBACK.match(line)
            return True
        return False

    def _match(self, number: int, line: str) -> None:
        quiet = _is_quiet(line)
        for signature in SIGNATURES:
            if (signature.at_any_level or not quiet) and signature.pattern.search(line):
                self._found.append(_Found(signature, number, line, self._progress, signature.tier))
                return

    def _forgive(self) -> None:
        """The last exception was handled, and another came of it: one that says little is not the cause."""
        if self._found and self._found[-1].signature.generic:
            self._found[-1].tier = IMPLICIT

    def verdict(self) -> Classification:
        """Return the verdict on all that was read."""
        found = [*self._found, *([self._nan_at] if self._nan_at else [])]
        if not found:
            return Classification(reason=NO_SIGNATURE, category=CATEGORY[NO_SIGNATURE])
        best = min(found, key=self._rank)
        reason = best.signature.reason
        shown = best.text.strip()[:SHOWN]
        return Classification(
            reason=reason, category=CATEGORY[reason], signature=best.signature.name, line=best.line, text=shown
        )

    def _rank(self, found: _Found) -> tuple[bool, int, bool, int]:
        after = self._progress - found.progress
        return after >= SURVIVED, found.tier, after > 0, found.line


_DIVERGED = Signature("loss-nan-in-progress", "Model diverged", AFTERMATH, _NOT_FINITE)


def _shortened(line: str) -> str:
    """Return both ends of a line that is longer than anybody's message."""
    return line if len(line) <= 2 * LONGEST else line[:LONGEST] + line[-LONGEST:]


def _is_quiet(line: str) -> bool:
    """Say whether a line is logged as a warning or less, or says that the job went on."""
    level = _LEVEL.search(line[:90])
    return bool((level and (level[1] or level[2])) or _WARNS.search(line) or _WENT_ON.search(line))
