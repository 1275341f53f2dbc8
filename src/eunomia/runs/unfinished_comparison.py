"""What an interrupted comparison leaves in its folder, so that the same command goes on with it.

unfinished.json   the hash of each run that is finished, by its folder
RUN/result.npz    its whole result: arrays as NPZ, the rest as JSON
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from eunomia.metrics import Figures
from eunomia.metrics.sharing import Sharing
from eunomia.metrics.summary import RunTables
from eunomia.model.arrays import Array
from eunomia.runs.compare import Case
from eunomia.runs.fingerprint import scenario_hash
from eunomia.runs.result_files import write_json
from eunomia.runs.results_dir import UNFINISHED, refused_out
from eunomia.runs.simulation import Result
from eunomia.scenario import Scenario, scenario_from_dict

STORED = "result.npz"
_TREE = "tree"  # name of the JSON in the file
_DATACLASSES: dict[str, Any] = {each.__name__: each for each in (Figures, RunTables, Sharing)}
_SCENARIO = "scenario"  # with what the run has decided, such as a placement left to it
_LEFT_OUT = (_SCENARIO, "record", "outcomes")  # of a result: stored apart, a file beside, and of real runs


def keep_unfinished(folder: Path, done: Sequence[tuple[Case, Result]]) -> None:
    """Write what the same command needs to go on, into the folder of the results so far."""
    for case, result in done:
        (folder / case.folder / STORED).write_bytes(_stored(result))
    write_json(folder / UNFINISHED, {case.folder: scenario_hash(case.scenario) for case, _ in done})


def finished_runs(place: Path, combinations: Sequence[Case]) -> dict[str, Result]:
    """Return the results that an interrupted comparison left in `place`, by folder; none where there is none.

    Raises InvalidInput where it has a run that is none of `combinations`, or is not the same any more.
    """
    if not (place / UNFINISHED).is_file():
        return {}
    wanted = {case.folder: case for case in combinations}
    try:
        hashes = json.loads((place / UNFINISHED).read_text(encoding="utf-8"))
        same = all(name in wanted and scenario_hash(wanted[name].scenario) == each for name, each in hashes.items())
        found = {name: _restored(place / name / STORED, wanted[name].scenario) for name in hashes} if same else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadZipFile) as error:
        rule = f"the folder holds an interrupted comparison that cannot be read ({type(error).__name__}: {error})"
        raise refused_out(place, rule, "give another one, or --force to begin anew") from error
    if not same:
        rule = "the folder holds an interrupted comparison of other runs, or its inputs have changed since"
        raise refused_out(place, rule, "give another one, or --force to begin anew")
    return found


def copy_runs(place: Path, folder: Path, names: Sequence[str]) -> None:
    """Copy the folders of finished runs from `place` to a new results folder."""
    for name in names:
        shutil.copytree(place / name, folder / name, ignore=shutil.ignore_patterns(STORED))


def _stored(result: Result) -> bytes:
    arrays: dict[str, Array] = {}
    kept = {each.name: getattr(result, each.name) for each in fields(result) if each.name not in _LEFT_OUT}
    tree = json.dumps({_TREE: _tree(kept, arrays), _SCENARIO: result.scenario.as_dict()}).encode()
    file = BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{_TREE: np.frombuffer(tree, dtype=np.uint8), **arrays})
    return file.getvalue()


def _restored(path: Path, scenario: Scenario) -> Result:
    with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file:
        found = json.loads(file[_TREE].tobytes())
        done = scenario_from_dict(found[_SCENARIO], scenario.base, scenario.name)
        return Result(scenario=done, **_value(found[_TREE], file))


def _tree(value: Any, arrays: dict[str, Array]) -> Any:
    """Return a value as JSON, in which arrays are names in `arrays`."""
    match value:
        case np.ndarray() if value.dtype == object:
            return {"texts": value.tolist()}
        case np.ndarray():
            arrays[f"a{len(arrays)}"] = value
            return {"array": f"a{len(arrays) - 1}"}
        case np.generic():
            return value.item()
        case Mapping():
            return {"map": {key: _tree(each, arrays) for key, each in value.items()}}
        case tuple() | list():
            return [_tree(each, arrays) for each in value]
        case _ if is_dataclass(value) and type(value).__name__ in _DATACLASSES:
            parts = {each.name: _tree(getattr(value, each.name), arrays) for each in fields(value)}
            return {"class": type(value).__name__, "map": parts}
    return value


def _value(tree: Any, arrays: Mapping[str, Array]) -> Any:
    match tree:
        case {"texts": texts}:
            return np.array(texts, dtype=object)
        case {"array": name}:
            return arrays[name]
        case {"class": name, "map": parts}:
            return _DATACLASSES[name](**{key: _value(each, arrays) for key, each in parts.items()})
        case {"map": parts}:
            return {key: _value(each, arrays) for key, each in parts.items()}
        case list():
            return tuple(_value(each, arrays) for each in tree)
    return tree
