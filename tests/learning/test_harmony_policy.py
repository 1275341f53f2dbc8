"""The policy `harmony`: one model file gives the same decisions in a simulation and in a real run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import eunomia
from eunomia import InvalidInput
from eunomia.learning.harmony.policy import Harmony
from eunomia.learning.model_file import ModelFile, read_model, write_model
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered
from eunomia.records.record import Record, to_json
from eunomia.runs.local_run import run_real
from eunomia.scenario import load_scenario
from eunomia.setup.run_config import set_up

SHIPPED = Path(eunomia.__file__).parent / "learning" / "models" / "harmony.safetensors"
TYPES = ("resnext", "ctc", "resnet", "wlm")


def scenario(folder: Path, world: str) -> Path:
    """Six short jobs of four types on four seats, all at once."""
    lines = ["job_id,submitted_s,scale_factor,job_type,total_steps,command"]
    lines += [f'{m},0,{1 + m % 2},{TYPES[m % 4]},{m + 1},"[""python"", ""-c"", ""pass""]"' for m in range(6)]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    shutil.copy(SHIPPED, folder / "copy.safetensors")
    path = folder / f"{world}.toml"
    path.write_text(
        '[cluster]\nnodes = [{ type = "cpu", accelerators = 4 }]\n[workload]\ntrace = "jobs.csv"\n'
        '[throughputs]\nsource = "uniform"\nreference_type = "cpu"\n'
        f'[policy]\nname = "harmony"\nmodel = "{folder}/copy.safetensors"\n[world]\nbackend = "{world}"\n'
    )
    return path


def first_answer(scenario: Path, record: Record) -> str:
    """Ask the shipped model at every ask of a record, compare with the recorded answers, and return the first one."""
    policy, scheduler, asked = Harmony(), set_up(load_scenario(scenario)).scheduler(), None
    answers = []
    for _, moment, _ in record.steps():
        for event in moment.events:
            if isinstance(event, Answered):
                assert asked is not None
                answers.append(json.dumps(to_json(event.answer)))
                assert json.dumps(to_json(policy.decide(asked.view))) == answers[-1]
        asked = next((one for one in scheduler.handle(moment) if isinstance(one, Ask)), None)
    return answers[0]


def test_the_same_model_file_gives_the_same_decisions_in_simulation_and_in_a_real_run(tmp_path: Path) -> None:
    real, simulated = scenario(tmp_path, "local"), scenario(tmp_path, "simulated")
    assert run_real(load_scenario(real), tmp_path / "real").summary["jobs_finished"] == 6
    eunomia.simulate(load_scenario(simulated), record_to=tmp_path / "record.jsonl.gz")
    first = first_answer(real, Record(tmp_path / "real"))
    assert first == first_answer(simulated, Record(tmp_path / "record.jsonl.gz"))  # asked about the same jobs


def test_a_wrong_model_is_refused_by_name(tmp_path: Path) -> None:
    for text, message in (("absent.safetensors", "no such file"), (str(scenario(tmp_path, "local")), "no model file")):
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
