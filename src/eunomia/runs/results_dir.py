"""A results folder that appears whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem

OURS = ("summary.json", "compare.csv", "trace.json")  # what tells a folder that we wrote from any other
BESIDE = ("jobs.csv", "apps.csv", "tenants.csv", "timing.json", "report.html", "record.jsonl.gz", "trace.html")
BELOW = ("charts", "work", "run")  # pictures; logs and checkpoints of real jobs; what an unfinished run needs


def check_free(out: Path, *, force: bool) -> None:
    """Raise InvalidInput when `out` is in the way: it exists without `force`, or holds what we did not write."""
    try:
        _check_place(out)
        if not out.exists() or not any(out.iterdir()):
            return
        if not force:
            raise _refusal(out, "the folder exists", "give another one, or --force to replace it")
        stranger = _stranger(out)
    except OSError as error:
        raise _refusal(out, f"it cannot be looked into ({error.strerror})", "give another folder") from error
    if stranger is not None:
        rule = f"the folder holds something else than our results: {stranger}"
        raise _refusal(out, rule, "give another one; nothing was removed")


def _check_place(out: Path) -> None:
    """Refuse a place where no folder can be, and the one we stand in, which cannot be swapped for another."""
    if out.is_symlink() and not out.exists():
        raise _refusal(out, "there is a link of that name that leads nowhere", "give another folder")
    above = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not above.is_dir():
        place = "of that name" if above == out else f"on the way, {above}"
        raise _refusal(out, f"there is a file {place}", "give another folder")
    if Path.cwd().is_relative_to(out.resolve()):
        raise _refusal(out, "the command was typed inside this folder", "name a new one in it, such as --out results")


def _stranger(folder: Path) -> Path | None:
    """Return something in the folder that we did not write; the folder itself when none of it is ours."""
    names = {entry.name for entry in folder.iterdir()}
    if not names.intersection(OURS):
        return folder
    for name in sorted(names.difference(OURS, BESIDE, BELOW)):
        found = _stranger(folder / name) if "__seed=" in name and (folder / name).is_dir() else folder / name
        if found is not None:
            return found
    return None


@contextmanager
def whole_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder to write into; it takes the name `out` when all went well, and is removed when not."""
    check_free(out, force=force)
    place = out.resolve()
    with _parents(place, out):
        draft = _new_beside(place, out)
        try:
            yield draft
            check_free(out, force=force)
            _put_in_place(draft, place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _parents(place: Path, out: Path) -> Iterator[None]:
    """Make the folders above; those that were new go again when nothing came into them."""
    made = [above for above in place.parents if not above.exists()]
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refusal(out, f"it cannot be made ({error.strerror})", "give another folder") from error
        yield
    finally:
        for above in made:
            if above.is_dir() and not any(above.iterdir()):
                above.rmdir()


def _new_beside(place: Path, out: Path) -> Path:
    """Make a draft on the same disk, so that it can take its place by one renaming."""
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        draft.chmod(0o755)
    except OSError as error:
        raise _refusal(out, f"it cannot be made ({error.strerror})", "give another folder") from error
    return draft


def _put_in_place(draft: Path, place: Path) -> None:
    """Swap the new folder for an old one; the old one goes only after the new one stands."""
    if not place.exists():
        draft.rename(place)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}.old.", dir=place.parent))
    try:
        place.rename(old / place.name)
        draft.rename(place)
    finally:
        if not place.exists():  # stopped between the two
            (old / place.name).rename(place)
        shutil.rmtree(old)


def _refusal(out: Path, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(out), column="--out", rule=rule, fix=fix)])
