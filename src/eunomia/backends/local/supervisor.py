"""Starts the supervisor. A gang that an engine queued before an upgrade has this path in its command."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[1] / "processes" / "supervisor.py"), run_name="__main__")
