"""Kernels are interpreted until compiling them pays, and what is compiled belongs to the source that it came from."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.conftest import COMPILED_FIRST

from eunomia import kernels
from eunomia.kernels import KERNELS, PROCESS, Kernel, WorkLeft
from eunomia.kernels.cache import KEPT_VERSIONS, compile_lock, file_name, folder, is_cached, is_compiling, prune_cache
from eunomia.kernels.call_graph import reached_kernels, source_hash
from eunomia.kernels.dispatch import Process

SOURCE = """
from eunomia.kernels import kernel

OFFSET = 1.0

@kernel()
def inner(values):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total + OFFSET

@kernel()
def outer(values, times):
    return inner(values) * times
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Kernel]]:
    """Make the kernels of a source; they keep what is compiled in a folder of their own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.delenv("EUNOMIA_KERNELS", raising=False)
    monkeypatch.setattr(kernels, "KERNELS", [])

    def make(source: str = SOURCE) -> dict[str, Kernel]:
        known: dict[str, object] = {"__name__": "probe"}
        exec(compile(source, str(tmp_path / "probe.py"), "exec"), known)  # noqa: S102 - the test's own source
        return {name: value for name, value in known.items() if isinstance(value, Kernel)}

    return make


def is_compiled(one: Kernel) -> bool:
    return one._compiled is not None


def test_a_first_call_is_interpreted_and_returns_plain_numbers(made: Callable[..., dict[str, Kernel]]) -> None:
    outer = made()["outer"]
    assert type(outer(np.ones(3), 2.0)) is float
    assert not is_compiled(outer)
    assert outer.spent_s > 0


def test_time_in_which_other_programs_had_the_processor_does_not_count(
    made: Callable[..., dict[str, Kernel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()
    process.sample(1.0, 2.0)
    process.sample(1.0, 6.0)
    assert process.processor_share == 0.25
    monkeypatch.setattr(PROCESS, "processor_share", 0.0)
    monkeypatch.setattr(PROCESS, "calls", 1)  # the next call is no sample
    outer = made()["outer"]
    outer(np.ones(3), 2.0)
    assert outer.spent_s == 0.0
    monkeypatch.setattr(PROCESS, "processor_share", 1.0)
    outer(np.ones(3), 2.0)
    assert outer.spent_s > 0.0


def test_a_kernel_is_compiled_when_it_has_taken_as_long_as_compiling_takes(
    made: Callable[..., dict[str, Kernel]],
) -> None:
    outer = made()["outer"]
    before = outer(np.ones(3), 2.0)
    outer.spent_s = outer.cost_s + 1.0
    assert outer(np.ones(3), 2.0) == before
    assert is_compiled(outer)
    assert PROCESS.compiling_s > 0 and PROCESS.compiling_cpu_s > 0


def test_a_kernel_is_compiled_as_soon_as_its_loop_still_has_more_to_do_than_compiling_takes(
    made: Callable[..., dict[str, Kernel]],
) -> None:
    outer = made()["outer"]
    left = WorkLeft(outer)
    outer.spent_s = outer.cost_s / 10
    left.update(0.5)
    assert outer(np.ones(3), 2.0) == 8.0
    assert not is_compiled(outer)
    outer.spent_s = outer.cost_s / 10
    left.update(0.01)
    assert outer(np.ones(3), 2.0) == 8.0
    assert is_compiled(outer)


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_the_environment_may_say_which(
    mode: str, made: Callable[..., dict[str, Kernel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUNOMIA_KERNELS", mode)
    outer = made()["outer"]
    outer.spent_s = 1e9
    assert outer(np.ones(3), 2.0) == 8.0
    assert is_compiled(outer) == (mode == "compiled")


def test_while_another_process_compiles_a_kernel_stays_interpreted(made: Callable[..., dict[str, Kernel]]) -> None:
    outer = made()["outer"]
    outer.spent_s = 1.5 * outer.cost_s
    place = folder()
    assert place is not None
    holder = (
        "import fcntl, sys; lock = open(sys.argv[1], 'a'); fcntl.flock(lock, fcntl.LOCK_EX); "
        "print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(place / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert outer(np.ones(3), 2.0) == 8.0
        assert not is_compiled(outer)
        other.communicate("\n")
    outer.spent_s = 100.0
    assert outer(np.ones(3), 2.0) == 8.0
    assert is_compiled(outer)


def test_a_process_that_compiles_ahead_keeps_no_other_from_compiling(
    made: Callable[..., dict[str, Kernel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs at the lowest priority: on a busy machine others would wait minutes for it."""
    for background in (False, True):
        monkeypatch.setattr(PROCESS, "is_background", background)
        inner = made()["inner"]
        seen: list[bool] = []
        inner.__dict__["dispatcher"] = lambda values, seen=seen: seen.append(is_compiling())
        inner.mode = "compiled"
        inner(np.ones(3))
        assert seen == [not background]


def test_what_is_compiled_is_loaded_again_by_its_like(made: Callable[..., dict[str, Kernel]]) -> None:
    first = made()["outer"]
    assert not is_cached(first)
    first.mode = "compiled"
    first(np.ones(3), 2.0)
    second = made()["outer"]
    assert is_cached(second)
    second.mode = "compiled"
    second(np.ones(3), 2.0)
    assert sum(second.dispatcher.stats.cache_hits.values()) == 1


