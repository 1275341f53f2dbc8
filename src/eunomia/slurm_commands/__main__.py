"""`python -m eunomia.slurm_commands COMMAND WORD…`: what the written commands call."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from eunomia.slurm_commands.command_line import HelpWanted, WrongUsage, say

COMMANDS = {  # name → module and function
    "sbatch": "submitting",
    "srun": "submitting",
    "squeue": "listing",
    "sacct": "listing",
    "scancel": "control",
    "scontrol": "control",
    "sinfo": "cluster_view",
    "sacctmgr": "cluster_view",
}
FAILED, INTERRUPTED = 1, 130


def main(argv: Sequence[str]) -> int:
    """Run a command by its name; return its exit code."""
    from eunomia.service.client import ServiceRefusal, Unreachable

    if not argv or argv[0] not in COMMANDS:
        print(f"usage: python -m eunomia.slurm_commands {'|'.join(COMMANDS)} …", file=sys.stderr)
        return 2
    name, *words = argv
    if words and words[0] in ("--version", "-V"):
        from eunomia import __version__

        print(f"slurm-eunomia {__version__}")
        return 0
    command: Callable[[Sequence[str]], int] = getattr(import_module(f"eunomia.slurm_commands.{COMMANDS[name]}"), name)
    try:
        code = command(words)
        sys.stdout.flush()
        return code
    except HelpWanted as asked:
        print(asked)
        return 0
    except WrongUsage as error:
        say(name, str(error) if str(error).startswith("fatal: ") else f"error: {error}")
    except ServiceRefusal as error:
        say(name, f"error: {error}")
        for one in error.problems[:20]:
            value = "" if one.get("value") is None else f" is {one['value']!r}:"
            say(name, f"error: {one['field']}{value} {one['rule']}; {one['fix']}")
    except Unreachable as error:
        say(name, f"error: Unable to contact slurm controller (connect failure): {error}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        say(name, f"error: {error.filename or name}: {error.strerror or error}")
    return FAILED


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a script's background ignores Ctrl-C
        signal.signal(number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
