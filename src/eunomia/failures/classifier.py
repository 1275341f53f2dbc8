"""Finds the line of a job's log that names the reason of its failure.

Lines are ranked by the tier of their signature, then by whether the job continued after the line, then by position. A
line followed by long progress ranks after all others. A step that many ranks log is one step.
Lines logged as a warning, lines of a retry or fallback, code in a traceback, and exceptions that Python ignored do not
count, unless their signature counts at any level.

Method: ordered signatures, explicit before implicit, as in M. Jeon et al., USENIX ATC 2019, section 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eunomia.failures.philly_reasons import REASONS
from eunomia.failures.signatures import AFTERMATH, IMPLICIT, SIGNATURES, Signature

NO_SIGNATURE = "No signature"
CATEGORY = {reason.name: reason.category for reason in REASONS}
SURVIVED = 10  # lines of progress after a line that cannot have ended the job
REMEMBERED = 64  # steps: ranks are rarely further apart
SHOWN = 400  # characters of a line in a classification
LONGEST = 4000  # characters read at each end of a line

# A line without one of these words matches no signature; a search for them is many times cheaper.
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
_CONTINUES = re.compile(
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
    """The reason of a failure, and the line that shows it; `line` counts from 1 and is None if no line does."""

    reason: str
    category: str  # IF infrastructure, AE the framework, U the user; several are joined by commas
    signature: str | None = None
    line: int | None = None
    text: str | None = None


@dataclass(slots=True)
class _Match:
    signature: Signature
    line: int
    text: str
    progress: int  # lines of progress before it
    tier: int


def classify(text: str) -> Classification:
    """Return the reason of the failure in this log."""
    return classify_lines(enumerate(text.split("\n"), start=1))


def classify_lines(lines: Iterable[tuple[int, str]]) -> Classification:
    """Return the reason of the failure; `lines` have numbers and may be only the beginning and the end of a log."""
    reader = _Reader()
    for number, line in lines:
        for part in line.split("\r"):  # a progress bar overwrites its line
            if part:
                reader.read(number, part)
    return reader.classification()


class _Reader:
    """Reads a log line by line and keeps the lines that may name the cause."""

    def __init__(self) -> None:
        self._matches: list[_Match] = []
        self._progress = 0
        self._marks: dict[tuple[str, ...], None] = {}  # steps of the last lines of progress, in order
        self._nan_at: _Match | None = None
        self._quoted = self._ignored = False  # the next line is code, or belongs to an ignored exception

    def read(self, number: int, raw: str) -> None:
        """Add a line to the log."""
        line = _shorten(_ANSI.sub("", raw) if "\x1b" in raw else raw).rstrip()
        low = line.lower()
        quoted, self._quoted = self._quoted, False
        if quoted and _INDENTED.match(line) and not _QUOTES_CODE.search(line):
            return
        if _QUOTES_CODE.search(line):
            self._quoted = True
            return
        if _PROGRESS.search(line):
            if not _NOT_FINITE.search(line):
                self._count_progress(tuple(_PROGRESS.findall(line)))
            elif self._nan_at is None:
                self._nan_at = _Match(_DIVERGED, number, line, self._progress, _DIVERGED.tier)
        if _HANDLED in line:
            self._demote_last()
        elif any(word in low for word in WORDS) and not self._is_of_ignored_exception(line):
            self._match(number, line)

    def _count_progress(self, mark: tuple[str, ...]) -> None:
        """Count a line of progress, unless another rank has just logged the same step."""
        self._progress += mark not in self._marks
        self._marks[mark] = None
        if len(self._marks) > REMEMBERED:
            del self._marks[next(iter(self._marks))]

    def _is_of_ignored_exception(self, line: str) -> bool:
        """Say whether a line belongs to an exception that Python ignored."""
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
                self._matches.append(_Match(signature, number, line, self._progress, signature.tier))
                return

    def _demote_last(self) -> None:
        """Lower the tier of the last match if it is generic: its exception was handled, and another followed."""
        if self._matches and self._matches[-1].signature.generic:
            self._matches[-1].tier = IMPLICIT

    def classification(self) -> Classification:
        """Return the classification of the lines read."""
        matches = [*self._matches, *([self._nan_at] if self._nan_at else [])]
        if not matches:
            return Classification(reason=NO_SIGNATURE, category=CATEGORY[NO_SIGNATURE])
        best = min(matches, key=self._rank)
        reason = best.signature.reason
        shown = best.text.strip()[:SHOWN]
        return Classification(
            reason=reason, category=CATEGORY[reason], signature=best.signature.name, line=best.line, text=shown
        )

    def _rank(self, match: _Match) -> tuple[bool, int, bool, int]:
        after = self._progress - match.progress
        return after >= SURVIVED, match.tier, after > 0, match.line


_DIVERGED = Signature("loss-nan-in-progress", "Model diverged", AFTERMATH, _NOT_FINITE)


def _shorten(line: str) -> str:
    """Return a line, or both ends of a very long one."""
    return line if len(line) <= 2 * LONGEST else line[:LONGEST] + line[-LONGEST:]


def _is_quiet(line: str) -> bool:
    """Say whether a line is logged as a warning or less, or reports that the job continues."""
    level = _LEVEL.search(line[:90])
    return bool((level and (level[1] or level[2])) or _WARNS.search(line) or _CONTINUES.search(line))
