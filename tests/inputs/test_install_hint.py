"""The line that installs what is missing: right for a checkout, a wheel, a repository and the index."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from eunomia.inputs import install_hint
from eunomia.inputs.install_hint import install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
USER_EXTRAS = EXTRAS.keys() - {"dev", "bench"}
DISTRIBUTION_BY_MODULE = {  # where they differ, or one brings the other
    "pynvml": "nvidia-ml-py",
    "pydantic_core": "pydantic",
    "markupsafe": "jinja2",
    "prometheus_client": "prometheus-client",
}
GIT = {"url": "https://example.org/e.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}


def command(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, object], *extras: str, companion: str | None = None
) -> str:
    monkeypatch.setattr(install_hint, "_origin", lambda: origin)
    monkeypatch.setattr(install_hint, "_pip", lambda: "pip")
    return install_command(*extras, companion=companion)


def test_the_line_names_the_place_that_the_package_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, wheel = tmp_path / "my clone", tmp_path / "eunomia.whl"
    folder.mkdir()
    wheel.touch()
    editable = {"url": f"file://{folder}", "dir_info": {"editable": True}}
    copied = {"url": f"file://{folder}", "dir_info": {}}
    built = {"url": f"file://{wheel}", "archive_info": {}}
    assert command(monkeypatch, editable, "service", "ray") == f"pip install -e '{folder}[service,ray]'"
    assert command(monkeypatch, copied, "service") == f"pip install '{folder}[service]'"
    assert command(monkeypatch, copied, companion="reproduction") == f"pip install '{folder}/reproduction'"
    assert command(monkeypatch, built, "ray") == f"pip install '{wheel}[ray]'"
    assert command(monkeypatch, built, companion="reproduction") == "pip install eunomia-scheduler-reproduction"
    assert command(monkeypatch, {}, "service") == 'pip install "eunomia-scheduler[service]"'
    assert command(monkeypatch, {}, companion="reproduction") == "pip install eunomia-scheduler-reproduction"
    assert command(monkeypatch, GIT, "ray") == "pip install 'eunomia-scheduler[ray] @ git+https://example.org/e.git'"
    escaped = {**copied, "url": folder.as_uri()}  # as pip writes it: my%20clone
    assert command(monkeypatch, escaped, "service") == f"pip install '{folder}[service]'"
    folder.rmdir()
    assert command(monkeypatch, copied, "service") == 'pip install "eunomia-scheduler[service]"'


def test_in_a_checkout_the_line_installs_the_checkout_into_this_python() -> None:
    said = install_command("service")
    assert said.endswith(f"install -e {shlex.quote(f'{ROOT}[service]')}")
    assert said.startswith(("pip install", sys.executable))


def test_the_distributions_are_those_that_the_line_names() -> None:
    assert PROJECT["name"] == install_hint.DISTRIBUTION
    for folder, name in install_hint.COMPANIONS.items():
        companion = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert companion["name"] == name
        assert companion["dependencies"][0] == install_hint.DISTRIBUTION


def tracked(*patterns: str) -> list[Path]:
    named = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in named.split("\n") if name and (ROOT / name).exists()]


def test_no_page_and_no_message_installs_the_other_project_of_the_name() -> None:
    wrong = re.compile(r"pip install[^\n&|;`#]*[ '\"]eunomia(?![-\w/.])")
    pages = tracked(*(f"*.{end}" for end in ("py", "md", "toml", "ipynb")), "tools", "docs/operations", "Makefile")
    found = [path.name for path in pages if path != Path(__file__) and wrong.search(path.read_text(encoding="utf-8"))]
    assert wrong.search("pip install 'eunomia[ray]'") and wrong.search("pip install eunomia")
    assert found == []


def test_every_extra_that_a_message_names_exists() -> None:
    named = [
        (path.name, word.value)
        for path in tracked("src/*.py", "reproduction/src/*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "install_command"
        for word in call.args
        if isinstance(word, ast.Constant)
    ]
    assert len(named) > 8
    assert [(file, extra) for file, extra in named if extra not in USER_EXTRAS] == []


def test_every_module_that_the_code_imports_is_a_requirement_of_the_package_or_of_an_extra() -> None:
    asked = [*PROJECT["dependencies"], *(one for extra in sorted(USER_EXTRAS) for one in EXTRAS[extra]), "pytest"]
    distributions = {Requirement(one).name.lower() for one in asked}
    imported = {
        (name or "").partition(".")[0]
        for path in tracked("src/*.py", "reproduction/src/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
    } - {"", "eunomia", "eunomia_reproduction", "__future__"}
    others = sorted(imported - sys.stdlib_module_names)
    assert "httpx2" in others and "pynvml" in others
    assert [name for name in others if DISTRIBUTION_BY_MODULE.get(name, name).lower() not in distributions] == []


@pytest.mark.parametrize(
    ("name", "lock", "private"),
    [
        (
            "numba",
            "requirements.lock",
            [
                "numba.core.caching:_CacheLocator",
                "numba.core.caching:NullCache",
                "numba.core.caching:CompileResultCacheImpl",
                "numba.core.caching:FunctionCache",
            ],
        ),
        ("uvicorn", "requirements-extras.lock", ["uvicorn.protocols.http.h11_impl:H11Protocol"]),
    ],
)
def test_a_package_of_which_private_parts_are_used_is_bound_to_the_newest_minor_that_is_tested(
    name: str, lock: str, private: list[str]
) -> None:
    asked = [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    bounds = next(Requirement(one) for one in asked if Requirement(one).name == name).specifier
    pinned = re.search(rf"^{name}==(\S+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    version = Version(pinned[1])
    assert bounds.contains(version)
    assert not bounds.contains(Version(f"{version.major}.{version.minor + 1}.0"))
    pytest.importorskip(name, reason="needs the extra service")
    for part in private:
        module, _, attribute = part.partition(":")
        assert hasattr(import_module(module), attribute), part
