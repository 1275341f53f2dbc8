"""The page of policies says what their docstrings say."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_policies_is_what_their_docstrings_make() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "make_policies_page.py"))["page"]()
    shown = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert shown == made, "docs/policies.md is out of date: python tools/make_policies_page.py"
