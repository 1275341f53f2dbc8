"""Write the table of claims of docs/reproduce.md from the declared claims and the kept rows.

python tools/make_claims_table.py
"""

from __future__ import annotations

from pathlib import Path

from eunomia_reproduction.claims import judge_all
from eunomia_reproduction.claims.page import with_claims

PAGE = Path(__file__).parent.parent / "docs" / "reproduce.md"


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_claims(PAGE.read_text(encoding="utf-8"), judge_all()), encoding="utf-8")


if __name__ == "__main__":
    main()
