"""The folder of a search of a job's shape: what is searched, and what was measured so far."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.problems import refused
from eunomia.job_tuning.measurements import FILE, MeasuredShape, read_measurements, write_measurements
from eunomia.job_tuning.search import JobTuning

SUBJECT, RESULT = "subject.json", "tune-job.json"
OTHER = "give another folder, or repeat that command"


@dataclass(frozen=True, slots=True)
class SearchFolder:
    """`subject` is what was measured, such as the command: measurements of different subjects do not mix."""

    path: Path
    subject: Mapping[str, Any]

    @property
    def table(self) -> Path:
        """The table of measurements."""
        return self.path / FILE

    def known(self) -> list[MeasuredShape]:
        """Return what an earlier search measured here; changes nothing.

        Raises InvalidInput for a folder with something else in it, and for a table with every problem of it.
        """
        if self.path.exists() and not self.path.is_dir():
            raise refused(str(self.path), "--out", None, "it is a file", "name a folder")
        subject = self.path / SUBJECT
        if not subject.is_file():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise refused(str(self.path), "--out", None, "the folder holds something else", "give a new folder")
            return []
        try:
            earlier = json.loads(subject.read_bytes())
        except ValueError:
            raise refused(str(subject), None, None, "it is not JSON", "give another folder to --out") from None
        if earlier != dict(self.subject):
            raise refused(str(self.path), "--out", None, f"the folder holds measurements of {_shown(earlier)}", OTHER)
        return read_measurements(self.table) if self.table.is_file() else []

    def begin(self) -> None:
        """Make the folder."""
        write_whole(self.path / SUBJECT, (json.dumps(dict(self.subject), indent=2) + "\n").encode())

    def keep(self, found: JobTuning, others: Sequence[MeasuredShape] = ()) -> None:
        """Write what was measured, first that of shapes which this search leaves out."""
        write_measurements(self.table, [*others, *found.measured])
        text = json.dumps(found.as_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        write_whole(self.path / RESULT, f"{text}\n".encode())


def _shown(subject: Any) -> str:
    command = subject.get("command") if isinstance(subject, dict) else None
    return " ".join(map(str, command)) if isinstance(command, list) else json.dumps(subject)[:200]
