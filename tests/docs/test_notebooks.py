"""The notebooks of the docs run from the first cell to the last, without a notebook server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_the_files_it_names_are_there(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec", dont_inherit=True), names)  # noqa: S102  our own
    assert {file.name for file in tmp_path.iterdir()} == {"completion-times.pdf", "mine.svg", "report.html"}


def test_from_jobs_to_a_figure_takes_six_lines() -> None:
    (path,) = NOTEBOOKS
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    lines = [line for line in cells[0]["source"] if line.strip()]
    assert len(lines) <= 6
    assert "seeds=10" in lines[-2]


def test_no_notebook_has_stored_outputs() -> None:
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") for cell in cells)
