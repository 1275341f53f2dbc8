"""Check that the links of our Markdown pages lead somewhere: files exist, and so do the headings they name.

python tools/check_docs.py [FOLDER]      exit 0, or 1 with one line for each broken link
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
CODE = re.compile(r"(`+)(?:.+?)\1")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'(].*?[\"')])?\s*\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
NOT_OURS = {"build", "dist", "out", "demo-out", "node_modules"}


def pages(root: Path) -> Iterator[Path]:
    """The Markdown files below `root`, but for those that were made and those in hidden folders."""
    for page in sorted(root.rglob("*.md")):
        folders = page.relative_to(root).parts[:-1]
        if not any(folder.startswith(".") or folder in NOT_OURS for folder in folders):
            yield page


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page with their numbers, without those of fenced code."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif fence:
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        else:
            yield number, line


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page are linked: lower case, words joined by hyphens, repeats numbered."""
    names: set[str] = set()
    for _, line in prose(page):
        heading = HEADING.match(line)
        if heading:
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            repeats = [name, *(f"{name}-{n}" for n in range(1, len(names) + 1))]
            names.add(next(one for one in repeats if one not in names))
    return names


def complaint(page: Path, target: str) -> str | None:
    """What is wrong with a link on a page; None when nothing is, or when it leads out of the project."""
    if ELSEWHERE.match(target) or target.startswith("//"):
        return None
    path, _, anchor = unquote(target).partition("#")
    goal = (page.parent / path) if path else page
    if not goal.exists():
        return f"{target} does not exist"
    if anchor and goal.suffix == ".md" and anchor.lower() not in anchors(goal):
        return f"{target} names no heading of {goal.name}"
    return None


def broken(root: Path) -> list[str]:
    """One line for each link that leads nowhere, as `page:line: what`."""
    found = []
    for page in pages(root):
        for number, line in prose(page):
            for link in LINK.finditer(CODE.sub("", line)):
                wrong = complaint(page, link[1] or link[2])
                if wrong:
                    found.append(f"{page.relative_to(root)}:{number}: {wrong}")
    return found


def main() -> int:
    """Print what is broken; return the exit code."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = broken(root)
    print("\n".join(found) or f"{len(list(pages(root)))} pages: all links lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
