"""Starts the service with sample jobs of three tenants, and says where to look. Ctrl-C ends it: `make serve-demo`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COUNT = "import time, os\nfor n in range({}):\n    print('step', n, flush=True); time.sleep(1)"


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="eunomia-demo-"))
    site = (HERE / "site.toml").read_text().replace("127.0.0.1:8642", os.environ.get("LISTEN", "127.0.0.1:0"))
    (folder / "site.toml").write_text(site)
    with open(folder / "log", "w") as log:
        serving = subprocess.Popen(
            [sys.executable, "-m", "eunomia", "serve", "site.toml", "--stop-jobs"],
            cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end it as Ctrl-C does
    try:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        if not line:
            sys.exit((folder / "log").read_text())
        url = line.split()[-1]
        jobs = [
            {"command": ["python", "-c", COUNT.format(length)], "name": f"{tenant}-{length}s", "tenant": tenant,
             "duration_s": length}
            for tenant, length in (("vision", 120), ("speech", 90), ("vision", 30), ("speech", 20), ("language", 15))
        ]  # fmt: skip
        (folder / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
        socket = f"unix:{folder / 'state' / 'service.sock'}"
        submit = [sys.executable, "-m", "eunomia", "submit", "--file", "jobs.jsonl", "--url", socket]
        subprocess.run(submit, cwd=folder, check=True)
        print(f"The dashboard is at {url}/; the token to log in is in {folder / 'state' / 'operator.token'}.")
        print(f"Try: EUNOMIA_STATE={folder / 'state'} eunomia jobs --watch    Ctrl-C ends it.", flush=True)
        return serving.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
