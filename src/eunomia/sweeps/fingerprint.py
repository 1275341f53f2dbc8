"""What a run is made of, as one number: two runs with the same one give the same figures."""

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
    """Return SHA-256, as 64 hexadecimal digits, of the scenario, the content of every file it reads, and our version.

    Where the scenario lies does not count, nor what its files are called by their folders.
    """
    said = scenario.as_dict()
    read = {text: _content(path) for text, path in _files(scenario, said)}
    whole = {"version": __version__, "scenario": said, "files": read}
    return sha256(json.dumps(whole, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _files(scenario: Scenario, said: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield every text of the scenario that names a file or folder, and where that is; twice where it names two."""
    trace, options = scenario.workload.trace, scenario.workload.options
    of_scenario = {key: value for key, value in said["workload"].items() if key not in options}
    for text in _texts({**said, "workload": of_scenario, "world": None}):
        path = next((path for path in _places(scenario, text) if _is_there(path, folder=text == trace)), None)
        if path is not None:
            yield text, path
    beside = scenario.base if trace is None else scenario.resolve(trace).parent
    for text in _texts(options):
        if _is_there(beside / text, folder=False):
            yield f"options: {text}", beside / text


def _places(scenario: Scenario, text: str) -> Iterator[Path]:
    """Yield where a text may lie: as it is, without options for it, and without a class in it, such as a policy's."""
    plain = text.partition("?")[0]
    for name in filter(None, dict.fromkeys((text, plain, plain.rpartition(":")[0]))):
        yield scenario.resolve(name)
        if name.endswith(".py"):
            yield Path(name)  # a policy may also lie where the command was typed


def _is_there(path: Path, *, folder: bool) -> bool:
    """Say whether a text names a file, or a folder where one may stand; what is too long for a name names nothing."""
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
    """Return SHA-256 of a file, or of all files below a folder with their names."""
    if path.is_file():
        stat = path.stat()
        return _file_content(path, stat.st_mtime_ns, stat.st_size)
    found = {str(file.relative_to(path)): _content(file) for file in sorted(path.rglob("*")) if file.is_file()}
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=256)
def _file_content(path: Path, changed_ns: int, size: int) -> str:
    """Return SHA-256 of a file, read once while it does not change."""
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
