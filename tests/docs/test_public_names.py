"""The public API is one list of names: documented, enough for all pages and examples, and loaded on use."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

import eunomia

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "api.md"
PUBLIC = {"eunomia", "eunomia.testing", "eunomia.lease", "eunomia.ray"}
# Blocks of files of the package itself are no users' code.
BLOCK = re.compile(r"^( *)```python(?! title=\"src/)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def sources() -> list[tuple[str, str]]:
    """Return the Python of all pages, examples and contract tests, each with its file."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [
        (str(page.relative_to(ROOT)), re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
        for page in pages
        for indent, text in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]
    scripts = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "tests" / "contract").glob("*.py")]
    return found + [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in scripts]


def imported(text: str) -> set[str]:
    """Return the modules of Eunomia that a source imports from."""
    nodes = list(ast.walk(ast.parse(text)))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    parts = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in plain | parts if name.split(".")[0] == "eunomia"}


def test_pages_examples_and_contract_tests_import_public_names_only() -> None:
    assert len(sources()) > 15
    private = {
        file: {name for name in imported(text) - PUBLIC if not name.startswith("eunomia.testing.")}
        for file, text in sources()
    }
    assert {file: names for file, names in private.items() if names} == {}


def test_every_public_name_can_be_loaded_and_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in eunomia.__all__:
        assert getattr(eunomia, name) is not None
        assert name == "__version__" or re.search(rf"\b{name}\b", page), f"{name} is not in docs/api.md"


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulator'"):
        _ = eunomia.simulator


def test_every_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.toml").write_text((ROOT / "examples" / "demo.toml").read_text(encoding="utf-8"))
    for i, (_, text) in enumerate(BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        file = tmp_path / f"example_{i}.py"
        file.write_text(text, encoding="utf-8")
        runpy.run_path(str(file), run_name="__main__")
        assert capsys.readouterr().out, text
