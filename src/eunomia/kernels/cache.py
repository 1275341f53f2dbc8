"""Where compiled kernels are kept, and who may compile.

The folder is `NUMBA_CACHE_DIR`, or else `__pycache__` of this package, or the user's cache folder where the package is
read-only. A file's name has a hash of all that its kernel reaches, so that an edit drops what it changes and nothing
else. One process of a machine compiles at a time; the others go on interpreted, and load what it has made.
"""

from __future__ import annotations

import fcntl
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eunomia.kernels import Kernel

KEPT = 3  # versions of a kernel


def folder() -> Path | None:
    """Return the folder of compiled code, made if need be; None where none can be written to."""
    return _folder(os.environ.get("NUMBA_CACHE_DIR", ""), os.environ.get("XDG_CACHE_HOME", ""))


def file_name(name: str, stamp: str) -> str:
    """Return how the files of a kernel begin."""
    return f"{name}-{stamp}.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


def is_kept(one: Kernel) -> bool:
    """Tell whether there is compiled code of a kernel as it is now."""
    place = folder()
    return place is not None and (place / f"{one.file_name}.nbi").exists()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let one process of this machine compile at a time; wait for those that came before."""
    place = folder()
    if place is None:
        yield
        return
    with open(place / "lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_busy() -> bool:
    """Tell whether another process of this machine is compiling."""
    place = folder()
    if place is None:
        return False
    with open(place / "lock", "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def kept_in(place: Path | None, one: Kernel) -> Any:
    """Return numba's cache of a function, with our own names of files."""
    from numba.core import caching

    if place is None:
        return caching.NullCache()
    library: Any = caching

    class Locator(library._CacheLocator):  # type: ignore[misc]
        """Says where files are, and when they are of use."""

        _py_file = one.py_func.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(place)

        def get_source_stamp(self) -> str:
            return one.file_name

        def get_disambiguator(self) -> str:
            return one.file_name

        @classmethod
        def from_function(cls, py_func: object, py_file: str) -> Locator:
            return cls()

    class Files(library.CompileResultCacheImpl):  # type: ignore[misc]
        """Names files by what a kernel reaches."""

        _locator_classes = (Locator,)

        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            return one.file_name

    class Cache(library.FunctionCache):  # type: ignore[misc]
        """Compiled code of one kernel; the oldest of several versions is removed."""

        _impl_class = Files

        def load_overload(self, sig: object, target_context: object) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except (ImportError, AttributeError):  # it was compiled for a class that has another name by now
                self.flush()
                return None

        def save_overload(self, sig: object, data: object) -> None:
            super().save_overload(sig, data)
            forget(Path(self.cache_path), one.name)

    return Cache(one.py_func)


def forget(place: Path, name: str) -> None:
    """Remove all but the newest versions of a kernel."""
    made = sorted(place.glob(f"{name}-*.nbi"), key=lambda file: file.stat().st_mtime, reverse=True)
    for index in made[KEPT:]:
        for file in place.glob(f"{index.name.removesuffix('.nbi')}.*"):
            file.unlink(missing_ok=True)


@functools.cache
def _folder(named: str, home: str) -> Path | None:
    user = Path(home or Path.home() / ".cache", "eunomia", "kernels")
    for place in [Path(named)] if named else [Path(__file__).parent / "__pycache__" / "kernels", user]:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return place
    return None
