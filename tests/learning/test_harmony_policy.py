"""The policy `harmony`: its model file, shipped or one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import eunomia
from eunomia import InvalidInput
from eunomia.learning.harmony.policy import Harmony
from eunomia.learning.model_file import ModelFile, read_model, write_model
from eunomia.learning.shipped import FOLDER

SHIPPED = FOLDER / "harmony.safetensors"


def test_a_wrong_model_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "scenario.toml"
    other.write_text("[cluster]\naccelerators = { v100 = 1 }\n" * 20)
    for text, message in (("absent.safetensors", "no such file"), (str(other), "no model file")):
        with pytest.raises(ValueError, match=f"model: .*{message}"):
            Harmony(model=text)
    good = read_model(SHIPPED)
    names = {**good.header.architecture, "types": [*good.header.architecture["types"][:-1], "other"]}
    header = type(good.header)(**{**_fields(good), "architecture": names})
    write_model(tmp_path / "m.safetensors", ModelFile(header=header, arrays=good.arrays))
    with pytest.raises(ValueError, match="without the features 'job_type=other'"):
        Harmony(model=str(tmp_path / "m.safetensors"))
    with pytest.raises(InvalidInput, match="did you mean 'model'"):
        eunomia.simulate({"cluster": {"accelerators": {"v100": 1}}, "workload": {"generator": "poisson", "jobs": 1},
                          "policy": {"name": "harmony", "modle": "x"}})  # fmt: skip


def _fields(model: ModelFile) -> dict[str, object]:
    return {name: getattr(model.header, name) for name in type(model.header).__slots__}


def test_the_shipped_model_is_small_and_says_what_it_learnt_from() -> None:
    assert SHIPPED.stat().st_size < 1_000_000
    header = read_model(SHIPPED).header
    assert header.trained == "harmony" and header.seed == 0 and len(header.scenario_sha256) == 64
    assert header.metrics["reward_model_error"] < 0.05
