"""Learned policies: one model file gives the same decisions in a simulation and in a real run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eunomia
from eunomia import InvalidInput
from eunomia.cli.app import app
from eunomia.learning.model_file import read_model
from eunomia.learning.shipped import FOLDER
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered
from eunomia.model.policy import Policy
from eunomia.policies import build
from eunomia.records.record import Record, to_json
from eunomia.runs.local_run import run_real
from eunomia.scenario import load_scenario
from eunomia.setup.policy_lookup import find_policy
from eunomia.setup.run_config import set_up
from eunomia_reproduction.symphony.network import MODEL

TYPES = ("resnext", "ctc", "resnet", "wlm")
LEARNED = {
    "harmony": "harmony",
    "metis": "metis",
    "learned_order": "order",
    "learned_pairs": "pairs",
}  # policy, and its shipped model
ROUNDS = '[mechanism]\nname = "leases"\nlength_s = 2.0\n'  # in place of slots of half an hour


def scenario(folder: Path, world: str, policy: str) -> Path:
    """Six short jobs of four types on four seats, all at once."""
    lines = ["job_id,submitted_s,scale_factor,job_type,total_steps,command"]
    lines += [f'{m},0,{1 + m % 2},{TYPES[m % 4]},{m + 1},"[""python"", ""-c"", ""pass""]"' for m in range(6)]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    shutil.copy(FOLDER / f"{LEARNED[policy]}.safetensors", folder / "copy.safetensors")
    path = folder / f"{world}.toml"
    path.write_text(
        '[cluster]\nnodes = [{ type = "cpu", accelerators = 4 }]\n[workload]\ntrace = "jobs.csv"\n'
        '[throughputs]\nsource = "uniform"\nreference_type = "cpu"\n'
        f'[policy]\nname = "{policy}"\nmodel = "{folder}/copy.safetensors"\n[world]\nbackend = "{world}"\n'
        + (ROUNDS if policy in ("metis", "learned_pairs") else "")
    )
    return path


def first_answer(scenario: Path, record: Record, policy: Policy) -> str:
    """Ask the shipped model at every ask of a record, compare with the recorded answers, and return the first one."""
    scheduler, asked = set_up(load_scenario(scenario)).scheduler(), None
    answers = []
    for _, moment, _ in record.steps():
        for event in moment.events:
            if isinstance(event, Answered):
                assert asked is not None
                answers.append(json.dumps(to_json(event.answer)))
                assert json.dumps(to_json(policy.decide(asked.view))) == answers[-1]
        asked = next((one for one in scheduler.handle(moment) if isinstance(one, Ask)), None)
    return answers[0]


@pytest.mark.parametrize("name", LEARNED)
def test_the_same_model_file_gives_the_same_decisions_in_simulation_and_in_a_real_run(
    name: str, tmp_path: Path
) -> None:
    real, simulated = scenario(tmp_path, "local", name), scenario(tmp_path, "simulated", name)
    assert run_real(load_scenario(real), tmp_path / "real").summary["jobs_finished"] == 6
    result = eunomia.simulate(load_scenario(simulated), record_to=tmp_path / "record.jsonl.gz")
    assert any(f"{name} has learnt: " in note and "copy.safetensors" in note for note in result.notes)
    first = first_answer(real, Record(tmp_path / "real"), build(name))
    assert first == first_answer(simulated, Record(tmp_path / "record.jsonl.gz"), build(name))  # about the same jobs


@pytest.mark.parametrize("name", LEARNED)
def test_the_card_says_what_was_learnt_and_which_policy_answers_where_the_model_fails(name: str) -> None:
    info = build(name).info
    assert f"eunomia train {LEARNED[name]}" in info.learnt_from and "seed" in info.learnt_from
    other = build(info.fallback).info
    assert other.needs <= info.needs and other.answer_type == info.answer_type


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda raw: raw[:-8], "truncated"), (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "altered"),
     (lambda raw: MODEL.read_bytes(), "symphony|trained without the features")],
)  # fmt: skip
def test_a_model_that_is_truncated_altered_or_of_something_else_is_named_and_nothing_is_written(
    name: str, change: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    path, model = scenario(tmp_path, "simulated", name), tmp_path / "copy.safetensors"
    model.write_bytes(change(model.read_bytes()))
    before = sorted(tmp_path.iterdir())
    ran = CliRunner().invoke(app, ["simulate", str(path), "--out", str(tmp_path / "out")])
    assert ran.exit_code == 2 and "copy.safetensors" in ran.stderr and re.search(message, ran.stderr)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", LEARNED)
def test_eunomia_policies_shows_what_a_policy_has_learnt_from(name: str) -> None:
    shown = CliRunner().invoke(app, ["policies", name])
    assert shown.exit_code == 0 and "has learnt: the shipped model" in shown.stdout
    assert f"eunomia train {LEARNED[name]}" in shown.stdout and "in the service, where it fails: " in shown.stdout


@pytest.mark.parametrize(
    "path", [*(FOLDER / f"{name}.safetensors" for name in LEARNED.values()), MODEL], ids=lambda path: path.stem
)
def test_a_shipped_model_is_small_and_the_best_of_the_curve_beside_it(path: Path) -> None:
    header, about = read_model(path).header, json.loads(path.with_name(f"{path.name}.json").read_text())
    assert path.stat().st_size < 1_000_000
    assert header.trained == path.stem and len(header.scenario_sha256) == 64
    assert all(about[key] == getattr(header, key) for key in ("trained", "seed", "steps", "scenario_sha256", "package"))
    first = next(iter(about["metrics"]))
    best = max(about["curve"], key=lambda point: point[first])
    assert (best["step"], best[first]) == (header.steps, header.metrics[first])


@pytest.mark.parametrize(
    ("fallback", "message"),
    [("las", "needs scale_factor, service, throughput"), ("max_throughput", "answers with shares"), ("lass", "lass")],
)
def test_a_fallback_that_cannot_answer_in_its_place_is_refused_when_the_policy_is_read(
    fallback: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\nfrom eunomia import PolicyInfo\n"
        "@dataclass(frozen=True)\nclass Own:\n    info: ClassVar[PolicyInfo] = PolicyInfo(\n"
        "        name='own', answer_type='order', objective='', technique='', paper='',\n"
        f"        needs=frozenset({{'capacity', 'on_type'}}), fallback='{fallback}')\n"
        "    def decide(self, view):\n        raise AssertionError\n"
    )
    with pytest.raises(InvalidInput, match=message):
        find_policy(f"{tmp_path}/own.py:Own", {}, tmp_path)
