"""The site file that a new site begins with: right for plain scripts, and fair over weeks."""

from __future__ import annotations

import re

from eunomia.backends.processes.discovery import discovered
from eunomia.inputs.problems import InvalidInput, Problem

STARTER = """\
# A site of one machine: eunomia serve site.toml
[service]
state = "state"                         # made beside this file, readable by you only
listen = "127.0.0.1:8642"               # of the dashboard and of tokens
# socket = "/tmp/lab.sock"              # every user of this machine may submit there: the user id is the login
# restart_within_s = 120                # may be stopped once, in its first 2 min, though it cannot save; else never

[cluster]
{cluster}

[policy]
name = "slurm_fair_share"               # who used little for its share lately runs first; what runs is not stopped …
half_life_s = 604800                    # … use counts half after a week …
backfill = "easy"                       # … and a job starts before others where it makes none of them later
"""
DECLARED = "accelerators = { cpu = 2 }              # or discover = true on a machine with NVIDIA's driver"
FOUND = "discover = true                         # the accelerators that NVIDIA's driver reports"


def starter_site(given: str = "") -> str:
    """Return the text of a site file for this machine; `given` are its accelerators, as in "v100=4,cpu=16".

    Raises InvalidInput for others.
    """
    if given:
        parts = [one.strip() for one in given.split(",")]
        if wrong := [one for one in parts if not re.fullmatch(r"[\w-]+ *= *\d+", one, re.ASCII)]:
            rule, fix = "is not TYPE=N", "give each type with its number, as in v100=4,cpu=16"
            raise InvalidInput([Problem(file="--accelerators", value=wrong[0], rule=rule, fix=fix)])
        text = ", ".join(one.replace("=", " = ") for one in parts)
        return STARTER.format_map({"cluster": f"accelerators = {{ {text} }}"})
    return STARTER.format_map({"cluster": FOUND if _has_driver() else DECLARED})


def _has_driver() -> bool:
    try:
        return bool(discovered()[0])
    except InvalidInput:
        return False
