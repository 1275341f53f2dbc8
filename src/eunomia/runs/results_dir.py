"""Creates a results folder atomically."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eunomia.inputs.atomic_write import replacing_folder
from eunomia.inputs.problems import InvalidInput, refused

MARKERS = ("summary.json", "compare.csv", "trace.json", "quality.json")  # at least one is in every results folder
UNFINISHED = "unfinished.json"  # of a comparison that was interrupted
OTHER_FILES = (
    UNFINISHED, "result.npz",
    "jobs.csv", "apps.csv", "tenants.csv", "timing.json", "report.html", "record.jsonl.gz", "trace.html",
    "cells.csv", "truth.svg", "truth.png", "truth.csv", "errors.csv", "errors.svg", "errors.png",  # of an estimate
    "jobs.parquet", "throughputs.csv", "scenario.toml",  # of an import
)  # fmt: skip
FOLDERS = ("charts", "work", "run")  # images; logs and checkpoints of real jobs; state of an unfinished run


def check_free(out: Path, *, force: bool) -> None:
    """Raise InvalidInput when `out` exists without `force`, or holds other files than results."""
    try:
        _check_place(out)
        if not out.exists() or not any(out.iterdir()):
            return
        if not force:
            raise refused_out(out, "the folder exists", "give another one, or --force to replace it")
        foreign = _find_foreign(out)
    except OSError as error:
        raise refused_out(out, f"it cannot be looked into ({error.strerror})", "give another folder") from error
    if foreign is not None:
        rule = f"the folder holds something else than our results: {foreign}"
        raise refused_out(out, rule, "give another one; nothing was removed")


def _check_place(out: Path) -> None:
    """Raise InvalidInput where no folder can be created, and for the current folder, which cannot be replaced."""
    if out.is_symlink() and not out.exists():
        raise refused_out(out, "there is a link of that name that leads nowhere", "give another folder")
    above = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not above.is_dir():
        place = "of that name" if above == out else f"on the way, {above}"
        raise refused_out(out, f"there is a file {place}", "give another folder")
    if Path.cwd().is_relative_to(out.resolve()):
        raise refused_out(
            out, "the command was typed inside this folder", "name a new one in it, such as --out results"
        )


def _find_foreign(folder: Path) -> Path | None:
    """Return a path in the folder that is not part of results; the folder itself when it has no results."""
    names = {entry.name for entry in folder.iterdir()}
    if not names.intersection(MARKERS):
        return folder
    for name in sorted(names.difference(MARKERS, OTHER_FILES, FOLDERS)):
        foreign = _find_foreign(folder / name) if "__seed=" in name and (folder / name).is_dir() else folder / name
        if foreign is not None:
            return foreign
    return None


@contextmanager
def whole_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a draft folder; it is renamed to `out` on success and removed on an error."""
    check_free(out, force=force)
    place = out.resolve()
    with _parents(place, out), ExitStack() as stack:
        try:
            draft = stack.enter_context(replacing_folder(place))
        except OSError as error:
            raise refused_out(out, f"it cannot be made ({error.strerror})", "give another folder") from error
        yield draft
        check_free(out, force=force)


@contextmanager
def _parents(place: Path, out: Path) -> Iterator[None]:
    """Make the parent folders; remove at the end those that were new and are empty."""
    missing = [above for above in place.parents if not above.exists()]
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused_out(out, f"it cannot be made ({error.strerror})", "give another folder") from error
        yield
    finally:
        for above in missing:
            if above.is_dir() and not any(above.iterdir()):
                above.rmdir()


def refused_out(out: Path, rule: str, fix: str) -> InvalidInput:
    """Return the error that the folder of `--out` cannot be used."""
    return refused(str(out), "--out", None, rule, fix)
