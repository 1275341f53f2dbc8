"""Write the pages about policies and their pictures: docs/policies.md, docs/policies/, docs/which-policy.md.

python tools/make_policies_page.py
"""

from __future__ import annotations

from pathlib import Path

from policy_pages import example_picture, workload_picture
from policy_pages.examples import answers
from policy_pages.overview import overview
from policy_pages.page import page
from policy_pages.which import with_numbers
from policy_pages.workload import VARIANTS, all_stories, story

from eunomia.policies import POLICIES

DOCS = Path(__file__).parent.parent / "docs"


def made() -> dict[str, str]:
    """Return every file that is made, by its path in docs/."""
    stories = all_stories()
    which = (DOCS / "which-policy.md").read_text(encoding="utf-8")
    files = {
        "policies.md": overview(),
        "which-policy.md": with_numbers(which, [*stories.values(), *map(story, VARIANTS)]),
        "images/policies/all.svg": workload_picture.picture(stories),
    }
    for name in POLICIES:
        answered = answers(name)
        files[f"policies/{name}.md"] = page(name, answered)
        files[f"images/policies/{name}.svg"] = example_picture.picture(name, answered)
    return files


def write() -> None:
    """Write them all."""
    for path, text in made().items():
        file = DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
