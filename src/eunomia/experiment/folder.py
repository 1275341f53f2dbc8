"""A results folder that appears whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eunomia.model.problems import InvalidInput, Problem

OURS = ("summary.json", "compare.csv")  # what tells a folder that we wrote from any other


def check_free(out: Path, *, force: bool) -> None:
    """Raise InvalidInput when `out` is in the way: it exists without `force`, or it is no folder of ours."""
    if not out.exists():
        return
    if not out.is_dir():
        raise _refusal(out, "there is a file of that name", "give another folder")
    if not any(out.iterdir()):
        return
    if not force:
        raise _refusal(out, "the folder exists", "give another one, or --force to replace it")
    if not any((out / name).is_file() for name in OURS):
        raise _refusal(out, "the folder holds something else than our results", "give another one; nothing was removed")


@contextmanager
def whole_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder to write into; it takes the name `out` when all went well, and is removed when not."""
    check_free(out, force=force)
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    draft.chmod(0o755)
    try:
        yield draft
        check_free(out, force=force)
        _put_in_place(draft, out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put_in_place(draft: Path, out: Path) -> None:
    """Swap the new folder for an old one; the old one goes only after the new one stands."""
    if not out.exists():
        draft.rename(out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    out.rename(old / out.name)
    draft.rename(out)
    shutil.rmtree(old)


def _refusal(out: Path, rule: str, mend: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(out), column="--out", rule=rule, mend=mend)])
