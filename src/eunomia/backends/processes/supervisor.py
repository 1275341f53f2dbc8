"""The script that supervises one gang, see `supervision`. It is short, as a script is compiled anew at each start."""

from __future__ import annotations

import os
import sys

if not __package__:  # run by its path: what it imports is found where it lies, after the standard library
    sys.path.append(os.path.abspath(__file__).removesuffix("/eunomia/backends/processes/supervisor.py"))

from eunomia.backends.processes.supervision import main

if __name__ == "__main__":
    main()
