"""Policies that others wrote: in a file, or in an installed package."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

OUTSIDE = """\
from dataclasses import dataclass, replace
from typing import ClassVar
from eunomia.model.answers import Order, Rows
from eunomia.model.policy import PolicyInfo
from eunomia.policies.order.fifo import Fifo
import numpy as np

@dataclass(frozen=True)
class Lifo:
    level: int = 1
    info: ClassVar[PolicyInfo] = PolicyInfo(name="lifo", answer_type="order", objective="", technique="", paper="",
                                            needs=frozenset())

    def decide(self, view):
        rows = np.arange(view.jobs)[::-1].copy()
        return Order(Rows(job=rows, type=np.zeros(view.jobs, dtype=np.int64)))
"""


def finishing_order(out: Path) -> list[str]:
    with (out / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["job_id"] for row in sorted(rows, key=lambda row: float(row["finished_s"]))]


def test_a_policy_in_a_file_is_found_from_here_and_from_the_scenario(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("lifo.py", OUTSIDE)
    assert finishing_order(desk.simulate("--policy", "lifo.py:Lifo", out="here")) == ["c", "b", "a"]
    (desk.folder / "elsewhere").mkdir()
    monkeypatch.chdir(desk.folder / "elsewhere")
    assert desk.type("simulate", "../tiny.toml", "--policy", "lifo.py:Lifo?level=2", "--out", "../there") == 0
    assert finishing_order(desk.folder / "there") == ["c", "b", "a"]


def test_a_policy_of_an_installed_package_is_known_by_its_name(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.folder / "lifo-1.dist-info").mkdir()
    desk.write("lifo-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: lifo\nVersion: 1\n")
    desk.write(
        "lifo-1.dist-info/entry_points.txt", "[eunomia.policies]\nlifo = outside_lifo:Lifo\nbroken = nowhere:X\n"
    )
    desk.write("outside_lifo.py", OUTSIDE)
    monkeypatch.syspath_prepend(desk.folder)
    assert finishing_order(desk.simulate("--policy", "lifo?level=2")) == ["c", "b", "a"]
    (problem,) = desk.refused("simulate", "tiny.toml", "--out", "other", "--policy", "lifoo")["problems"]
    assert "lifo" in problem["fix"]
    (problem,) = desk.refused("simulate", "tiny.toml", "--out", "other", "--policy", "broken")["problems"]
    assert "ModuleNotFoundError" in problem["rule"]


@pytest.mark.parametrize(
    ("decides", "said"),
    [
        ("pass", "answered NoneType"),
        ("return Order(Rows(job=np.array([99]), type=np.array([0])))", "names a job outside"),
        ("return view.throughput", "add 'throughput' to info.needs"),
    ],
)
def test_an_invalid_answer_is_wrong_input_and_nothing_is_written(desk: Desk, decides: str, said: str) -> None:
    desk.write("wrong.py", OUTSIDE.partition("        rows =")[0] + f"        {decides}\n")
    before = desk.listing()
    assert desk.type("simulate", "tiny.toml", "--policy", "wrong.py:Lifo", "--out", "out") == 2
    assert said in desk.stderr
    assert desk.listing() == before
