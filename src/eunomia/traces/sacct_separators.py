"""Lines of sacct that have the separator, or a line break, inside a value: sacct does not quote.

Only free text such as a job's name can hold one. Where such fields are not read, the fields before the first and after
the last of them are certain; those between them are if only one way to cut the line gives each the form of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

FREE_TEXT = ("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "constraints", "reason",
             "container", "extra", "stdin", "stdout", "stderr", "wckey", "reservation", "failednode")  # fmt: skip
MOST_CUTS = 2_000  # ways to cut a line that are tried
MOST_LINES = 20  # of one value
_NONE = r"||unknown|none|\(null\)|n/a|invalid"
_TIME = rf"(?i:\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d|-?\d+{_NONE})"
_SPAN = rf"(?i:(\d+-)?(\d+:)?\d+:\d+(\.\d+)?|-?\d+{_NONE})"
_TRES = r"([\w/.:-]+=[\w.:-]*(,[\w/.:-]+=[\w.:-]*)*)?"
_NAME = r"[^|\n]*"
FORMS = {
    "JobID": r"\d+[\d_+.\[\]%,-]*(\.\w+)?", "JobIDRaw": r"\d+(\.\w+)?", "Submit": _TIME, "Eligible": _TIME,
    "Start": _TIME, "End": _TIME, "Elapsed": _SPAN, "ElapsedRaw": r"(?i:\d*|-1|invalid)", "Suspended": _SPAN,
    "State": r"[A-Z_]*( by \w+|\+)?", "NNodes": r"\d*", "AllocNodes": r"\d*", "Restarts": r"\d*", "AllocTRES": _TRES,
    "ReqTRES": _TRES,
}  # fmt: skip
_FORM = {name: re.compile(form) for name, form in FORMS.items()}
NAMED = ("Account", "User", "Partition", "QOS", "Cluster")  # values that other lines have, too


@dataclass(frozen=True, kw_only=True)
class LineCutter:
    """Cuts lines into the fields of a header. `place` maps the fields that are read to their places."""

    fields: Sequence[str]
    separator: str
    place: Mapping[str, int]
    known: Mapping[str, frozenset[str]]  # values of NAMED in lines that are whole

    def free(self) -> tuple[int, ...]:
        """Return the places of fields that may hold any text: by their usual names, else all that are not read."""
        read = set(self.place.values())
        unread = [k for k, name in enumerate(self.fields) if k not in read and name]
        return tuple(k for k in unread if self.fields[k].casefold() in FREE_TEXT) or tuple(unread)

    def cut(self, text: str) -> list[str] | None:
        """Return the cells of a line with more separators than the header; None if what is read is not certain."""
        words = text.rstrip("\r").split(self.separator)
        more, free = len(words) - len(self.fields), self.free()
        if more < 0 or not free:
            return None
        found = {tuple(cells[k] for k in self.place.values()): cells for cells in self._fitting(words, more, free)}
        if len(found) > 1:
            found = {key: cells for key, cells in found.items() if self._is_known(cells)}
        return next(iter(found.values())) if len(found) == 1 else None

    def _fitting(self, words: list[str], more: int, free: tuple[int, ...]) -> Iterator[list[str]]:
        """Yield the ways to cut the line in which each field that is read has the form of its kind."""
        for tried, chosen in enumerate(combinations_with_replacement(free, more)):
            if tried >= MOST_CUTS:
                return
            cells, at = [], 0
            for k in range(len(self.fields)):
                size = 1 + chosen.count(k)
                cells.append(self.separator.join(words[at : at + size]))
                at += size
            if all(self._fits(name, cells[k]) for name, k in self.place.items()) and (self.fields[-1] or not cells[-1]):
                yield cells

    def _fits(self, name: str, cell: str) -> bool:
        form = _FORM.get(name)
        return "\n" not in cell and (form is None or form.fullmatch(cell.strip()) is not None)

    def _is_known(self, cells: Sequence[str]) -> bool:
        """Say whether other lines have the same account, user and so on."""
        return all(cells[self.place[name]].strip() in values for name, values in self.known.items())


def cut_lines(cutter: LineCutter, damaged: Sequence[tuple[int, str]]) -> tuple[dict[int, list[str]], set[int]]:
    """Return the cells of lines that could be cut, by the number of their first line, and the numbers of all of them.

    `damaged` are number and text of lines that do not have the fields of the header; some are parts of one line.
    """
    cells: dict[int, list[str]] = {}
    used: set[int] = set()
    width = len(cutter.fields)
    for k, (number, text) in enumerate(damaged):
        if number in used:
            continue
        numbers, joined = [number], text
        for later, more in _following(damaged[k + 1 : k + MOST_LINES], number):
            if joined.count(cutter.separator) + 1 >= width:
                break
            numbers, joined = [*numbers, later], f"{joined}\n{more}"
        found = cutter.cut(joined)
        if found is not None:
            cells[number] = found
            used.update(numbers)
    return cells, used


def _following(damaged: Iterable[tuple[int, str]], number: int) -> Iterator[tuple[int, str]]:
    """Yield the lines that follow on a line without a gap."""
    for expected, (later, text) in enumerate(damaged, start=number + 1):
        if later != expected:
            return
        yield later, text
