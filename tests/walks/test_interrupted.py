"""Ctrl-C ends a command with 130, wherever it is."""

from __future__ import annotations

import pytest
import typer

from eunomia.cli.errors import INTERRUPTED, handle_errors


@pytest.mark.parametrize("inside_compiled_code", [False, True])
def test_an_interruption_is_reported_and_exits_with_130(
    inside_compiled_code: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    error: BaseException = KeyboardInterrupt()
    if inside_compiled_code:
        error = SystemError("returned a result with an exception set")
        error.__cause__ = KeyboardInterrupt()
    with pytest.raises(typer.Exit) as ended, handle_errors(False):
        raise error
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted; nothing was written\n"


def test_an_error_of_the_interpreter_is_no_interruption() -> None:
    with pytest.raises(SystemError, match="broken"), handle_errors(False):
        raise SystemError("broken")
