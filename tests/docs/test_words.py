"""Words that have a standard term in the field stay out of names, comments, messages and pages (docs/glossary.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "reproduction", "tests", "tools", "benchmarks", "examples", "docs")
TERMS = {  # word -> what to write
    "told": "reported, recorded, given",
    "heard": "received",
    "mend": "fix",
    "whom": "the job, the tenant",
    "nobody": "no job, no tenant",
    "somebody": "a job, a user",
    "glance": "view",
    "stillness": "stall",
    "dust": "tolerance",
    "reckon": "compute",
}
DIALECT = re.compile(rf"(?<![a-z])(?:{'|'.join(TERMS)})(?:s|ed|ing)?(?![a-z])", re.IGNORECASE)
QUOTED = re.compile(r"`[^`\n]*`")  # names of earlier versions, as in the changelog


def files() -> list[Path]:
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".md", ".toml")]
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    return [path for path in found + pages if path != Path(__file__) and "__pycache__" not in path.parts]


def test_the_field_s_terms_are_used() -> None:
    assert len(files()) > 700
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {word} (write: {TERMS.get(word.lower(), 'the standard term')})"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for word in DIALECT.findall(QUOTED.sub("", line))
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["nobody waits", "def is_told(", "_whom = 1", "Mend it"])
def test_each_form_of_a_word_is_found(text: str) -> None:
    assert DIALECT.search(text)


def test_the_glossary_has_at_most_eighty_terms() -> None:
    rows = [row for row in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines() if row[:2] == "| "]
    assert len([row for row in rows if not row.startswith(("| term", "| ---"))]) <= 80
