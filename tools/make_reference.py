"""Write the reference of the package from its docstrings: one Markdown page for each room.

python tools/make_reference.py --out out/reference

The sources are read, not imported: what they say is what is written.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "eunomia"
Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def module_name(path: Path) -> str:
    """The dotted name under which a source file is imported."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def public(body: list[ast.stmt]) -> Iterator[Named]:
    """The classes and functions of a body that others may use."""
    for node in body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield node


def signature(node: Named) -> str:
    """The line one would write to define it, without decorators and body."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    answer = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){answer}"


def fields(node: ast.ClassDef, source: list[str]) -> Iterator[str]:
    """The public fields of a class that have a comment, behind them or on the line before."""
    for part in node.body:
        if isinstance(part, ast.Assign | ast.AnnAssign) and part.end_lineno:
            name = ast.unparse(part.targets[0] if isinstance(part, ast.Assign) else part.target)
            before, comment = source[part.lineno - 2].strip(), source[part.end_lineno - 1].rpartition("  # ")[2]
            if "  # " not in source[part.end_lineno - 1]:
                comment = before.removeprefix("# ") if before.startswith("# ") else ""
            if comment and not name.startswith("_"):
                yield f"- `{name}`: {comment}"


def entry(node: Named, source: list[str], within: str = "") -> Iterator[str]:
    """The heading, signature and docstring of a class or function; then the fields and methods of a class."""
    mark = "####" if within else "###"
    yield f"{mark} `{within}{node.name}`\n\n```python\n{signature(node)}\n```\n"
    said = ast.get_docstring(node)
    if said:
        yield f"{said}\n"
    if isinstance(node, ast.ClassDef):
        if listed := list(fields(node, source)):
            yield "\n".join(listed) + "\n"
        for method in public(node.body):
            yield from entry(method, source, within=f"{node.name}.")


def chapter(path: Path) -> str:
    """What one source file promises; empty when it promises nothing."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = [part for node in public(tree.body) for part in entry(node, text.splitlines())]
    said = ast.get_docstring(tree)
    if not said and not lines:
        return ""
    return "\n".join([f"## `{module_name(path)}`\n", f"{said or ''}\n", *lines])


def write_reference(out: Path) -> list[Path]:
    """Write a page for each room to `out`, and an index; return the pages."""
    chapters: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py").strip("_")
        text = chapter(path)
        if text:
            chapters["eunomia" if room == "init" else room].append(text)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for room, texts in sorted(chapters.items()):
        page = out / f"{room}.md"
        page.write_text(f"# {room}\n\n" + "\n".join(texts), encoding="utf-8")
        written.append(page)
    index = "".join(f"- [{page.stem}]({page.name})\n" for page in written)
    (out / "README.md").write_text(f"# Reference\n\n{index}", encoding="utf-8")
    return written


def main() -> None:
    """Write the pages and say where they are."""
    parser = argparse.ArgumentParser(description="Write the reference of the package from its docstrings.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    out = parser.parse_args().out
    print(f"{len(write_reference(out))} pages: {out / 'README.md'}")


if __name__ == "__main__":
    main()
