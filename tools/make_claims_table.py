"""Write the generated tables of docs/reproduce.md: the claims, and Themis by three readings, from the kept rows.

python tools/make_claims_table.py
"""

from __future__ import annotations

from pathlib import Path

from eunomia_reproduction.claims import judge_all
from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.claims.page import with_claims, with_part
from eunomia_reproduction.claims.readings import BEGIN, END, readings

PAGE = Path(__file__).parent.parent / "docs" / "reproduce.md"


def main() -> None:
    """Write the page."""
    page = with_claims(PAGE.read_text(encoding="utf-8"), judge_all())
    PAGE.write_text(with_part(page, BEGIN, END, readings(KeptRows.shipped())), encoding="utf-8")


if __name__ == "__main__":
    main()
