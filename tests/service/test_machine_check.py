"""The world of this machine is this machine: other nodes, and accelerators that its driver lacks, are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.backends.processes import discovery
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.service.site import load_site

TWO_BOXES = 'nodes = [{ type = "a100", count = 2, accelerators = 4 }]'


def site(folder: Path, cluster: str, service: str = "", world: str = "") -> Path:
    path = folder / "site.toml"
    path.write_text(f"[service]\n{service}\n[cluster]\n{cluster}\n[policy]\nname = 'fifo'\n{world}")
    return path


def shows(patch: pytest.MonkeyPatch, *groups: tuple[str, int]) -> None:
    """Let the driver of this machine show these accelerators; without any there is no driver."""

    def discovered() -> tuple[list[dict[str, Any]], dict[str, float]]:
        if not groups:
            raise InvalidInput([Problem(file="this machine", rule="the driver does not answer", fix="declare them")])
        return [{"type": kind, "accelerators": count} for kind, count in groups], {}

    patch.setattr(discovery, "discovered", discovered)


@pytest.mark.parametrize("cluster", [TWO_BOXES, "accelerators = { cpu = 4 }\naccelerators_per_node = 2"])
def test_two_nodes_of_a_type_are_refused_and_the_ways_to_several_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str
) -> None:
    shows(monkeypatch)
    with pytest.raises(InvalidInput) as caught:
        load_site(site(tmp_path, cluster))
    (problem,) = caught.value.problems
    assert "2 nodes of the type" in problem.rule and "this machine alone" in problem.rule
    assert all(word in str(problem.fix) for word in ("ray", "slurm", "kubernetes", "made_up = true"))
    assert load_site(site(tmp_path, cluster, "made_up = true")).setup.topology.nodes == 2


def test_more_accelerators_than_the_driver_shows_are_refused_and_as_many_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows(monkeypatch, ("a100-sxm4-40gb", 2))
    with pytest.raises(InvalidInput, match="4 accelerators are declared, and NVIDIA's driver shows 2"):
        load_site(site(tmp_path, "accelerators = { a100 = 4 }"))
    load_site(site(tmp_path, "accelerators = { a100 = 4 }", "made_up = true"))
    load_site(site(tmp_path, "accelerators = { big = 1, small = 1, cpu = 64 }"))  # places without a device count not
    load_site(site(tmp_path, "accelerators = { a100 = 2, cpu = 64 }"))
    load_site(site(tmp_path, "discover = true"))
    shows(monkeypatch)  # such as a machine with accelerators of another maker
    load_site(site(tmp_path, "accelerators = { mi300 = 8, cpu = 8 }"))


def test_several_nodes_of_an_engine_are_its_own_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shows(monkeypatch)
    assert load_site(site(tmp_path, TWO_BOXES, world="[world]\nbackend = 'slurm'\n")).setup.topology.nodes == 2
