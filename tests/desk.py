"""The command line, typed in this process, and a folder to type it in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from eunomia.cli.app import app

HEADER = "job_id,submitted_s,scale_factor,job_type,duration_s\n"


def typed(*words: object) -> Result:
    """Run `eunomia words…`. What no command line may do, raise, is raised here."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class CommandDesk:
    """A folder to stand in, and what was typed last."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.code, self.stdout, self.stderr = 0, "", ""

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def type(self, *words: str) -> int:
        """Run `eunomia words…`; return its exit code."""
        result = typed(*words)
        self.code, self.stdout, self.stderr = result.exit_code, result.stdout, result.stderr
        return self.code

    def listing(self) -> list[str]:
        """Return everything in the folder, hidden or not, but for compiled Python."""
        return sorted(str(path) for path in self.folder.rglob("*") if "__pycache__" not in str(path))

    def refused(self, *words: str) -> dict[str, Any]:
        """Type what must be answered with exit code 2, the problems as the only output, and nothing written."""
        before = self.listing()
        assert self.type(*words, "--json") == 2, self.stdout
        assert self.listing() == before
        answer = json.loads(self.stdout)
        assert list(answer) == ["error"]
        error: dict[str, Any] = answer["error"]
        assert set(error) == {"count", "problems"}
        assert len(error["problems"]) == min(error["count"], 20)
        for problem in error["problems"]:
            assert list(problem) == ["file", "row", "column", "value", "rule", "fix"]
            assert problem["file"]
            assert problem["rule"]
            assert problem["fix"]
        return error

    def places(self, *words: str) -> list[tuple[str, int | None, str | None]]:
        """Return (name of the file, row, column) of every problem of what must be refused."""
        problems = self.refused(*words)["problems"]
        return [(Path(problem["file"]).name, problem["row"], problem["column"]) for problem in problems]
