"""The files beside the README that hosts of repositories and reference managers read say what is so."""

from __future__ import annotations

import re
from pathlib import Path

import eunomia

ROOT = Path(__file__).parents[2]


def test_the_citation_names_this_version_and_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^([a-z-]+): "?([^"\n]+)"?$', text, re.MULTILINE))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert fields["version"] == eunomia.__version__
    assert f'license = "{fields["license"]}"' in project
    assert {"cff-version", "message", "title", "type"} <= fields.keys()


def test_the_readme_leads_to_security_citation_and_roadmap() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {name for name in ("SECURITY.md", "CITATION.cff", "ROADMAP.md") if f"({name})" not in readme} == set()
