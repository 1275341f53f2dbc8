"""Every page can be found, and every policy is reported of."""

from __future__ import annotations

import re
from pathlib import Path

from eunomia.policies import POLICIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_page_is_linked_from_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", (DOCS / "index.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert pages - {"index.md"} <= linked


def test_every_decision_says_context_choice_and_what_was_given_up() -> None:
    notes = sorted((DOCS / "decisions").glob("*.md"))
    for number, note in enumerate(notes, start=1):
        text = note.read_text(encoding="utf-8")
        assert text.startswith(f"# {number:04} "), note.name
        assert all(f"**{part}.**" in text for part in ("Context", "Choice", "Given up")), note.name


def test_the_changelog_names_every_policy() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not [name for name in POLICIES if f"`{name}`" not in text]
