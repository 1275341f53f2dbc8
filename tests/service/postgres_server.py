"""A PostgreSQL server of the tests, in a temporary folder; as root it runs as user `postgres`, which it needs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACES = Path("/usr/lib/postgresql")  # where Debian puts each version's programs


def programs() -> Path | None:
    """Return the folder of initdb and pg_ctl; None where there is none, or no user to run them as."""
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return None
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else sorted(PLACES.glob("*/bin"))
    return next((place for place in reversed(places) if (place / "initdb").exists()), None)


@contextmanager
def server(binaries: Path) -> Iterator[str]:
    """Run a server on a unix socket alone, and yield the folder of that socket; its user is `tester`."""
    folder = Path(tempfile.mkdtemp(prefix="eunomia-pg-"))
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        shutil.chown(folder, user)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)

    data, log = str(folder / "data"), str(folder / "log")
    control = str(binaries / "pg_ctl")
    try:
        run(str(binaries / "initdb"), "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
        run(control, "-D", data, "-w", "-l", log, "-o", f"-c listen_addresses= -k {folder}", "start")
        try:
            yield str(folder)
        finally:
            run(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
