"""The schema and the reference page are current, and say what the loader does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import Scenario, json_schema, load_scenario
from eunomia.scenario.published_schema import reference_markdown, schema_text

DOCS = Path(__file__).parents[2] / "docs"
FIX = "run the command at the end of docs/scenario.md"


def test_the_published_schema_is_current() -> None:
    assert (DOCS / "scenario.schema.json").read_text(encoding="utf-8") == schema_text(), FIX


def test_the_reference_page_has_every_key_as_it_is() -> None:
    page = (DOCS / "scenario.md").read_text(encoding="utf-8")
    assert reference_markdown() in page, FIX


def test_the_schema_is_json_of_the_2020_12_draft_without_null() -> None:
    text = json.dumps(json_schema(), allow_nan=False)
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "null" not in text


def test_the_schema_has_every_table_and_key(tiny: Callable[..., Scenario]) -> None:
    schema = json_schema()
    said = tiny("mechanism.length_s=60").as_dict()
    assert schema["required"] == ["cluster", "workload"]
    assert schema["properties"].keys() == said.keys()
    for name, table in said.items():
        if isinstance(table, dict):
            known = schema["properties"][name]
            if "$ref" in known:  # the other tables have names as keys
                kind = schema["$defs"][known["$ref"].rsplit("/", 1)[-1]]
                assert table.keys() <= kind["properties"].keys(), name


def test_the_scenarios_of_the_page_are_read(tmp_path: Path) -> None:
    blocks = (DOCS / "scenario.md").read_text(encoding="utf-8").split("```toml\n")[1:]
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.toml"
        path.write_text(block.split("```")[0], encoding="utf-8")
        load_scenario(path)
    assert len(blocks) >= 2


def test_the_message_of_the_page_is_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "scenario.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(page.split("```toml-wrong\n")[1].split("```")[0], encoding="utf-8")
    with pytest.raises(InvalidInput) as refusal:
        load_scenario(Path("tiny.toml"))
    assert str(refusal.value) in page