def test_what_was_compiled_for_a_class_that_was_renamed_is_compiled_again(
    made: Callable[..., dict[str, Kernel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from eunomia.kernels import kernel\n\n@kernel()\ndef first(table):\n    return table.values[0]\n"
    before, after = ModuleType("before"), ModuleType("after")
    for module in (before, after):
        vars(module)["Table"] = namedtuple("Table", "values", module=module.__name__)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    first = made(source)["first"]
    first.mode = "compiled"
    first(vars(before)["Table"](np.ones(2)))
    monkeypatch.delitem(sys.modules, "before")
    again = made(source)["first"]
    again.mode = "compiled"
    assert is_cached(again)
    assert again(vars(after)["Table"](np.full(2, 3.0))) == 3.0


def test_compiled_code_that_names_a_moved_class_is_compiled_again(made: Callable[..., dict[str, Kernel]]) -> None:
    first = made()["outer"]
    first.mode = "compiled"
    first(np.ones(3), 2.0)
    place = folder()
    assert place is not None
    index = place / f"{first.file_name}.nbi"
    with index.open("rb") as file:
        version = pickle.load(file)  # noqa: S301 - written above
    index.write_bytes(pickle.dumps(version) + b"ceunomia.moved\nClass\n.")
    second = made()["outer"]
    second.mode = "compiled"
    assert second(np.ones(3), 2.0) == 8.0
    assert b"eunomia.moved" not in index.read_bytes()


def test_an_edit_drops_what_reaches_it_and_nothing_else(made: Callable[..., dict[str, Kernel]]) -> None:
    before = made()
    assert [each.name for each in reached_kernels(before["outer"])] == ["probe.outer", "probe.inner"]
    constant, caller = made(SOURCE.replace("1.0", "2.0")), made(SOURCE.replace("* times", "* times * 2"))
    assert source_hash(constant["inner"]) != source_hash(before["inner"])
    assert source_hash(constant["outer"]) != source_hash(before["outer"])
    assert source_hash(caller["inner"]) == source_hash(before["inner"])
    assert source_hash(caller["outer"]) != source_hash(before["outer"])
    option = made(SOURCE.replace("@kernel()\ndef inner", "@kernel(allocates=False)\ndef inner"))
    assert source_hash(option["outer"]) != source_hash(before["outer"])


def test_fields_of_a_named_tuple_in_another_order_drop_what_builds_it(made: Callable[..., dict[str, Kernel]]) -> None:
    body = SOURCE.replace("total = 0.0", "total = Pair(0.0, OFFSET).first")
    first, second = (
        made(
            body.replace(
                "OFFSET = ", f"from collections import namedtuple\nPair = namedtuple('Pair', '{fields}')\nOFFSET = ", 1
            )
        )
        for fields in ("first second", "second first")
    )
    assert source_hash(first["inner"]) != source_hash(second["inner"])


def test_comments_and_places_drop_nothing(made: Callable[..., dict[str, Kernel]]) -> None:
    moved = SOURCE.replace("    total = 0.0\n", "    # of all\n    total = 0.0\n").replace("OFFSET = ", "\n\nOFFSET = ")
    assert source_hash(made(moved)["outer"]) == source_hash(made()["outer"])


def test_versions_that_are_gone_do_not_pile_up(tmp_path: Path) -> None:
    for age in range(9):
        for end in ("nbi", "1.nbc"):
            file = tmp_path / f"{file_name('room.step', str(age))}.{end}"
            file.touch()
            os.utime(file, (age, age))
    (tmp_path / f"{file_name('room.other', '0')}.nbi").touch()
    prune_cache(tmp_path, "room.step")
    assert len(list(tmp_path.glob("room.step-*"))) == 2 * KEPT_VERSIONS
    assert (tmp_path / f"{file_name('room.step', '8')}.1.nbc").exists()
    assert len(list(tmp_path.glob("room.other-*"))) == 1


def test_a_folder_that_cannot_be_written_to_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert folder() is None
    assert not is_compiling()
    with compile_lock():
        assert not is_compiling()


def test_importing_the_package_imports_no_compiler_and_touches_neither_environment_nor_files(tmp_path: Path) -> None:
    look = (
        "import os, sys; before = dict(os.environ); import eunomia.core.scheduler, eunomia.policies, eunomia.solvers; "
        "from eunomia.policies import POLICIES, load; [load(name) for name in POLICIES]; "
        "print('numba' in sys.modules, dict(os.environ) == before)"
    )
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-c", look],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]
    assert not cache.exists()


def test_every_kernel_of_the_package_has_a_stamp() -> None:
    from eunomia.policies import POLICIES, load

    for name in POLICIES:
        load(name)
    assert len(KERNELS) > 200
    assert len({source_hash(each) for each in KERNELS[:40]}) == 40


@pytest.mark.parametrize("name", sorted(COMPILED_FIRST))
def test_what_the_tests_compile_first_is_a_kernel(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert isinstance(getattr(import_module(module), function), Kernel)
