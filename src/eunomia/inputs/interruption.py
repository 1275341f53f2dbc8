"""Tells Ctrl-C from other exceptions."""

from __future__ import annotations


def is_interruption(error: BaseException) -> bool:
    """Whether an exception is Ctrl-C; interrupted compiled code raises SystemError."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)
