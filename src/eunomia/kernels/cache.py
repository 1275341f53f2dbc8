"""The cache of compiled kernels, and the lock that lets one process of a machine compile at a time.

The folder is `NUMBA_CACHE_DIR`, or else `__pycache__` of this package, or the user's cache folder if the package is
read-only. File names have a hash of everything that the kernel reaches, so an edit invalidates only what it changes.
While one process compiles, others interpret kernels; they load the compiled code when it is in the cache.
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

from eunomia.kernels.costs import forget_costs

if TYPE_CHECKING:
    from eunomia.kernels import Kernel

KEPT_VERSIONS = 3  # of a kernel
LOCK, AHEAD = "lock", "ahead.lock"  # files of the process that compiles for its run, and of the one that compiles ahead


def folder() -> Path | None:
    """Return the cache folder, created if needed; None if no folder is writable."""
    return _folder(os.environ.get("NUMBA_CACHE_DIR", ""), os.environ.get("XDG_CACHE_HOME", ""))


def file_name(name: str, source_hash: str) -> str:
    """Return the prefix of the files of a kernel."""
    return f"{name}-{source_hash}.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


def is_cached(kernel: Kernel) -> bool:
    """Whether the cache has compiled code of the current version of a kernel."""
    place = folder()
    return place is not None and (place / f"{kernel.file_name}.1.nbc").exists()


@contextmanager
def compile_lock(name: str = LOCK) -> Iterator[None]:
    """Hold a lock of the cache, after waiting for other processes."""
    place = folder()
    if place is None:
        yield
        return
    with open(place / name, "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_compiling(name: str = LOCK) -> bool:
    """Whether another process of this machine is compiling and holds this lock."""
    place = folder()
    if place is None:
        return False
    with open(place / name, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def numba_cache(place: Path | None, kernel: Kernel) -> Any:
    """Return a numba cache for a kernel, with the file names of this module."""
    from numba.core import caching

    if place is None:
        return caching.NullCache()
    library: Any = caching

    class Locator(library._CacheLocator):  # type: ignore[misc]
        """Locates the files of a kernel."""

        _py_file = kernel.py_func.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(place)

        def get_source_stamp(self) -> str:
            return kernel.file_name

        def get_disambiguator(self) -> str:
            return kernel.file_name

        @classmethod
        def from_function(cls, py_func: object, py_file: str) -> Locator:
            return cls()

    class Files(library.CompileResultCacheImpl):  # type: ignore[misc]
        """Names the files of a kernel."""

        _locator_classes = (Locator,)

        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            return kernel.file_name

    class Cache(library.FunctionCache):  # type: ignore[misc]
        """Compiled code of one kernel; removes old versions."""

        _impl_class = Files

        def load_overload(self, sig: object, target_context: object) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except (ImportError, AttributeError):  # it names a class that has moved since
                self.flush()
                return None

        def save_overload(self, sig: object, data: object) -> None:
            super().save_overload(sig, data)
            prune_cache(Path(self.cache_path), kernel.name)
            forget_costs(Path(self.cache_path), kernel.file_name)

    return Cache(kernel.py_func)


def prune_cache(place: Path, name: str) -> None:
    """Remove all but the newest versions of a kernel."""
    indices = sorted(place.glob(f"{name}-*.nbi"), key=lambda file: file.stat().st_mtime, reverse=True)
    for index in indices[KEPT_VERSIONS:]:
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
