"""`eunomia --help` lists every command once, in the group in which people look for it."""

from __future__ import annotations

import re

from typer.main import get_command
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.cli.command_groups import GROUPS, OTHER

OF_OTHERS = {"reproduce"}  # of a package that may be installed beside


def test_each_command_is_in_one_group_and_each_group_names_commands_that_exist() -> None:
    grouped = [name for group in GROUPS.values() for name in group]
    assert len(grouped) == len(set(grouped))
    assert set(get_command(app).commands) - OF_OTHERS == set(grouped)  # type: ignore[attr-defined]


def test_the_help_shows_groups_in_order_and_whole_first_sentences() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    titles = [line[:-1] for line in shown.splitlines() if re.fullmatch(r"\S.*:", line)]
    assert [one for one in titles if one not in ("Options", OTHER)] == list(GROUPS)
    assert "..." not in shown.partition(titles[1])[2]
    assert re.search(r"^  submit +Submit a job\.$", shown, re.MULTILINE)
