"""Ctrl-C ends a command with 130, wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from eunomia.cli.errors import INTERRUPTED, handle_errors

if TYPE_CHECKING:
    from conftest import Desk

INTERRUPTING = """\
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import numpy as np
from eunomia.model.answers import Order, Rows
from eunomia.model.policy import PolicyInfo

@dataclass(frozen=True)
class Interrupting:
    info: ClassVar[PolicyInfo] = PolicyInfo(name="interrupting", answer_type="order", objective="", technique="",
                                            paper="", needs=frozenset())

    def decide(self, view):
        if view.types == ("mine",) and Path("interrupt").exists():
            raise KeyboardInterrupt
        return Order(Rows(job=np.arange(view.jobs), type=np.zeros(view.jobs, dtype=np.int64)))
"""
COMPARE = (
    "compare", "tiny.toml", "--policy", "fifo", "--policy", "interrupting.py:Interrupting", "--policy", "las",
    "--seed", "0", "1", "--out", "out",
)  # fmt: skip


@pytest.mark.parametrize("inside_compiled_code", [False, True])
def test_an_interruption_is_reported_and_exits_with_130(
    inside_compiled_code: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    error: BaseException = KeyboardInterrupt()
    if inside_compiled_code:
        error = SystemError("returned a result with an exception set")
        error.__cause__ = KeyboardInterrupt()
    with pytest.raises(typer.Exit) as ended, handle_errors(False):
        raise error
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted; nothing was written\n"


def test_an_error_of_the_interpreter_is_no_interruption() -> None:
    with pytest.raises(SystemError, match="broken"), handle_errors(False):
        raise SystemError("broken")


def write_policy(desk: Desk) -> None:
    """Write a policy that is interrupted on the cluster of the scenario, and not where the policy is checked before."""
    desk.write("interrupting.py", INTERRUPTING)
    desk.write("interrupt", "")
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text().replace("v100", "mine"))


def files(folder: Path) -> dict[str, bytes]:
    """All files of results but those that differ between two runs."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }


def words(*, without: str = "", out: str = "out") -> tuple[str, ...]:
    """The command line `COMPARE` without the policies that have this in their name, as `main` repeats options."""
    from eunomia.cli.app import _repeat_options

    typed = _repeat_options([*COMPARE[:-1], out])
    dropped = [k for k, word in enumerate(typed) if without and without in word and typed[k - 1] == "--policy"]
    return tuple(word for k, word in enumerate(typed) if k not in dropped and k + 1 not in dropped)


def test_an_interrupted_comparison_keeps_what_is_finished_and_the_same_command_goes_on(desk: Desk) -> None:
    write_policy(desk)
    assert desk.type(*words()) == INTERRUPTED
    assert desk.stderr.splitlines()[-1] == (
        "interrupted; 1 of 6 runs are finished, in out; the same command goes on from there"
    )
    kept = {"compare.csv", "report.html", "tenants.csv", "unfinished.json", "fifo__load=1__seed=0"}
    assert {path.name for path in (desk.folder / "out").iterdir()} == kept
    (desk.folder / "interrupt").unlink()
    assert desk.type(*words()) == 0, desk.stderr
    assert "running fifo, load 1" not in desk.stderr and desk.stderr.count("running") == 5
    assert desk.type(*words(out="whole")) == 0
    assert files(desk.folder / "out") == files(desk.folder / "whole")


def test_a_forced_comparison_that_is_interrupted_goes_on_without_force(desk: Desk) -> None:
    write_policy(desk)
    assert desk.type(*words(), "--force") == INTERRUPTED
    assert desk.stderr.splitlines()[-1].endswith("; the same command without --force goes on from there")
    (desk.folder / "interrupt").unlink()
    assert desk.type(*words()) == 0, desk.stderr
    assert "running fifo, load 1" not in desk.stderr


def test_an_interrupted_comparison_of_other_inputs_is_refused_and_kept(desk: Desk) -> None:
    write_policy(desk)
    assert desk.type(*words()) == INTERRUPTED
    trace = (desk.folder / "jobs.csv").read_text()
    desk.write("jobs.csv", trace.replace(",100", ",101"))
    assert "its inputs have changed" in desk.refused(*words())["problems"][0]["rule"]
    desk.write("jobs.csv", trace)
    assert "of other runs" in desk.refused(*words(without="fifo"))["problems"][0]["rule"]
    stored = desk.folder / "out" / "fifo__load=1__seed=0" / "result.npz"
    stored.write_bytes(stored.read_bytes()[:100])
    assert "cannot be read" in desk.refused(*words())["problems"][0]["rule"]
    (desk.folder / "interrupt").unlink()
    assert desk.type(*words(), "--force") == 0
    assert not (desk.folder / "out" / "unfinished.json").exists()


def test_an_interruption_of_the_first_run_leaves_nothing(desk: Desk) -> None:
    write_policy(desk)
    assert desk.type(*words(without="fifo")) == INTERRUPTED
    assert desk.stderr.splitlines()[-1] == "interrupted; nothing was written"
    assert not (desk.folder / "out").exists()
