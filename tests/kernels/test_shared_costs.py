"""What processes have interpreted for long is compiled beside them, and loaded by the next."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pytest

from eunomia.kernels import Kernel, ahead, dispatch
from eunomia.kernels.arguments import describe, find_named, numba_type
from eunomia.kernels.cache import AHEAD, compile_lock, folder, is_cached
from eunomia.kernels.costs import FILE, KEPT_KERNELS, add_costs, forget_costs, read_costs
from eunomia.solvers.sums import total

PATIENCE_S = 300.0  # for a process of low priority on a busy machine
MODULE = """
from eunomia.kernels import kernel

@kernel()
def outer(values, times):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total * times
"""
# Interprets for as long as the first argument says, then tells the result and whether the cache was used.
CALL = """
import sys
import numpy as np
import probe_module
probe_module.outer(np.ones(3), 2.0)
probe_module.outer.spent_s += float(sys.argv[1])
print(probe_module.outer(np.ones(3), 2.0), probe_module.outer._compiled is not None)
"""


class Pair(NamedTuple):
    """A named tuple that kernels may be given."""

    first: object
    second: object


@pytest.fixture
def run(tmp_path: Path) -> Callable[[float], list[str]]:
    """Run a process that has interpreted a kernel for so many seconds; what it prints."""
    (tmp_path / "probe_module.py").write_text(MODULE, encoding="utf-8")
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    variables.pop("EUNOMIA_KERNELS", None)
    variables.pop("NUMBA_DISABLE_JIT", None)

    def run(seconds: float) -> list[str]:
        command = [sys.executable, "-c", CALL, str(seconds)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.split()

    return run


def compiled_files(cache: Path) -> Iterator[Path]:
    return cache.glob("probe_module.outer-*.nbc")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for another process, however busy the machine is."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_what_two_processes_interpret_for_long_is_compiled_beside_them_and_loaded_by_the_third(
    run: Callable[[float], list[str]], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    assert run(0.12) == ["6.0", "False"]
    assert [round(each, 1) for each in read_costs(cache).values()] == [0.1]
    assert not list(compiled_files(cache))
    assert run(0.12) == ["6.0", "False"]  # neither waits for the compiler
    wait_until(lambda: bool(list(compiled_files(cache))), (cache / ahead.LOG_FILE).read_text())
    wait_until(lambda: not read_costs(cache), "what it had cost is not forgotten")
    assert run(0.5) == ["6.0", "True"]
    assert len(list(compiled_files(cache))) == 1  # for the same types


def test_costs_of_processes_add_up_until_the_kernel_is_compiled(tmp_path: Path) -> None:
    assert read_costs(tmp_path) == {}
    add_costs(tmp_path, {"a": 1.0, "b": 2.0})
    add_costs(tmp_path, {"a": 0.5})
    assert read_costs(tmp_path) == {"b": 2.0, "a": 1.5}
    forget_costs(tmp_path, "a")
    assert read_costs(tmp_path) == {"b": 2.0}
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1.0]", b'{"a": "long", "b": -1.0, "c": NaN, "d": Infinity, "e": true}', b"\xff\x00", b"[" * 100_000],
    ids=["empty", "cut off", "a list", "no seconds", "no text", "deep"],
)
def test_a_file_that_holds_no_costs_counts_as_none_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert read_costs(tmp_path) == {}
    add_costs(tmp_path, {"kernel": 1.0})
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8")) == {"kernel": 1.0}


def test_the_file_keeps_the_kernels_that_were_interpreted_last(tmp_path: Path) -> None:
    add_costs(tmp_path, {f"k{i}": 1.0 for i in range(KEPT_KERNELS)})
    add_costs(tmp_path, {"k0": 1.0, "new": 1.0})
    found = read_costs(tmp_path)
    assert len(found) == KEPT_KERNELS
    assert found["k0"] == 2.0
    assert "new" in found
    assert "k1" not in found


def test_costs_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    add_costs(tmp_path / "missing", {"kernel": 1.0})
    assert read_costs(tmp_path / "missing") == {}


VALUES = [
    True,
    7,
    -(2**63),
    1.5,
    None,
    np.float32(2),
    np.zeros(3),
    np.zeros((2, 3), np.int32),
    np.zeros((2, 3), bool, order="F"),
    np.zeros((4, 6))[::2, ::2],
    np.zeros(1, np.uint8)[::-1],
    np.zeros(0, np.int64),
    (np.zeros(2), np.zeros(3)),
    (1, 2.0, (True, np.zeros(2))),
    (),
    Pair(np.zeros(2), (1, 2)),
    np.zeros(2, [("since", "f8"), ("size", "i4"), ("paused", "?")]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_described_value_has_the_type_that_numba_gives_it(value: object) -> None:
    numba = pytest.importorskip("numba")
    described = json.loads(json.dumps(describe(value)))
    assert numba_type(described) == numba.typeof(value)


def test_an_array_that_is_not_to_be_written_is_described_as_such() -> None:
    numba = pytest.importorskip("numba")
    values = np.zeros(3)
    values.flags.writeable = False
    described = describe(values)
    assert described is not None
    assert numba_type(described) == numba.typeof(values) != numba.typeof(np.zeros(3))


UNKNOWN = {
    "large": 2**63,
    "text": "a",
    "texts": np.array(["a"]),
    "gaps": np.zeros(2, np.dtype("i1,f8", align=True)),
    "inside": (1, {}),
}


@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_what_only_numba_can_type_is_not_compiled_ahead(value: object) -> None:
    assert describe(value) is None
    assert not ahead.request(cast(Kernel, total), (value,))


def test_no_kernel_is_compiled_ahead_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert not ahead.request(cast(Kernel, total), (np.ones(3),))


def test_one_process_of_a_machine_compiles_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "HELPER", ahead.Helper())
    started: list[str] = []
    monkeypatch.setattr(ahead, "_start", lambda: started.append("one"))
    with compile_lock(AHEAD):
        assert not ahead.request(cast(Kernel, total), (np.ones(3),))
        assert started == []
    ahead.request(cast(Kernel, total), (np.ones(3),))
    assert started == ["one"]


def test_only_kernels_are_compiled_ahead() -> None:
    assert find_named(f"{__name__}:Pair") is Pair
    with pytest.raises(TypeError, match="Pair is no kernel, but a type"):
        ahead.compile_for(f"{__name__}:Pair", [])


def test_a_kernel_is_compiled_ahead_for_the_types_of_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel = cast(Kernel, total)
    monkeypatch.delitem(kernel.__dict__, "dispatcher", raising=False)
    assert folder() == tmp_path
    assert not is_cached(kernel)
    ahead.compile_for("eunomia.solvers.sums:total", [describe(np.ones(4))])
    assert is_cached(kernel)
    assert [str(each) for each in kernel.dispatcher.signatures] == ["(Array(float64, 1, 'C', False, aligned=True),)"]


def test_an_installation_that_is_read_only_keeps_compiled_code_in_the_cache_of_the_user(tmp_path: Path) -> None:
    package = tmp_path / "site" / "eunomia"
    shutil.copytree(Path(dispatch.__file__).parents[1] / "kernels", package / "kernels")
    (package / "__init__.py").touch()
    shutil.copy(Path(ahead.__file__).parents[1] / "child_process.py", package)
    shutil.rmtree(package / "kernels" / "__pycache__", ignore_errors=True)
    (package / "kernels" / "__pycache__").touch()  # no user can make a folder there, root neither
    look = "from eunomia.kernels.cache import folder; import eunomia; print(eunomia.__file__, folder(), sep='\\n')"

    def kept_in(**variables: str) -> str:
        hidden = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        around = {name: value for name, value in os.environ.items() if name not in hidden}
        around.update(variables, PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1", HOME=str(tmp_path))
        done = subprocess.run([sys.executable, "-c", look], env=around, capture_output=True, text=True, check=True)
        where, found = done.stdout.splitlines()
        assert where == str(package / "__init__.py")
        return found

    assert kept_in(XDG_CACHE_HOME=str(tmp_path / "xdg")) == str(tmp_path / "xdg" / "eunomia" / "kernels")
    assert kept_in() == str(tmp_path / ".cache" / "eunomia" / "kernels")
    (tmp_path / ".cache" / "eunomia" / "kernels").rmdir()
    (tmp_path / ".cache" / "eunomia" / "kernels").touch()
    assert kept_in() == "None"
