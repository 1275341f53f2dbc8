"""What `eunomia serve --check` prints: nothing that only a workload could show, and the address as it will be."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunomia import policies
from eunomia.service.site import load_site, plan

SITE = (
    '[service]\nlisten = "127.0.0.1:8642"\n{more}[cluster]\naccelerators = {{ cpu = 8 }}\n[policy]\nname = "{policy}"\n'
)
NEEDED = {"las": "quantum = 60\n", "pop": "parts = 2\n"}
OF_A_WORKLOAD = ("no two jobs", "all jobs have", "no job", "cannot differ", "jobs differ")


def lines(folder: Path, policy: str, more: str = "", rest: str = "") -> list[str]:
    path = folder / "site.toml"
    path.write_text(SITE.format(policy=policy, more=more) + NEEDED.get(policy, "") + rest)
    return plan(load_site(path))


@pytest.mark.parametrize("policy", ["slurm_fair_share", "by_weight", "edf", "drf", "optimus", "kueue_fair_share"])
def test_nothing_is_said_of_jobs_before_there_are_any(tmp_path: Path, policy: str) -> None:
    assert policy in policies.POLICIES
    said = lines(tmp_path, policy, rest='[world]\nretry = "adaptive"\nretry_by = "tenant"\n')
    assert not [line for line in said if any(words in line for words in OF_A_WORKLOAD)]


def test_what_does_not_depend_on_jobs_is_still_said(tmp_path: Path) -> None:
    said = lines(tmp_path, "drf", rest='[world]\nretry_by = "tenant"\n')
    assert any('changes nothing without world.retry = "adaptive"' in line for line in said)


def test_the_address_has_the_scheme_under_which_it_answers(tmp_path: Path) -> None:
    def address(more: str = "") -> str:
        (line,) = [line for line in lines(tmp_path, "fifo", more) if line.startswith("listens:")]
        return line

    assert " http://127.0.0.1:8642" in address()
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    assert " https://127.0.0.1:8642" in address('tls_cert = "cert.pem"\ntls_key = "key.pem"\n')
