"""`eunomia train`: writes a model with its curve, keeps the best on Ctrl-C, resumes to the same bytes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.inputs.install_hint import install_command
from eunomia.learning import training
from eunomia.learning.model_file import Feature, read_model
from eunomia.model.arrays import Array
from eunomia.scenario import Scenario

SCENARIO = '[cluster]\naccelerators = { v100 = 1 }\n[workload]\ngenerator = "philly-like"\njobs = 2\n'


class RandomSearch:
    """Looks for the number 3 by random steps."""

    default_steps: ClassVar[int] = 6
    judge_every: ClassVar[int] = 2
    interrupt_at: ClassVar[int] = -1
    features: tuple[Feature, ...] = (Feature(name="x"),)
    architecture: Mapping[str, Any] = {"net": [1]}

    def __init__(self, scenario: Scenario, steps: int, rng: np.random.Generator) -> None:
        self.rng, self.x = rng, np.zeros(1)

    def train(self, step: int) -> None:
        if step == self.interrupt_at:
            raise KeyboardInterrupt
        self.x = self.x + self.rng.normal(size=1)

    def judge(self) -> dict[str, float]:
        return {"closeness": -abs(float(self.x[0]) - 3.0)}

    def arrays(self) -> dict[str, Array]:
        return {"x": self.x}

    def state(self) -> dict[str, Array]:
        return {"x": self.x}

    def restore(self, state: Mapping[str, Array]) -> None:
        self.x = np.array(state["x"])


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(training.TRAINABLES, "tiny", f"{__name__}:RandomSearch")
    monkeypatch.setattr(training, "trainable_class", lambda name: RandomSearch)
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def run(scenario: Path, out: str, *more: str) -> Any:
    return CliRunner().invoke(app, ["train", "tiny", str(scenario), "--out", str(scenario.parent / out), *more])


def test_the_model_its_curve_and_the_picture_are_written(scenario: Path) -> None:
    ran = run(scenario, "m.safetensors", "--json")
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    about = json.loads((scenario.parent / "m.safetensors.json").read_text())
    assert [point["step"] for point in about["curve"]] == [0, 2, 4, 6]
    best = max(about["curve"], key=lambda point: point["closeness"])
    assert said["closeness"] == best["closeness"] and said["best_step"] == about["steps"] == best["step"]
    header = read_model(scenario.parent / "m.safetensors").header
    assert (
        header.steps == best["step"] and header.metrics == {"closeness": best["closeness"]} and header.trained == "tiny"
    )
    assert b"<svg" in (scenario.parent / "m.safetensors.svg").read_bytes()
    assert not (scenario.parent / "m.safetensors.checkpoint").exists()


def test_interrupted_it_keeps_the_best_and_resumed_it_ends_with_the_same_bytes(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(scenario, "whole.safetensors").exit_code == 0
    monkeypatch.setattr(RandomSearch, "interrupt_at", 5)
    stopped = run(scenario, "m.safetensors")
    assert stopped.exit_code == 130 and "--resume" in stopped.stderr
    assert read_model(scenario.parent / "m.safetensors").header.steps <= 4
    monkeypatch.setattr(RandomSearch, "interrupt_at", -1)
    assert run(scenario, "m.safetensors", "--resume").exit_code == 0
    whole, resumed = (scenario.parent / name for name in ("whole.safetensors", "m.safetensors"))
    assert resumed.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(("more", "message"), [(("--seed", "9"), "seed"), (("--steps", "8"), "--steps 6")])
def test_a_checkpoint_of_another_training_is_refused_by_name(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(RandomSearch, "interrupt_at", 5)
    run(scenario, "m.safetensors")
    before = (scenario.parent / "m.safetensors").read_bytes()
    ran = run(scenario, "m.safetensors", "--resume", *more)
    assert ran.exit_code == 2 and message in ran.stderr
    assert (scenario.parent / "m.safetensors").read_bytes() == before


def test_a_metric_that_is_not_a_number_ends_the_training_and_writes_nothing(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RandomSearch, "judge", lambda self: {"closeness": float("nan")})
    ran = run(scenario, "m.safetensors")
    assert ran.exit_code == 2 and "closeness" in ran.stderr and "finite" in ran.stderr
    assert not list(scenario.parent.glob("m.safetensors*"))


def test_weights_that_are_not_numbers_end_the_training_at_once_and_write_nothing(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network of such weights still decides something, so that its metric may look like any other."""
    plain = RandomSearch.train

    def diverges(self: RandomSearch, step: int) -> None:
        plain(self, step)
        if step == 4:
            self.x[:] = np.nan

    assert run(scenario, "old.safetensors").exit_code == 0
    before = (scenario.parent / "old.safetensors").read_bytes()
    monkeypatch.setattr(RandomSearch, "train", diverges)
    monkeypatch.setattr(RandomSearch, "judge", lambda self: {"closeness": 1.0})
    for out in ("m.safetensors", "old.safetensors"):
        ran = run(scenario, out, "--force")
        assert ran.exit_code == 2 and "after 5 steps the weights x are not finite" in ran.stderr
    assert not (scenario.parent / "m.safetensors").exists()
    assert (scenario.parent / "old.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda raw: raw[:-3], "truncated"), (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "altered"),
     (lambda raw: None, "no such file")],
)  # fmt: skip
def test_a_checkpoint_that_is_missing_truncated_or_altered_is_refused_by_name(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes | None], message: str
) -> None:
    monkeypatch.setattr(RandomSearch, "interrupt_at", 5)
    run(scenario, "m.safetensors")
    model, checkpoint = (scenario.parent / f"m.safetensors{end}" for end in ("", ".checkpoint"))
    before, raw = model.read_bytes(), change(checkpoint.read_bytes())
    checkpoint.unlink() if raw is None else checkpoint.write_bytes(raw)
    ran = run(scenario, "m.safetensors", "--resume")
    assert ran.exit_code == 2 and "m.safetensors.checkpoint" in ran.stderr and message in ran.stderr
    assert model.read_bytes() == before


