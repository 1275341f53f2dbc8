"""The how-to pages are followed: what their blocks add to a copy of the package, or to a user's folder, works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import eunomia

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("add-*.md"))
MOST_PLACES = 3
FENCE = re.compile(
    r'^(?P<indent> *)```(?P<language>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^(?P=indent)```$',
    re.MULTILINE | re.DOTALL,
)
SCENARIO = """\
[cluster]
accelerators = { v100 = 4 }
[workload]
generator = "poisson"
jobs = 8
[throughputs]
source = "uniform"
"""
# Run beside the changed package: every command of the pages, then what they promise besides.
SCRIPT = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
import eunomia
from eunomia.cli.app import app

done = {}
for number, words in enumerate(json.loads(sys.argv[1])):
    result = CliRunner().invoke(app, [word if word != "out" else f"out{number}" for word in words])
    summary = Path(f"out{number}", "summary.json")
    done[" ".join(words)] = {
        "code": result.exit_code, "printed": result.output,
        "summary": json.loads(summary.read_text()) if summary.is_file() else {},
    }

from eunomia.model.events import DeadlineMoved, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.records.record import from_json, to_json

from eunomia.setup.run_config import set_up
from eunomia.scenario import load_scenario
scheduler = set_up(load_scenario(Path("demo.toml"))).scheduler()
job = Job(job_id="mine", total_steps=9.0, deadline=50.0)
scheduler.handle(Moment.of(0.0, [JobSubmitted(job)]))
scheduler.handle(Moment.of(1.0, [DeadlineMoved("mine", 70.0)]))
done["event"] = {
    "deadline": float(scheduler.state.jobs.deadline[0]),
    "recorded": from_json(to_json(DeadlineMoved("mine", 70.0))) == DeadlineMoved("mine", 70.0),
}
problem = {"types": ["v100"], "capacity": [1], "throughput": [[3.0], [1.0]]}
done["solved"] = {"order": eunomia.solve("often_started.py:OftenStarted", problem).status}
from policy_pages.page import card, reported
done["page"] = {"use": reported("widest_first").use, "card": card("widest_first")}
print(json.dumps(done))
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, without its indentation."""

    page: str
    language: str
    file: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.stem, found["language"], found["file"], textwrap.dedent(found["text"]))
        for found in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
COMMANDS = [
    line.removeprefix("$ eunomia ")
    for block in BLOCKS
    for line in block.text.splitlines()
    if block.language == "console" and line.startswith("$ eunomia ")
]


def patched(text: str, diff: str) -> str:
    """Return the text with a block's lines added and removed; the rest of the block must be there, once."""
    lines = [(line[:1] or " ", line[1:]) for line in diff.splitlines()]
    before = "\n".join(line for sign, line in lines if sign in " -")
    after = "\n".join(line for sign, line in lines if sign in " +")
    assert text.count(f"{before}\n") == 1, f"not there once:\n{before}"
    return text.replace(f"{before}\n", f"{after}\n")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What commands and checks said after all blocks were applied to a copy of the package."""
    desk = tmp_path_factory.mktemp("how-to")
    package = desk / "src" / "eunomia"
    shutil.copytree(Path(eunomia.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (desk / "demo.toml").write_text(SCENARIO)
    for block in BLOCKS:
        if block.file is not None:
            path = desk / block.file
            is_new = block.language != "diff"
            assert path.exists() != is_new, f"{block.page}: {block.file}"
            path.write_text(block.text if is_new else patched(path.read_text("utf-8"), block.text), "utf-8")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ours["PYTHONPATH"] = os.pathsep.join((str(desk / "src"), str(ROOT / "tools")))
    words = json.dumps([split(command) for command in COMMANDS])
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, words], cwd=desk, env=ours,
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def split(command: str) -> list[str]:
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]


def result_of(done: dict[str, Any], part: str) -> dict[str, Any]:
    (result,) = (result for command, result in done.items() if part in command)
    assert result.get("code", 0) == 0, result["printed"]
    return result  # type: ignore[no-any-return]


def test_there_is_a_page_with_blocks_for_each_part() -> None:
    parts = ["backend", "mechanism", "metric", "policy", "trace-reader", "view-column"]
    assert [page.stem for page in PAGES] == sorted([*(f"add-a-{part}" for part in parts), "add-an-event"])
    assert {block.page for block in BLOCKS if block.file} == {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_at_most_three_places_are_touched_and_the_page_names_them(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    listed = re.search(r"Places to touch:\n\n((?:\d\. .*\n(?:   .*\n)*)+)", text)
    assert listed is not None
    places = re.split(r"^\d\. ", listed[1], flags=re.MULTILINE)[1:]
    assert len(places) <= MOST_PLACES
    touched = {block.file for block in blocks_of(page) if block.file and block.file.startswith("src/")}
    assert len(touched) <= MOST_PLACES
    patterns = [
        name.replace("FOLDER", r"\w+").replace("NAME", r"\w+").rstrip("/")
        for name in re.findall(r"`(src/[\w/.]+)`", listed[1])
    ]
    for file in touched:
        assert any(re.match(pattern, file) for pattern in patterns), file


def test_every_command_of_the_pages_succeeds(done: dict[str, Any]) -> None:
    assert len(COMMANDS) >= 6
    for command in COMMANDS:
        result_of(done, " ".join(split(command)))


def test_a_policy_a_mechanism_and_a_view_column_run(done: dict[str, Any]) -> None:
    for part in ("policy.name=widest_first", "mechanism.name=minutes", "often_started.py:OftenStarted"):
        assert result_of(done, part)["summary"]["jobs_finished"] == 8
    assert done["solved"]["order"]


def test_the_policy_has_what_its_generated_page_takes_from_it(done: dict[str, Any]) -> None:
    assert done["page"]["use"].startswith("Use it when")
    assert "few idle machines" in done["page"]["card"]


def test_metrics_of_the_package_and_of_a_user_are_in_the_summary(done: dict[str, Any]) -> None:
    summary = result_of(done, "measure.metrics")["summary"]
    names = list(summary)
    assert summary["longest_wait_s"] >= summary["queueing_mean_s"] >= 0
    assert names.index("deadlines_missed") < names.index("wide_jobs_finished") < names.index("apps_submitted")
    assert summary["wide_jobs_finished"] <= 8


def test_a_backend_of_a_user_gives_what_the_simulation_gives(done: dict[str, Any]) -> None:
    own = result_of(done, "world.backend=instant.py:Instant")["summary"]
    assert own["jobs_finished"] == 8
    alike = eunomia.simulate({
        "cluster": {"accelerators": {"v100": 4}}, "workload": {"generator": "poisson", "jobs": 8},
        "throughputs": {"source": "uniform"},
    }).summary  # fmt: skip
    assert own["jct_mean_s"] == pytest.approx(alike["jct_mean_s"])
    assert own["useful_accelerator_s"] is None


def test_a_trace_is_read(done: dict[str, Any]) -> None:
    printed = " ".join(result_of(done, "--format acme")["printed"].split())
    assert "jobs 2 submitted" in printed
    assert "1 jobs have a duration of 0 s, read as 1 s" in printed


def test_an_event_reaches_the_state_and_the_record(done: dict[str, Any]) -> None:
    assert done["event"] == {"deadline": 70.0, "recorded": True}
