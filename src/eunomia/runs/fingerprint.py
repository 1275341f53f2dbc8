"""Hashes everything that a run depends on: runs with the same hash have the same results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from eunomia import __version__
from eunomia.scenario import Scenario


def scenario_hash(scenario: Scenario) -> str:
    """Return SHA-256, as 64 hexadecimal digits, of the scenario, its files' content, and the version of this package.

    The folders of the scenario and of its files do not matter.
    """
    data = scenario.as_dict()
    files = {text: _content(path) for text, path in _files(scenario, data)}
    inputs = {"version": __version__, "scenario": data, "files": files}
    return sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def input_files(scenario: Scenario) -> list[Path]:
    """Return the files and folders that a run of the scenario reads."""
    return [path for _, path in _files(scenario, scenario.as_dict())]


def _files(scenario: Scenario, data: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield every string of the scenario that names a file or folder, with its path; twice where it names two."""
    trace, options = scenario.workload.trace, scenario.workload.options
    of_scenario = {key: value for key, value in data["workload"].items() if key not in options}
    for text in _texts({**data, "workload": of_scenario, "world": None}):
        path = next((path for path in _candidates(scenario, text) if _exists(path, folder=text == trace)), None)
        if path is not None:
            yield text, path
    beside = scenario.base if trace is None else scenario.resolve(trace).parent
    for text in _texts(options):
        if _exists(beside / text, folder=False):
            yield f"options: {text}", beside / text


def _candidates(scenario: Scenario, text: str) -> Iterator[Path]:
    """Yield possible paths of a string: as it is, without `?options`, and without `:Class`."""
    plain = text.partition("?")[0]
    for name in filter(None, dict.fromkeys((text, plain, plain.rpartition(":")[0]))):
        yield scenario.resolve(name)
        if name.endswith(".py"):
            yield Path(name)  # a policy is also searched for in the current folder


def _exists(path: Path, *, folder: bool) -> bool:
    """Whether a path is a file, or with `folder` a folder; False for a name that is too long."""
    try:
        return path.is_file() or (folder and path.is_dir())
    except OSError:
        return False


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list() | tuple():
            for each in value:
                yield from _texts(each)
        case str() if value and len(value) < 4096 and "\0" not in value:
            yield value


def _content(path: Path) -> str:
    """Return SHA-256 of a file, or of the names and contents of all files below a folder."""
    if path.is_file():
        stat = path.stat()
        return _file_content(path, stat.st_mtime_ns, stat.st_size)
    contents = {str(file.relative_to(path)): _content(file) for file in sorted(path.rglob("*")) if file.is_file()}
    return sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=256)
def _file_content(path: Path, changed_ns: int, size: int) -> str:
    """Return SHA-256 of a file; cached until the file changes."""
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