@pytest.mark.parametrize("name", sorted(training.TRAINABLES))
def test_without_the_extra_training_is_answered_with_the_line_that_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, training.TRAINABLES[name].partition(":")[0], raising=False)
    monkeypatch.delitem(sys.modules, "eunomia.learning.torch_state", raising=False)
    (tmp_path / "s.toml").write_text(SCENARIO)
    words = ["train", name, str(tmp_path / "s.toml"), "--out", str(tmp_path / "m.safetensors")]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2 and "torch" in ran.stderr and install_command("learning") in ran.stderr.replace("\n", "")
    assert not list(tmp_path.glob("m.*"))


@pytest.mark.parametrize("name", ["symphony", "symphony-black-box"])
def test_what_the_companion_trains_is_answered_without_it_with_the_line_that_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [known for known in sys.modules if known.startswith("eunomia_reproduction")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(
        sys, "path", [place for place in sys.path if not (Path(place) / "eunomia_reproduction").exists()]
    )
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if "editable" not in str(one)])
    (tmp_path / "s.toml").write_text(SCENARIO)
    ran = CliRunner().invoke(app, ["train", name, str(tmp_path / "s.toml"), "--out", str(tmp_path / "m.safetensors")])
    assert ran.exit_code == 2 and "eunomia-scheduler-reproduction" in ran.stderr
    assert install_command(companion="reproduction") in ran.stderr.replace("\n", "")
    assert not list(tmp_path.glob("m.*"))


def test_an_unknown_name_and_a_file_in_the_way_are_refused(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(scenario, "m.safetensors")
    assert run(scenario, "m.safetensors").exit_code == 2
    monkeypatch.undo()
    ran = run(scenario, "n.safetensors")
    assert ran.exit_code == 2 and "tiny" in ran.stderr
