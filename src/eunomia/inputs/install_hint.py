"""The command that installs what is missing, for however this package was installed itself.

The distribution is not called like the import: another project has that name on the package index.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import unquote

DISTRIBUTION = "eunomia-scheduler"
COMPANIONS = {"reproduction": f"{DISTRIBUTION}-reproduction"}  # by the folder of a checkout that holds it


def install_command(*extras: str, companion: str | None = None) -> str:
    """Return the shell command that adds extras of this package, or a companion of it, to this Python.

    A package that was installed from a folder or a repository is installed from there again, else from the index.
    """
    name = DISTRIBUTION if companion is None else COMPANIONS[companion]
    return f"{_pip()} install {_requirement(name, extras, companion, _origin())}"


def _requirement(name: str, extras: tuple[str, ...], companion: str | None, origin: dict[str, Any]) -> str:
    """Return what follows `pip install`, by where the package came from as PEP 610 records it; {} is the index."""
    chosen = f"[{','.join(extras)}]" if extras else ""
    url, folder = str(origin.get("url", "")), origin.get("dir_info")
    path = unquote(url.removeprefix("file://"))
    if url.startswith("file://") and Path(path).exists() and (folder is not None or companion is None):
        editable = "-e " if folder and folder.get("editable") else ""
        return editable + shlex.quote(f"{path}/{companion}" if companion else f"{path}{chosen}")
    if "vcs_info" in origin:
        place = f"#subdirectory={companion}" if companion else ""
        return shlex.quote(f"{name}{chosen} @ {origin['vcs_info']['vcs']}+{url}{place}")
    return f'"{name}{chosen}"' if chosen else name


@cache
def _origin() -> dict[str, Any]:
    """Return the record of where this package was installed from, {} for the index."""
    folder = Path(__file__).resolve().parents[3]
    if (folder / "pyproject.toml").is_file():  # imported from a checkout
        return {"url": f"file://{folder}", "dir_info": {"editable": True}}
    try:
        written = Distribution.from_name(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # a copied folder
        return {}
    return dict(json.loads(written)) if written else {}


def _pip() -> str:
    """Return the pip of this Python: `pip` where the shell finds that one."""
    found = shutil.which("pip")
    is_own = found is not None and Path(found).parent == Path(sys.prefix) / "bin"
    return "pip" if is_own else f"{shlex.quote(sys.executable)} -m pip"
