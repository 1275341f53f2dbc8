"""systemd: units for the service, and the message that it is ready (sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import sys
from pathlib import Path

from eunomia.inputs.atomic_write import check_place, write_output
from eunomia.inputs.problems import refused
from eunomia.model.spelling_suggestions import nearest

KINDS = ("root", "user")
_UNIT = """\
# {kind_text}
{install}
[Unit]
Description=Eunomia, scheduler of this machine's accelerators
After=network.target

[Service]
Type=notify
# A start checks the whole store first, and may replay moments.
TimeoutStartSec=15min
UMask={umask}
WorkingDirectory={folder}
ExecStartPre={eunomia} serve {site} --check
ExecStart={eunomia} serve {site}
ExecReload=/bin/kill -HUP $MAINPID
# Only the service itself is stopped: jobs go on under their supervisors until the next start.
KillMode=process
# The service makes a control group for each job, beside its own. Before systemd 254, which has no DelegateSubgroup,
# jobs are killed whole all the same, but the kernel does not limit their memory and CPUs.
Delegate=yes
DelegateSubgroup=service
TimeoutStopSec=90
Restart=on-failure
RestartSec=2
LimitNOFILE=65536
TasksMax=infinity
{protection}
[Install]
WantedBy={target}
"""
_ROOT = {
    "kind_text": "systemd unit of the service, run by root: each job has the account of its submitter.",
    "install": "# Copy to /etc/systemd/system/, then: systemctl daemon-reload && systemctl enable --now eunomia",
    "umask": "0022",
    "target": "multi-user.target",
    # Jobs inherit what the unit forbids, so nothing here keeps them from homes, devices, control groups or namespaces.
    "protection": (
        "# Jobs inherit what is forbidden here, so homes, devices, control groups and namespaces stay as they are.\n"
        "NoNewPrivileges=yes\nProtectKernelTunables=yes\nProtectKernelLogs=yes\nProtectHostname=yes\n"
        "RestrictRealtime=yes\nLockPersonality=yes\nOOMPolicy=continue\n"
    ),
}
_USER = {
    "kind_text": "systemd unit of the service, run by one user: all jobs run as that user.",
    "install": (
        "# Copy to ~/.config/systemd/user/, then:\n"
        "#   systemctl --user daemon-reload && systemctl --user enable --now eunomia\n"
        "# and once, so that it runs while you are not logged in: sudo loginctl enable-linger $USER"
    ),
    "umask": "0022",
    "target": "default.target",
    "protection": "NoNewPrivileges=yes\nLockPersonality=yes\nOOMPolicy=continue\n",
}


def unit_text(kind: str, site: Path, eunomia: str = "") -> str:
    """Return the unit of a site for root or for one user; `eunomia` is what starts it, by default this environment."""
    called = eunomia or f"{shlex.quote(sys.executable)} -m eunomia"
    words = _ROOT if kind == "root" else _USER
    return _UNIT.format(site=_escaped(site), folder=_escaped(site.parent), eunomia=called.replace("%", "%%"), **words)


def _escaped(path: Path) -> str:
    """Return a path as a unit has it."""
    text = str(path).replace("%", "%%").replace("\\", "\\\\")
    return f'"{text}"' if " " in text else text


def notify_ready() -> None:
    """Say to systemd, if it waits for that, that the service is ready; a socket that is gone changes nothing."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
        line.connect(f"\0{place[1:]}" if place[0] == "@" else place)
        line.sendall(b"READY=1")


def check_unit(site: Path, kind: str, *, force: bool) -> Path:
    """Return where the unit of a site is written: beside it. Raises InvalidInput where it cannot be."""
    if kind not in KINDS:
        raise refused("command line", "--unit", kind, f"is one of {', '.join(KINDS)}", nearest(kind, KINDS))
    place = site.absolute().parent / "eunomia.service"
    check_place(place, force=force, endings=(".service",))
    return place


def write_unit(site: Path, kind: str, *, force: bool) -> Path:
    """Write the unit of a site beside it. Raises InvalidInput where it cannot be."""
    place = check_unit(site, kind, force=force)
    write_output(place, unit_text(kind, site.absolute()).encode())
    return place
