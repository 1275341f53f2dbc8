"""Python functions as jobs of a service, so that loops of Ray Train or Tune run under its policy.

    from eunomia.ray import gang
    loss = gang(train, accelerators=4, types=("v100", "p100"), lr=0.1)

`gang` submits a job that calls the function, and returns its result when the job has succeeded. The job may be stopped
and started again, also on other accelerators: the function uses `eunomia.lease` as any training script does. It runs in
a process of its own; on a Ray cluster `ray.init()` in it joins the cluster, and in the namespace EUNOMIA_RAY_NAMESPACE
the gang's placement group has the name EUNOMIA_RAY_PLACEMENT_GROUP.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eunomia.service.client import Client, Unreachable, find_service

POLL_S = 1.0
ENDS = ("succeeded", "failed", "cancelled", "rejected")


class GangFailed(RuntimeError):
    """The job of a function ended without a result; the message has the state and the reason."""


def gang(
    function: Callable[..., Any], *, accelerators: int, types: Sequence[str] = (), duration_s: float | None = None,
    tenant: str = "", folder: Path | None = None, url: str | None = None, **arguments: Any,
) -> Any:  # fmt: skip
    """Call a function of a module under leases of the service that `eunomia submit` finds, and return its result.

    types: accelerator types that will do; empty = any. duration_s: expected seconds, for policies that use them.
    folder: where the result is written, which the nodes must share; without it the current one. arguments and result
    are JSON. Raises ValueError for a function that has no name in a module or arguments that are no JSON, GangFailed if
    the job fails, ConnectionError if no service takes it; later a service that does not answer is waited for.
    Interrupted, it cancels the job.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    if function.__module__ == "__main__" or "<" in name or "." in function.__qualname__:
        raise ValueError(
            f"{name} cannot be found by another process: move it to the top of a module that it can import"
        )
    place = (folder or Path.cwd()).resolve()
    client = Client(find_service(url))
    with tempfile.TemporaryDirectory(prefix=".gang-", dir=place) as kept:
        result = Path(kept) / "result.json"
        document: dict[str, Any] = {
            "name": function.__name__,
            "command": [sys.executable, "-m", "eunomia.ray", name, str(result), json.dumps(arguments, allow_nan=False)],
            "env": {"PYTHONPATH": ":".join(path or str(Path.cwd()) for path in sys.path)},
            "accelerators": accelerators,
        }
        given = {"types": list(types), "duration_s": duration_s, "tenant": tenant}
        job = client.submit({**document, **{key: value for key, value in given.items() if value}})["id"]
        try:
            end = _wait(client, job)
        except BaseException:
            client.send("DELETE", f"/v1/jobs/{job}")
            raise
        if end["state"] != "succeeded":
            raise GangFailed(f"job {job} {end['state']}: {end.get('reason') or 'see eunomia logs'}")
        return json.loads(result.read_text(encoding="utf-8"))


def _wait(client: Client, job: str) -> dict[str, Any]:
    """Return the job when it has ended."""
    while True:
        try:
            found = client.get(f"/v1/jobs/{job}")
        except Unreachable:  # it is being started again; the job goes on meanwhile
            found = {"state": ""}
        if found["state"] in ENDS:
            return found
        time.sleep(POLL_S)


def main() -> None:
    """Call the function that the command line names, and write its result: `MODULE:NAME RESULT.json ARGUMENTS`."""
    from eunomia.lease import write_whole
    from eunomia.model.registry import load_place

    name, result, arguments = sys.argv[1:]
    found = load_place(name)(**json.loads(arguments))
    write_whole(Path(result), json.dumps(found, allow_nan=False), durable=True)


if __name__ == "__main__":
    main()
